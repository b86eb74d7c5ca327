package pipeline

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// Separator is reserved: policy names are built with it, so pipeline names may not contain it and
// two pipelines can never meet in one policy.
const Separator = "/"

// Binding key prefixes of a pipeline's direct exchanges, and what the worker publishes with in
// place of an original routing key that begins with one of them.
const (
	DelayKeyPrefix  = "delay:"
	ReturnKeyPrefix = "return:"
	EscapedKey      = "retry-escaped"
)

// Names of the objects of one pipeline.
type Names string

// DeadLetterExchange is where work queues dead-letter to.
func (n Names) DeadLetterExchange() string { return string(n) + ".dlx" }

// Inbox is the queue that the worker consumes.
func (n Names) Inbox() string { return string(n) + ".inbox" }

// RetryExchange is where the worker publishes what has to wait.
func (n Names) RetryExchange() string { return string(n) + ".retry" }

// RetryQueue is where messages wait for the delay.
func (n Names) RetryQueue(delay time.Duration) string {
	return n.retryQueuePrefix() + FormatDelay(delay)
}

// ReturnExchange is where messages go when their wait is over.
func (n Names) ReturnExchange() string { return string(n) + ".return" }

// FailedExchange is where the worker publishes what is not retried any more.
func (n Names) FailedExchange() string { return string(n) + ".failed" }

// FailedQueue holds what is not retried any more.
func (n Names) FailedQueue() string { return string(n) + ".failed" }

// SharedPolicy is the policy of work queues that need the same content. There are several, from number 0
// on, where one pattern cannot hold all queues.
func (n Names) SharedPolicy(i int) string { return numbered("retry/"+string(n)+"/queues", i) }

// QueuePolicy is the policy of one work queue that needs another content than the rest.
func (n Names) QueuePolicy(workQueue string) string { return n.queuePolicyPrefix() + workQueue }

// ShieldPolicy is the policy of the pipeline's own queues.
func (n Names) ShieldPolicy() string { return "retry/" + string(n) + "/own" }

// FallbackPolicy is the policy of work queues to which their own does not apply any more; numbered
// likewise.
func (n Names) FallbackPolicy(i int) string { return numbered("retry/"+string(n)+"/fallback", i) }

// AttachmentPolicy is the policy of a queue that is attached from outside of the pipeline's configuration.
func (n Names) AttachmentPolicy(queue string) string {
	return "retry/" + string(n) + "/attachment/" + queue
}

// AttachmentFallbackPolicy is what FallbackPolicy is, for such a queue.
func (n Names) AttachmentFallbackPolicy(queue string) string {
	return "retry/" + string(n) + "/attachment-fallback/" + queue
}

// DelayKey is the key that binds the retry queue of the delay to the retry exchange.
func DelayKey(delay time.Duration) string { return DelayKeyPrefix + FormatDelay(delay) }

// ReturnKey is the key that binds the work queue to the return exchange.
func ReturnKey(workQueue string) string { return ReturnKeyPrefix + workQueue }

// OwnsQueue tells whether the name is one that the pipeline gives to its own queues: the inbox,
// the failed queue, or the retry queue of any delay.
func (n Names) OwnsQueue(queue string) bool {
	_, isRetry := n.DelayOf(queue)
	return isRetry || queue == n.Inbox() || queue == n.FailedQueue()
}

// DelayOf reads the delay out of a retry queue's name; false if it is not such a name.
func (n Names) DelayOf(queue string) (time.Duration, bool) {
	spelled, found := strings.CutPrefix(queue, n.retryQueuePrefix())
	if !found {
		return 0, false
	}
	delay, err := parseCanonicalDelay(spelled)
	return delay, err == nil
}

func (n Names) exchanges() []string {
	return []string{n.DeadLetterExchange(), n.FailedExchange(), n.RetryExchange(), n.ReturnExchange()}
}

func (n Names) OwnsExchange(exchange string) bool {
	return slices.Contains(n.exchanges(), exchange)
}

func (n Names) retryQueuePrefix() string { return n.RetryExchange() + "." }

func (n Names) ownsPolicy(policy string) bool {
	return policy == n.ShieldPolicy() || n.isSharedPolicy(policy) || isNumbered(policy, n.FallbackPolicy(0)) ||
		strings.HasPrefix(policy, n.queuePolicyPrefix())
}

func (n Names) isSharedPolicy(policy string) bool { return isNumbered(policy, n.SharedPolicy(0)) }

func numbered(name string, i int) string {
	if i == 0 {
		return name
	}
	return name + "/" + strconv.Itoa(i)
}

func isNumbered(name, first string) bool {
	number, found := strings.CutPrefix(name, first)
	i, err := strconv.Atoi(strings.TrimPrefix(number, "/"))
	return found && (number == "" || err == nil && i > 0 && name == numbered(first, i))
}

func (n Names) queuePolicyPrefix() string { return "retry/" + string(n) + "/queue/" }
