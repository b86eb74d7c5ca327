package pipeline

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Reasons for which a broker dead-letters a message.
const (
	ReasonRejected      = "rejected"
	ReasonExpired       = "expired"
	ReasonMaxLength     = "maxlen"
	ReasonDeliveryLimit = "delivery_limit"
)

// Reasons lists every reason for which a broker dead-letters a message.
func Reasons() []string {
	return []string{ReasonRejected, ReasonExpired, ReasonMaxLength, ReasonDeliveryLimit}
}

// FewestAttempts and MostAttempts are how often a message may be delivered in all, the first delivery
// included.
const (
	FewestAttempts = 2
	MostAttempts   = math.MaxInt32
)

// Pipeline is the specification of a retry pipeline: all that its topology is a function of.
type Pipeline struct {
	Name  string
	Vhost string
	// Engine is one of Engines, that of the worker if it is empty.
	Engine string
	// Delays are the waits before attempt 2, 3, 4 and so on; the last one repeats.
	Delays []Delay
	// MaxAttempts is how often a message is delivered in all, the first delivery included.
	MaxAttempts int
	RetryOn     []string
	// MaxAge is how long after its first failure a message may come back, zero for any time.
	MaxAge Delay
	// QueueType is the type of the pipeline's own queues.
	QueueType  string
	WorkQueues map[string]WorkQueue
	// PolicyPriority is the priority of the pipeline's policies.
	PolicyPriority int
	// PolicyDefinition has more keys for the policies of all work queues.
	PolicyDefinition topology.Arguments
	// Retired are delays that left the schedule but whose queues are still draining.
	Retired []time.Duration
	// Detached are queues that are no work queues any more, but to which messages may still be on their way.
	Detached []string
}

// Delay is a wait together with the way the user spelled it, which the broker keeps so that an
// import gives it back.
type Delay struct {
	Wait     time.Duration
	Spelling string
}

// Names of the pipeline's objects.
func (p Pipeline) Names() Names { return Names(p.Name) }

// Waits are the distinct delays that need a queue, in ascending order: a repeated delay shares its
// queue, and no queue is needed for a delay of zero.
func (p Pipeline) Waits() []time.Duration {
	var waits []time.Duration
	for _, delay := range p.Delays {
		if delay.Wait > 0 {
			waits = append(waits, delay.Wait)
		}
	}
	slices.Sort(waits)
	return slices.Compact(waits)
}

// GivesUpAfter is the sum of all waits of a message that fails every time, at once, in a work queue
// without a number of attempts of its own. It saturates at the longest duration that Go can hold,
// 292 years.
func (p Pipeline) GivesUpAfter() time.Duration {
	if len(p.Delays) == 0 {
		return 0
	}
	limit := cmp.Or(p.MaxAge.Wait, math.MaxInt64)
	listed := min(p.MaxAttempts-1, len(p.Delays))
	var total time.Duration
	for _, delay := range p.Delays[:listed] {
		if delay.Wait > limit-total {
			return p.endOf(total)
		}
		total += delay.Wait
	}
	repeats, last := int64(p.MaxAttempts-1-listed), p.Delays[len(p.Delays)-1].Wait
	if last == 0 {
		return total
	}
	if most := int64((limit - total) / last); repeats > most {
		return p.endOf(total + time.Duration(most)*last)
	}
	return total + time.Duration(repeats)*last
}

// endOf is how long it takes until the next wait would be too long.
func (p Pipeline) endOf(total time.Duration) time.Duration {
	if p.MaxAge.Wait == 0 {
		return math.MaxInt64
	}
	return total
}

// Worker is the sidecar's view of the pipeline.
func (p Pipeline) Worker() Worker {
	worker := Worker{
		Version:     WorkerVersion,
		Name:        p.Name,
		Vhost:       p.Vhost,
		MaxAttempts: p.MaxAttempts,
		RetryOn:     slices.Sorted(slices.Values(p.RetryOn)),
		WorkQueues:  map[string]WorkerQueue{},
	}
	for _, delay := range p.Delays {
		worker.Delays = append(worker.Delays, FormatDelay(delay.Wait))
	}
	if p.MaxAge.Wait > 0 {
		worker.MaxAge = FormatDelay(p.MaxAge.Wait)
	}
	for name, workQueue := range p.WorkQueues {
		worker.WorkQueues[name] = WorkerQueue{
			MaxAttempts: workQueue.MaxAttempts, FailedQueue: workQueue.FailedQueue, DeclareFailedQueue: workQueue.DeclaresFailedQueue(),
		}
	}
	return worker
}
