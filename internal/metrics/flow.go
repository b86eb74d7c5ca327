package metrics

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delaying"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/rules"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/workerconfig"
)

// Flow has the counters of the sessions of a pipeline or a delayed exchange. It looks them up once, not for each
// message.
type Flow struct {
	id                               workerconfig.ID
	received, redeliveries, restarts prometheus.Counter
	setAside                         prometheus.Counter

	counters map[string]*prometheus.CounterVec
	latency  prometheus.Observer

	// The set's lock guards queues.
	queues []pipeline.Queue
	// workQueues has the configured work queues of a pipeline, and "" for any other, so that no label comes from a
	// message.
	workQueues atomic.Pointer[map[string]*workQueue]
	// delayed, delivered and refused are counters of a delayed exchange.
	delayed, delivered prometheus.Counter
	refused            map[string]prometheus.Counter

	state
	// forgotten says that the flow left the configuration. Its last session can still count, which must not bring its
	// metrics back.
	forgotten atomic.Bool
}

func (s *Set) newFlow(c Config) *Flow {
	f := &Flow{id: c.ID(), counters: s.counters}
	f.latency = s.latency.WithLabelValues(f.values()...)
	f.received, f.redeliveries, f.restarts = f.counter(received), f.counter(redeliveries), f.counter(restarts)
	f.setAside = f.counter(setAside)
	for _, exchange := range c.Exchanges() {
		f.Exchange(exchange) // shows zero before there is anything to count
	}
	if c.ID().Kind == rules.DelayedExchange {
		f.delayed, f.delivered = f.counter(postponed), f.counter(delivered)
		f.refused = f.reasonCounters(refused, delaying.RefuseReasons())
	}
	f.expect(c)
	return f
}

// expect creates the counters of this configuration, so that they show zero first. It must be called with the set's
// lock.
func (f *Flow) expect(c Config) {
	f.queues = c.Queues()
	spec, is := c.(*deadletter.Pipeline)
	if !is {
		return
	}
	f.Exchange("")
	workQueues := map[string]*workQueue{}
	for _, name := range append(spec.WorkQueues(), "") {
		q := &workQueue{
			rescued: f.counter(rescued, name),
			retried: map[time.Duration]prometheus.Counter{},
			failed:  f.reasonCounters(failed, deadletter.FailReasons(), name),
			detours: map[deadletter.Detour]prometheus.Counter{},
		}
		for _, delay := range spec.Delays() {
			q.retried[delay] = f.counter(retried, name, pipeline.FormatDelay(delay))
		}
		for _, why := range deadletter.Detours() {
			q.detours[why] = f.counter(detoured, name, string(why))
		}
		workQueues[name] = q
	}
	f.workQueues.Store(&workQueues)
}

// values are the values of [flowLabels], and then more.
func (f *Flow) values(more ...string) []string {
	return append([]string{string(f.id.Kind), f.id.Name, f.id.Vhost}, more...)
}

func (f *Flow) counter(m metric, more ...string) prometheus.Counter {
	if f.forgotten.Load() {
		return prometheus.NewCounter(prometheus.CounterOpts{})
	}
	return f.counters[m.Name].WithLabelValues(f.values(more...)...)
}

// reasonCounters are the counters of a metric by reason, its last label. The values before come first.
func (f *Flow) reasonCounters(m metric, reasons []string, before ...string) map[string]prometheus.Counter {
	counters := map[string]prometheus.Counter{}
	for _, reason := range append(reasons, otherReason) {
		counters[reason] = f.counter(m, slices.Concat(before, []string{reason})...)
	}
	return counters
}

// otherReason counts all unknown reasons, so that no label comes from a message.
const otherReason = "other"

func countReason(counters map[string]prometheus.Counter, reason string) {
	cmp.Or(counters[reason], counters[otherReason]).Inc()
}

// Received counts a delivery.
func (f *Flow) Received() { f.received.Inc() }

// SetAside counts a message that is in the refused queue now.
func (f *Flow) SetAside() { f.setAside.Inc() }

// Exchange has the counters of the publishes to one exchange.
type Exchange struct {
	returned, nacked prometheus.Counter
	latency          prometheus.Observer
}

// Exchange returns the counters of the exchange of this name. The name "" is the default exchange.
func (f *Flow) Exchange(name string) *Exchange {
	if name == "" {
		name = "amq.default" // as in permissions
	}
	return &Exchange{returned: f.counter(returned, name), nacked: f.counter(nacked, name), latency: f.latency}
}

// Answered counts the broker's answer to a publish.
func (e *Exchange) Answered(after time.Duration, ack, returned bool) {
	e.latency.Observe(after.Seconds())
	if returned {
		e.returned.Inc()
	}
	if !ack {
		e.nacked.Inc()
	}
}

// workQueue has the counters of the messages of one work queue.
type workQueue struct {
	rescued prometheus.Counter

	retried map[time.Duration]prometheus.Counter
	failed  map[string]prometheus.Counter
	detours map[deadletter.Detour]prometheus.Counter
}

func (f *Flow) workQueue(name string) *workQueue {
	all := *f.workQueues.Load()
	if q, found := all[name]; found {
		return q
	}
	return all[""]
}

// Retried counts a message that waits for its next attempt.
func (f *Flow) Retried(queue string, delay time.Duration) {
	c, found := f.workQueue(queue).retried[delay]
	if !found {
		// The configuration has changed meanwhile. It bounds how many such delays there are.
		c = f.counter(retried, "", pipeline.FormatDelay(delay))
	}
	c.Inc()
}

// Rescued counts a message that went straight to its work queue.
func (f *Flow) Rescued(queue string) { f.workQueue(queue).rescued.Inc() }

// Failed counts a message that is in the failed queue now.
func (f *Flow) Failed(queue, reason string) { countReason(f.workQueue(queue).failed, reason) }

// Detoured counts a message that is in the pipeline's failed queue in place of its work queue's own.
func (f *Flow) Detoured(queue string, why deadletter.Detour) {
	f.workQueue(queue).detours[why].Inc()
}

// Delayed counts a message that waits.
func (f *Flow) Delayed() { f.delayed.Inc() }

// Delivered counts a message that was routed at once.
func (f *Flow) Delivered() { f.delivered.Inc() }

// Refused counts a message that is in the unrouted queue now.
func (f *Flow) Refused(reason string) { countReason(f.refused, reason) }
