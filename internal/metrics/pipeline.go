package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
)

// Pipeline is what the sessions of one pipeline count in.
type Pipeline struct {
	*Flow
	rescued prometheus.Counter

	retried map[time.Duration]prometheus.Counter
	failed  map[string]prometheus.Counter
	detours map[deadletter.Detour]prometheus.Counter
}

// addPipeline is called with the set's lock.
func (s *Set) addPipeline(spec *deadletter.Pipeline) *Pipeline {
	p := &Pipeline{
		Flow:    s.newFlow(spec.ID(), append(spec.Exchanges(), "")),
		retried: map[time.Duration]prometheus.Counter{},
		detours: map[deadletter.Detour]prometheus.Counter{},
	}
	p.rescued = p.counter(rescued)
	for _, delay := range spec.Delays() {
		p.retried[delay] = p.counter(retried, pipeline.FormatDelay(delay))
	}
	p.failed = p.reasonCounters(failed, deadletter.FailReasons())
	for _, why := range deadletter.Detours() {
		p.detours[why] = p.counter(detoured, string(why))
	}
	s.flows[p.id], s.pipelines[p.id] = p.Flow, p
	return p
}

// expect shows delays with zero before there is anything to count.
func (p *Pipeline) expect(delays []time.Duration) {
	for _, delay := range delays {
		p.counter(retried, pipeline.FormatDelay(delay))
	}
}

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
func (p *Pipeline) Failed(reason string) { countReason(p.failed, reason) }

// Detoured counts a message that is in the pipeline's failed queue in place of its work queue's own.
func (p *Pipeline) Detoured(why deadletter.Detour) { p.detours[why].Inc() }
