package pipeline

import (
	"hash/fnv"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/stored"
)

// Separator separates the parts of policy names. Pipeline names must not contain it, so that two pipelines never share
// a policy name.
const Separator = "/"

// Prefixes of the binding keys of a pipeline's direct exchanges. If an original routing key begins with one of them,
// the worker publishes with EscapedKey instead.
const (
	DelayKeyPrefix  = "delay:"
	ReturnKeyPrefix = "return:"
	FailedKeyPrefix = "failed:"
	EscapedKey      = "retry-escaped"
)

// RefusedKey binds the refused queue to the retry exchange. It differs from the key of every delay.
const RefusedKey = DelayKeyPrefix + "refused"

// KeyPrefixes lists the prefixes of all binding keys that bring a message back to its work queue.
func KeyPrefixes() []string { return []string{DelayKeyPrefix, ReturnKeyPrefix, stored.NoteKeyPrefix} }

// Names is a pipeline's name, which determines the names of its objects.
type Names string

// DeadLetterExchange is the exchange that work queues dead-letter to.
func (n Names) DeadLetterExchange() string { return string(n) + ".dlx" }

// Inbox is the queue that the worker consumes.
func (n Names) Inbox() string { return string(n) + ".inbox" }

// RetryExchange is the exchange where the worker publishes messages that must wait.
func (n Names) RetryExchange() string { return string(n) + ".retry" }

// RetryQueue is the queue where messages wait for this delay.
func (n Names) RetryQueue(delay time.Duration) string {
	return n.retryQueuePrefix() + FormatDelay(delay)
}

// ReturnExchange is the exchange that messages reach after their wait.
func (n Names) ReturnExchange() string { return string(n) + ".return" }

// RefusedQueue keeps failed messages that a queue refused. From there the broker publishes them again to all queues
// behind the failed exchange. The pipeline's policy covers its name, which differs from that for any delay.
func (n Names) RefusedQueue() string { return n.retryQueuePrefix() + "0.refused" }

// FailedExchange leads to the pipeline's failed queue.
func (n Names) FailedExchange() string { return string(n) + ".failed" }

// FailedRouteExchange is the exchange where the worker publishes failed messages. It routes to the work queue's own
// failed queue, or otherwise to the failed exchange.
func (n Names) FailedRouteExchange() string { return string(n) + ".failed.route" }

// FailedQueue keeps messages that are no longer retried.
func (n Names) FailedQueue() string { return string(n) + ".failed" }

// DelayKey is the key that binds the retry queue of the delay to the retry exchange.
func DelayKey(delay time.Duration) string { return DelayKeyPrefix + FormatDelay(delay) }

// ReturnKey is the key that binds the work queue to the return exchange.
func ReturnKey(workQueue string) string { return ReturnKeyPrefix + workQueue }

// FailedKey is the key that binds the failed queue of a work queue to the exchange that routes failed messages.
func FailedKey(workQueue string) string { return FailedKeyPrefix + workQueue }

// OwnsQueue reports whether a queue of the pipeline has this name: the inbox, the failed queue, the refused queue or
// the retry queue of any delay.
func (n Names) OwnsQueue(queue string) bool {
	_, isRetry := n.DelayOf(queue)
	return isRetry || slices.Contains([]string{n.Inbox(), n.FailedQueue(), n.RefusedQueue()}, queue)
}

// CoversQueue reports whether the pipeline's policy applies to a queue of this name, regardless of its owner. These are
// its own queues and all queues whose names look like retry queues.
func (n Names) CoversQueue(queue string) bool {
	delay, found := strings.CutPrefix(queue, n.retryQueuePrefix())
	likeRetry := found && delay != "" && '0' <= delay[0] && delay[0] <= '9'
	return likeRetry || queue == n.Inbox() || queue == n.FailedQueue()
}

// DelayOf returns the delay in a retry queue's name, and false for other names.
func (n Names) DelayOf(queue string) (time.Duration, bool) {
	spelled, found := strings.CutPrefix(queue, n.retryQueuePrefix())
	if !found {
		return 0, false
	}
	delay, err := ParseDelay(spelled)
	return delay, err == nil && FormatDelay(delay) == spelled
}

// WorkerExchanges lists the exchanges that the sidecar publishes to.
func (n Names) WorkerExchanges() []string {
	return []string{n.RetryExchange(), n.ReturnExchange(), n.FailedRouteExchange(), n.FailedExchange()}
}

// Exchanges lists the exchanges of all engines.
func (n Names) Exchanges() []string {
	return append([]string{n.DeadLetterExchange()}, n.WorkerExchanges()...)
}

// Retries reports whether messages in this exchange are retried or on their way back to a work queue.
func (n Names) Retries(exchange string) bool {
	return slices.Contains([]string{n.DeadLetterExchange(), n.RetryExchange(), n.ReturnExchange()}, exchange)
}

// deadLetterExchanges lists the exchanges that policies of a pipeline can dead-letter to, for all engines.
func (n Names) deadLetterExchanges() []string {
	return []string{n.DeadLetterExchange(), n.FailedExchange(), n.FailedRouteExchange(), n.RetryExchange()}
}

// ownExchanges has the suffixes of the names of a pipeline's exchanges.
var ownExchanges = Names("").Exchanges()

// OwnsExchange reports whether an exchange of the pipeline has this name.
func (n Names) OwnsExchange(exchange string) bool {
	rest, named := strings.CutPrefix(exchange, string(n))
	return named && slices.Contains(ownExchanges, rest)
}

func (n Names) retryQueuePrefix() string { return n.RetryExchange() + "." }

// maxPattern is the longest policy pattern, in bytes, that RabbitMQ accepts from 4.3 on.
const maxPattern = 1024

// ExactPattern matches these names and no others.
func ExactPattern(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = regexp.QuoteMeta(name)
	}
	return "^(" + strings.Join(quoted, "|") + ")$"
}

// pattern matches these work queues and the pipeline's own queues.
func (n Names) pattern(workQueues []string) string {
	patterns := n.ownPattern()
	if len(workQueues) > 0 {
		patterns = append(patterns, ExactPattern(workQueues))
	}
	return strings.Join(patterns, "|")
}

// spread divides names into groups that fit into one pattern each, by a hash. The number of groups is a power of two, so
// a name moves only if the number changes, and only to a created group or from a deleted one. Policies are created first
// and deleted last, so every name always has one. Filling pattern after pattern would move names between existing policies.
func spread(names []string) map[int][]string {
	for n := uint32(1); ; n *= 2 {
		groups := map[int][]string{}
		for _, name := range names {
			i := int(hash(name) % n)
			groups[i] = append(groups[i], name)
		}
		if fit(groups) {
			return groups
		}
	}
}

func hash(name string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return h.Sum32()
}

func fit(groups map[int][]string) bool {
	for _, names := range groups {
		if len(names) > 1 && len(ExactPattern(names)) > maxPattern {
			return false
		}
	}
	return true
}

// Notes returns the two exchanges that keep the pipeline's notes. Every engine has them.
func (n Names) Notes() stored.Notes { return stored.Notes{n.ReturnExchange(), n.FailedExchange()} }
