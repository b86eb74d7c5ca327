// Package pipeline defines the broker objects of a retry pipeline and of an attachment to one.
//
// It is pure. It expands a specification to exchanges, queues, bindings and policies. From a vhost it reads a
// pipeline's objects or its specification back.
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

// Reasons why a broker dead-letters a message.
const (
	// ReasonRejected: a consumer rejected the message. A parked message has another reason, so only retry-reason has this value.
	ReasonRejected = "rejected"
	// ReasonExpired: the message expired in its work queue.
	ReasonExpired = "expired"
	// ReasonMaxLength: the work queue was full.
	ReasonMaxLength = "maxlen"
	// ReasonDeliveryLimit: the message was returned to its quorum queue more often than the delivery limit allows.
	ReasonDeliveryLimit = "delivery_limit"
)

// Reasons lists every reason why a broker dead-letters a message.
func Reasons() []string {
	return []string{ReasonRejected, ReasonExpired, ReasonMaxLength, ReasonDeliveryLimit}
}

// FewestAttempts and MostAttempts limit how often a message is delivered, including the first delivery.
const (
	FewestAttempts = 2
	MostAttempts   = math.MaxInt32
)

// Pipeline is the specification of a retry pipeline. Its topology depends on nothing else.
type Pipeline struct {
	Name  string
	Vhost string
	// Engine is one of Engines. Empty means EngineWorker.
	Engine string
	// Delays are the waits before attempt 2, 3, 4 and so on. The last one repeats.
	Delays []Delay
	// MaxAttempts is how often a message is delivered, including the first delivery.
	MaxAttempts int
	RetryOn     []string
	// MaxAge is how long after its first failure a message can come back. Zero means no limit.
	MaxAge Delay
	// QueueType is the type of the pipeline's own queues.
	QueueType  string
	WorkQueues map[string]WorkQueue
	// PolicyPriority is the priority of the pipeline's policies.
	PolicyPriority int
	// PolicyDefinition has more keys for the policies of all work queues.
	PolicyDefinition topology.Arguments
	// Retired are the delays that left the schedule and whose queues still drain.
	Retired []time.Duration
	// Detached are the former work queues that can still get waiting messages back.
	Detached []string
}

// Delay is a wait and the user's spelling of it. The broker stores the spelling, so that an import returns it.
type Delay struct {
	Wait     time.Duration
	Spelling string
}

// Names returns the names of the pipeline's objects.
func (p Pipeline) Names() Names { return Names(p.Name) }

// Waits returns the distinct delays that need a queue, in ascending order. Equal delays share a queue, and a delay of
// zero needs none.
func (p Pipeline) Waits() []time.Duration {
	var waits []time.Duration
	for _, delay := range p.Delays {
		if delay.Wait > 0 {
			waits = append(waits, delay.Wait)
		}
	}
	return topology.Distinct(waits)
}

// GivesUpAfter returns the sum of all waits of a message that always fails at once, without a work queue's own number
// of attempts. Its maximum is Go's longest duration, 292 years.
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

// endOf returns the sum if the next wait would pass the limit. Without a MaxAge, only the longest duration limits the sum.
func (p Pipeline) endOf(total time.Duration) time.Duration {
	if p.MaxAge.Wait == 0 {
		return math.MaxInt64
	}
	return total
}

// Worker returns the sidecar's view of the pipeline.
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

// Ways to give a work queue its dead-letter exchange.
const (
	// AttachPolicy writes a policy, so that the queue need not be declared again.
	AttachPolicy = "policy"
	// AttachArguments expects that the queue's owner declares it with the right arguments.
	AttachArguments = "arguments"
)

// WorkQueue is a queue whose rejected messages the pipeline retries.
type WorkQueue struct {
	Type string
	// Declare makes the pipeline create and own the queue, with Arguments.
	Declare   bool
	Arguments topology.Arguments
	// Attach is AttachPolicy or AttachArguments. Empty means AttachPolicy.
	Attach string
	// DeadLetterStrategy is AtLeastOnce or AtMostOnce. Empty means AtLeastOnce for quorum queues, and AtMostOnce for
	// others.
	DeadLetterStrategy string
	// TakeOverFrom is another pipeline that also has the queue and releases it later, or "".
	TakeOverFrom string
	// MaxAttempts replaces the pipeline's value for messages that fail in this queue. Zero keeps the pipeline's value.
	MaxAttempts int
	// FailedQueue gets the queue's failed messages in place of the pipeline's failed queue. Empty means that the queue
	// has no failed queue of its own. The pipeline declares and owns it, unless ForeignFailedQueue is set.
	FailedQueue        string
	ForeignFailedQueue bool
	// PolicyDefinition has more keys for the queue's policy. They take precedence over the pipeline's, and nil removes a
	// key.
	PolicyDefinition topology.Arguments
}

// Worker returns the sidecar's view of the work queue.
func (w WorkQueue) Worker() WorkerQueue {
	return WorkerQueue{MaxAttempts: w.MaxAttempts, FailedQueue: WorkerFailedQueue{w.FailedQueue, w.DeclaresFailedQueue()}}
}

// ByPolicy reports whether a policy attaches the queue.
func (w WorkQueue) ByPolicy() bool { return w.Attach != AttachArguments }

// DeclaresFailedQueue reports whether the pipeline or attachment creates a failed queue for the work queue.
func (w WorkQueue) DeclaresFailedQueue() bool { return w.FailedQueue != "" && !w.ForeignFailedQueue }

// Strategy returns the queue's dead-letter strategy.
func (w WorkQueue) Strategy() string {
	if w.Type == topology.Quorum {
		return cmp.Or(w.DeadLetterStrategy, topology.AtLeastOnce)
	}
	return cmp.Or(w.DeadLetterStrategy, topology.AtMostOnce)
}

// deadLettering returns the policy keys that make the queue dead-letter to an exchange.
func (w WorkQueue) deadLettering(exchange string) topology.Arguments {
	keys := topology.Arguments{"dead-letter-exchange": exchange}
	if w.Strategy() == topology.AtLeastOnce {
		keys["dead-letter-strategy"] = topology.AtLeastOnce
		keys["overflow"] = "reject-publish"
	}
	return keys
}

// MaxDelay is the longest TTL that a broker accepts, ten years (rabbit_misc:check_expiry).
const MaxDelay = 315_360_000_000 * time.Millisecond

// ParseDelay reads a Go duration that a retry queue can wait: zero, or 1ms up to MaxDelay. It must be in whole
// milliseconds, the unit of a queue's TTL.
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

// ParseMaxAge reads a Go duration after which a message is too old for a retry. It must be in whole milliseconds, the
// unit of the times in its headers.
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

// FormatDelay spells a delay for names and binding keys. It is Go's spelling without zero units, so 60 seconds are "1m"
// and 90 minutes "1h30m".
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

// FormatMilliseconds spells a broker's number of milliseconds like a delay.
func FormatMilliseconds(n int64) string {
	if n > MaxDelay.Milliseconds() || n < 0 {
		return fmt.Sprintf("%dms", n)
	}
	return FormatDelay(time.Duration(n) * time.Millisecond)
}
