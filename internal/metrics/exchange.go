package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delaying"
)

// DelayedExchange is what the sessions of one delayed exchange count in.
type DelayedExchange struct {
	*Flow
	delayed, delivered prometheus.Counter

	refused map[string]prometheus.Counter
}

// addExchange is called with the set's lock.
func (s *Set) addExchange(e *delaying.Exchange) *DelayedExchange {
	d := &DelayedExchange{Flow: s.newFlow(e.ID(), e.Exchanges())}
	d.queues = e.Queues()
	d.delayed, d.delivered = d.counter(postponed), d.counter(delivered)
	d.refused = d.reasonCounters(refused, delaying.RefuseReasons())
	s.flows[d.id], s.exchanges[d.id] = d.Flow, d
	return d
}

// Delayed counts a message that waits.
func (d *DelayedExchange) Delayed() { d.delayed.Inc() }

// Delivered counts a message that was routed at once.
func (d *DelayedExchange) Delivered() { d.delivered.Inc() }

// Refused counts a message that is in the unrouted queue now.
func (d *DelayedExchange) Refused(reason string) { countReason(d.refused, reason) }
