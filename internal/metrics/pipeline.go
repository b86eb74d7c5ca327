package metrics

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
)

// Pipeline is what the sessions of one pipeline count in.
type Pipeline struct {
	*Flow
	// workQueues are those of the configuration, and "" for any other: no label comes from a message.
	workQueues atomic.Pointer[map[string]*workQueue]
}

// workQueue is what is counted of the messages of one work queue.
type workQueue struct {
	rescued prometheus.Counter

	retried map[time.Duration]prometheus.Counter
	failed  map[string]prometheus.Counter
	detours map[deadletter.Detour]prometheus.Counter
}

// addPipeline is called with the set's lock.
func (s *Set) addPipeline(spec *deadletter.Pipeline) *Pipeline {
	p := &Pipeline{Flow: s.newFlow(spec.ID(), append(spec.Exchanges(), ""))}
	p.expect(spec)
	s.flows[p.id], s.pipelines[p.id] = p.Flow, p
	return p
}

// expect prepares for this configuration, and shows zero before there is anything to count. It is called with the set's lock.
func (p *Pipeline) expect(spec *deadletter.Pipeline) {
	p.queues = spec.Queues()
	workQueues := map[string]*workQueue{}
	for _, name := range append(spec.WorkQueues(), "") {
		q := &workQueue{
			rescued: p.counter(rescued, name),
			retried: map[time.Duration]prometheus.Counter{},
			failed:  p.reasonCounters(failed, deadletter.FailReasons(), name),
			detours: map[deadletter.Detour]prometheus.Counter{},
		}
		for _, delay := range spec.Delays() {
			q.retried[delay] = p.counter(retried, name, pipeline.FormatDelay(delay))
		}
		for _, why := range deadletter.Detours() {
			q.detours[why] = p.counter(detoured, name, string(why))
		}
		workQueues[name] = q
	}
	p.workQueues.Store(&workQueues)
}

func (p *Pipeline) workQueue(name string) *workQueue {
	all := *p.workQueues.Load()
	if q, found := all[name]; found {
		return q
	}
	return all[""]
}

// Retried counts a message that waits for its next attempt.
func (p *Pipeline) Retried(queue string, delay time.Duration) {
	c, found := p.workQueue(queue).retried[delay]
	if !found {
		// The configuration has changed; it bounds how many there are.
		c = p.counter(retried, "", pipeline.FormatDelay(delay))
	}
	c.Inc()
}

// Rescued counts a message that went straight to its work queue.
func (p *Pipeline) Rescued(queue string) { p.workQueue(queue).rescued.Inc() }

// Failed counts a message that is in the failed queue now.
func (p *Pipeline) Failed(queue, reason string) { countReason(p.workQueue(queue).failed, reason) }

// Detoured counts a message that is in the pipeline's failed queue in place of its work queue's own.
func (p *Pipeline) Detoured(queue string, why deadletter.Detour) {
	p.workQueue(queue).detours[why].Inc()
}
