package pipeline

import (
	"hash/fnv"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/stored"
)

// Separator is reserved: policy names are built with it, so pipeline names may not contain it and
// two pipelines can never meet in one policy.
const Separator = "/"

// Binding key prefixes of a pipeline's direct exchanges, and what the worker publishes with in
// place of an original routing key that begins with one of them.
const (
	DelayKeyPrefix  = "delay:"
	ReturnKeyPrefix = "return:"
	FailedKeyPrefix = "failed:"
	EscapedKey      = "retry-escaped"
)

// RefusedKey binds the refused queue to the retry exchange. No delay is spelled like that.
const RefusedKey = DelayKeyPrefix + "refused"

// KeyPrefixes begin all binding keys of the direct exchanges by which a message comes back to its work queue.
func KeyPrefixes() []string { return []string{DelayKeyPrefix, ReturnKeyPrefix, stored.NoteKeyPrefix} }

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

// RefusedQueue keeps failed messages that a queue did not take, for the broker to give them to all queues behind the failed
// exchange. The pipeline's policy covers its name, which is none of a delay.
func (n Names) RefusedQueue() string { return n.retryQueuePrefix() + "0.refused" }

// FailedExchange leads to the pipeline's failed queue.
func (n Names) FailedExchange() string { return string(n) + ".failed" }

// FailedRouteExchange is where the worker publishes what is no longer retried: it leads to the failed queue of the work
// queue, and where that has none, to the failed exchange.
func (n Names) FailedRouteExchange() string { return string(n) + ".failed.route" }

// FailedQueue keeps what is no longer retried.
func (n Names) FailedQueue() string { return string(n) + ".failed" }

// DelayKey is the key that binds the retry queue of the delay to the retry exchange.
func DelayKey(delay time.Duration) string { return DelayKeyPrefix + FormatDelay(delay) }

// ReturnKey is the key that binds the work queue to the return exchange.
func ReturnKey(workQueue string) string { return ReturnKeyPrefix + workQueue }

// FailedKey is the key that binds the failed queue of a work queue to the exchange that routes failed messages.
func FailedKey(workQueue string) string { return FailedKeyPrefix + workQueue }

// OwnsQueue reports whether the name is one that the pipeline gives to its own queues: the inbox,
// the failed queue, the retry queue of any delay, or that of what was refused.
func (n Names) OwnsQueue(queue string) bool {
	_, isRetry := n.DelayOf(queue)
	return isRetry || slices.Contains([]string{n.Inbox(), n.FailedQueue(), n.RefusedQueue()}, queue)
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
	delay, err := ParseDelay(spelled)
	return delay, err == nil && FormatDelay(delay) == spelled
}

// WorkerExchanges lists those that the sidecar publishes to.
func (n Names) WorkerExchanges() []string {
	return []string{n.RetryExchange(), n.ReturnExchange(), n.FailedRouteExchange(), n.FailedExchange()}
}

// Exchanges lists those that any engine has.
func (n Names) Exchanges() []string {
	return append([]string{n.DeadLetterExchange()}, n.WorkerExchanges()...)
}

// Retries reports whether a message in this exchange is retried, or on its way back to a work queue.
func (n Names) Retries(exchange string) bool {
	return slices.Contains([]string{n.DeadLetterExchange(), n.RetryExchange(), n.ReturnExchange()}, exchange)
}

// deadLetterExchanges are what policies of pipelines dead-letter to, whatever their engine.
func (n Names) deadLetterExchanges() []string {
	return []string{n.DeadLetterExchange(), n.FailedExchange(), n.FailedRouteExchange(), n.RetryExchange()}
}

// ownExchanges is how the names of a pipeline's exchanges end.
var ownExchanges = Names("").Exchanges()

// OwnsExchange reports whether the name is one that the pipeline gives to its exchanges.
func (n Names) OwnsExchange(exchange string) bool {
	rest, named := strings.CutPrefix(exchange, string(n))
	return named && slices.Contains(ownExchanges, rest)
}

func (n Names) retryQueuePrefix() string { return n.RetryExchange() + "." }

// maxPattern is the longest pattern, in bytes, that RabbitMQ takes from 4.3 on.
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

// spread divides names into numbered groups so that a pattern holds each. A name's group depends on nothing
// but the name and the highest number of groups, which may be 1, 2, 4 and so on: a name that comes or goes
// moves no other. When the number doubles, each group gives some names to one that is new, and when it
// halves, two become one: policies that are created first and deleted last leave no name without one in
// between.
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

// Notes are kept at two exchanges that each engine has.
func (n Names) Notes() stored.Notes { return stored.Notes{n.ReturnExchange(), n.FailedExchange()} }
