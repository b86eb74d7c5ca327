package pipeline

import (
	"slices"
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

// KeyPrefixes begin all binding keys of a pipeline's direct exchanges.
func KeyPrefixes() []string { return []string{DelayKeyPrefix, ReturnKeyPrefix, NoteKeyPrefix} }

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

// FailedExchange is where the worker publishes what is no longer retried.
func (n Names) FailedExchange() string { return string(n) + ".failed" }

// FailedQueue keeps what is no longer retried.
func (n Names) FailedQueue() string { return string(n) + ".failed" }

// DelayKey is the key that binds the retry queue of the delay to the retry exchange.
func DelayKey(delay time.Duration) string { return DelayKeyPrefix + FormatDelay(delay) }

// ReturnKey is the key that binds the work queue to the return exchange.
func ReturnKey(workQueue string) string { return ReturnKeyPrefix + workQueue }

// OwnsQueue reports whether the name is one that the pipeline gives to its own queues: the inbox,
// the failed queue, the retry queue of any delay, or that of what was caught.
func (n Names) OwnsQueue(queue string) bool {
	_, isRetry := n.DelayOf(queue)
	return isRetry || queue == n.Inbox() || queue == n.FailedQueue() || queue == n.CaughtQueue()
}

// CoversQueue reports whether the pipeline's policy applies to a queue of this name, whoever made it: its own
// queues, and all others whose names are like those of retry queues.
func (n Names) CoversQueue(queue string) bool {
	delay, found := strings.CutPrefix(queue, n.retryQueuePrefix())
	likeRetry := found && delay != "" && '0' <= delay[0] && delay[0] <= '9'
	return likeRetry || queue == n.Inbox() || queue == n.FailedQueue()
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

// deadLetterExchanges are what policies of pipelines dead-letter to, whatever their engine.
func (n Names) deadLetterExchanges() []string {
	return []string{n.DeadLetterExchange(), n.FailedExchange(), n.RetryExchange()}
}

// OwnsExchange reports whether the name is one that the pipeline gives to its exchanges.
func (n Names) OwnsExchange(exchange string) bool {
	return slices.Contains(n.exchanges(), exchange) || n.isCatchExchange(exchange)
}

func (n Names) retryQueuePrefix() string { return n.RetryExchange() + "." }
