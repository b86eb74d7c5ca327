package metrics

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
)

// otherReason counts what is no known reason, whatever it says.
const otherReason = "other"

// Pipeline is what the sessions of one pipeline count in. Counters are looked up here once, not for
// each message.
type Pipeline struct {
	key
	received, redeliveries, rescued, restarts prometheus.Counter

	retried  map[time.Duration]prometheus.Counter
	failed   map[string]prometheus.Counter
	detours  map[deadletter.Detour]prometheus.Counter
	counters map[string]*prometheus.CounterVec
	latency  prometheus.Observer

	state state
	// forgotten tells that the pipeline left the configuration: what its last session still counts
	// must not bring its metrics back.
	forgotten atomic.Bool
}

func (s *Set) newPipeline(spec *deadletter.Pipeline) *Pipeline {
	k := keyOf(spec)
	p := &Pipeline{
		key: k, counters: s.counters,
		retried: map[time.Duration]prometheus.Counter{},
		failed:  map[string]prometheus.Counter{},
		detours: map[deadletter.Detour]prometheus.Counter{},
		latency: s.latency.WithLabelValues(k.name, k.vhost),
	}
	p.received, p.redeliveries, p.rescued, p.restarts = p.counter(received), p.counter(redeliveries), p.counter(rescued), p.counter(restarts)
	for _, delay := range spec.Delays() {
		p.retried[delay] = p.counter(retried, pipeline.FormatDelay(delay))
	}
	p.failed[otherReason] = p.counter(failed, otherReason)
	for _, reason := range deadletter.FailReasons() {
		p.failed[reason] = p.counter(failed, reason)
	}
	for _, why := range deadletter.Detours() {
		p.detours[why] = p.counter(detoured, string(why))
	}
	for _, exchange := range append(spec.Names.WorkerExchanges(), "") {
		p.Exchange(exchange) // shows zero before there is anything to count
	}
	return p
}

// expect shows delays with zero before there is anything to count.
func (p *Pipeline) expect(delays []time.Duration) {
	for _, delay := range delays {
		p.counter(retried, pipeline.FormatDelay(delay))
	}
}

func (p *Pipeline) counter(m metric, more ...string) prometheus.Counter {
	if p.forgotten.Load() {
		return prometheus.NewCounter(prometheus.CounterOpts{})
	}
	return p.counters[m.Name].WithLabelValues(append([]string{p.name, p.vhost}, more...)...)
}

// Received counts a delivery.
func (p *Pipeline) Received() { p.received.Inc() }

// Retried counts a message that waits for its next attempt.
func (p *Pipeline) Retried(delay time.Duration) {
	c, found := p.retried[delay]
	if !found {
		// The configuration has changed; it bounds how many there are.
		c = p.counter(retried, pipeline.FormatDelay(delay))
	}
	c.Inc()
}

// Rescued counts a message that went straight to its work queue.
func (p *Pipeline) Rescued() { p.rescued.Inc() }

// Failed counts a message that is in the failed queue now.
func (p *Pipeline) Failed(reason string) {
	c, found := p.failed[reason]
	if !found {
		c = p.failed[otherReason]
	}
	c.Inc()
}

// Detoured counts a message that is in the pipeline's failed queue in place of its work queue's own.
func (p *Pipeline) Detoured(why deadletter.Detour) { p.detours[why].Inc() }

// Exchange is what is counted of the publishes to one exchange.
type Exchange struct {
	returned, nacked prometheus.Counter
	latency          prometheus.Observer
}

// Exchange is for the exchange of this name, "" being the default one.
func (p *Pipeline) Exchange(name string) *Exchange {
	if name == "" {
		name = "amq.default" // as in permissions
	}
	return &Exchange{returned: p.counter(returned, name), nacked: p.counter(nacked, name), latency: p.latency}
}

// Answered counts the broker's answer to a publish. A nil exchange does nothing.
func (e *Exchange) Answered(after time.Duration, ack, returned bool) {
	if e == nil {
		return
	}
	e.latency.Observe(after.Seconds())
	if returned {
		e.returned.Inc()
	}
	if !ack {
		e.nacked.Inc()
	}
}
