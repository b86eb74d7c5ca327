package metrics

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/workerconfig"
)

// Flow is what the sessions of a pipeline or a delayed exchange count in, whichever it is. Counters are looked up here once, not
// for each message.
type Flow struct {
	id                               workerconfig.ID
	received, redeliveries, restarts prometheus.Counter
	setAside                         prometheus.Counter

	counters map[string]*prometheus.CounterVec
	latency  prometheus.Observer

	// queues are read and written with the set's lock.
	queues []pipeline.Queue

	state state
	// forgotten tells that it left the configuration: what its last session still counts must not bring its metrics back.
	forgotten atomic.Bool
}

// newFlow is for what publishes to these exchanges.
func (s *Set) newFlow(id workerconfig.ID, exchanges []string) *Flow {
	f := &Flow{id: id, counters: s.counters}
	values, _ := f.values(latency)
	f.latency = s.latency.WithLabelValues(values...)
	f.received, f.redeliveries, f.restarts = f.counter(received), f.counter(redeliveries), f.counter(restarts)
	f.setAside = f.counter(setAside)
	for _, exchange := range exchanges {
		f.Exchange(exchange) // shows zero before there is anything to count
	}
	return f
}

// values are those of the metric's labels, then more. It says false if the metric is for another kind.
func (f *Flow) values(m metric, more ...string) (values []string, applies bool) {
	for _, label := range m.Labels {
		switch label {
		case string(f.id.Kind):
			values, applies = append(values, f.id.Name), true
		case labelPipeline, labelDelayedExchange:
			values = append(values, "")
		case labelVhost:
			values = append(values, f.id.Vhost)
		}
	}
	return append(values, more...), applies
}

func (f *Flow) counter(m metric, more ...string) prometheus.Counter {
	values, applies := f.values(m, more...)
	if !applies || f.forgotten.Load() {
		return prometheus.NewCounter(prometheus.CounterOpts{})
	}
	return f.counters[m.Name].WithLabelValues(values...)
}

// reasonCounters are those of a metric by reason, its last label; before it come more.
func (f *Flow) reasonCounters(m metric, reasons []string, before ...string) map[string]prometheus.Counter {
	counters := map[string]prometheus.Counter{}
	for _, reason := range append(reasons, otherReason) {
		counters[reason] = f.counter(m, slices.Concat(before, []string{reason})...)
	}
	return counters
}

// otherReason counts what is no known reason, whatever it says.
const otherReason = "other"

func countReason(counters map[string]prometheus.Counter, reason string) {
	c, found := counters[reason]
	if !found {
		c = counters[otherReason]
	}
	c.Inc()
}

// Received counts a delivery.
func (f *Flow) Received() { f.received.Inc() }

// SetAside counts a message that is in the refused queue now.
func (f *Flow) SetAside() { f.setAside.Inc() }

// Exchange is what is counted of the publishes to one exchange.
type Exchange struct {
	returned, nacked prometheus.Counter
	latency          prometheus.Observer
}

// Exchange is for the exchange of this name, "" being the default one.
func (f *Flow) Exchange(name string) *Exchange {
	if name == "" {
		name = "amq.default" // as in permissions
	}
	return &Exchange{returned: f.counter(returned, name), nacked: f.counter(nacked, name), latency: f.latency}
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
