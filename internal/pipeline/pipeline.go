// Package pipeline knows what a retry pipeline, and an attachment to one, is made of on a broker.
//
// It is pure: a specification goes in, and the exchanges, queues, bindings and policies that it expands
// to come out; a vhost goes in, and what belongs to a pipeline, or its specification, comes out.
package pipeline

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
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
	return topology.Distinct(waits)
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
		worker.WorkQueues[name] = workQueue.Worker()
	}
	return worker
}

// Ways in which a work queue gets its dead-letter exchange.
const (
	// AttachPolicy writes a policy, which needs no redeclaration.
	AttachPolicy = "policy"
	// AttachArguments leaves it to whoever declares the queue.
	AttachArguments = "arguments"
)

// WorkQueue is a queue whose rejected messages the pipeline retries.
type WorkQueue struct {
	Type string
	// Declare makes the pipeline create and own the queue, with Arguments.
	Declare   bool
	Arguments topology.Arguments
	// Attach is AttachPolicy, also if it is empty, or AttachArguments.
	Attach string
	// DeadLetterStrategy is AtLeastOnce for quorum queues and AtMostOnce for others if it is empty.
	DeadLetterStrategy string
	// TakeOverFrom is another pipeline that has the queue too, and lets go of it later; "" for none.
	TakeOverFrom string
	// MaxAttempts takes the place of the pipeline's for messages that fail in this queue, 0 if there
	// is none.
	MaxAttempts int
	// FailedQueue gets the queue's failed messages in place of the pipeline's, "" if none does. The pipeline declares and
	// owns it unless it is ForeignFailedQueue.
	FailedQueue        string
	ForeignFailedQueue bool
	// PolicyDefinition has more keys for the queue's policy. They win over those of the pipeline; nil
	// takes a key away.
	PolicyDefinition topology.Arguments
}

// Worker is the sidecar's view of the work queue.
func (w WorkQueue) Worker() WorkerQueue {
	return WorkerQueue{MaxAttempts: w.MaxAttempts, FailedQueue: WorkerFailedQueue{w.FailedQueue, w.DeclaresFailedQueue()}}
}

// ByPolicy reports whether a policy attaches the queue.
func (w WorkQueue) ByPolicy() bool { return w.Attach != AttachArguments }

// DeclaresFailedQueue reports whether the queue has a failed queue that is created for it.
func (w WorkQueue) DeclaresFailedQueue() bool { return w.FailedQueue != "" && !w.ForeignFailedQueue }

// Strategy is how the queue dead-letters.
func (w WorkQueue) Strategy() string {
	if w.Type == topology.Quorum {
		return cmp.Or(w.DeadLetterStrategy, topology.AtLeastOnce)
	}
	return cmp.Or(w.DeadLetterStrategy, topology.AtMostOnce)
}

// deadLettering is what the queue needs to dead-letter to an exchange, as keys of a policy.
func (w WorkQueue) deadLettering(exchange string) topology.Arguments {
	keys := topology.Arguments{"dead-letter-exchange": exchange}
	if w.Strategy() == topology.AtLeastOnce {
		keys["dead-letter-strategy"] = topology.AtLeastOnce
		keys["overflow"] = "reject-publish"
	}
	return keys
}

// MaxDelay is the longest TTL a broker takes, ten years (rabbit_misc:check_expiry).
const MaxDelay = 315_360_000_000 * time.Millisecond

// ParseDelay reads a Go duration that a retry queue can wait: zero, or from 1ms up to MaxDelay in
// whole milliseconds, which is the resolution of a queue's TTL.
func ParseDelay(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%q is not a duration, or is longer than 292 years: "+
			"write a number and a unit, such as \"500ms\", \"1m30s\" or \"24h\"; hours are the longest unit", s)
	case d < 0:
		return 0, fmt.Errorf("%q is negative: remove the minus sign", s)
	case d > MaxDelay:
		return 0, fmt.Errorf("%q is longer than the broker's limit for a TTL, %s (ten years)", s, FormatDelay(MaxDelay))
	case d%time.Millisecond != 0:
		return 0, fmt.Errorf("%q is finer than a millisecond, the resolution of a queue's TTL", s)
	}
	return d, nil
}

// ParseMaxAge reads a Go duration after which a message is too old to be retried, in whole
// milliseconds, which is the resolution of the times in its headers.
func ParseMaxAge(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%q is not a duration, or is longer than 292 years: write a number and a unit, such as \"30m\" or \"24h\"", s)
	case d <= 0:
		return 0, fmt.Errorf("%q is not positive: no message would ever be retried", s)
	case d%time.Millisecond != 0:
		return 0, fmt.Errorf("%q is finer than a millisecond, the resolution of the times in headers", s)
	}
	return d, nil
}

// FormatDelay spells a delay as it stands in names and binding keys: Go's spelling without zero
// units, so 60 seconds are "1m" and 90 minutes "1h30m".
func FormatDelay(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// FormatMilliseconds spells a number of milliseconds, as brokers count them, like a delay.
func FormatMilliseconds(n int64) string {
	if n > MaxDelay.Milliseconds() || n < 0 {
		return fmt.Sprintf("%dms", n)
	}
	return FormatDelay(time.Duration(n) * time.Millisecond)
}
