package deadletter

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
)

// Letter is the credible part of a delivery from the inbox.
type Letter struct {
	// Queue is the work queue that the message failed in. It is "" if the queue is not known.
	Queue string
	// Lost says that the message did not fail, but that the return exchange had no binding for it. Either the binding
	// of its work queue is missing, or the message must wait once more.
	Lost bool
	// Reason is why the message was dead-lettered.
	Reason string
	// Count is the number of failed attempts, this one included.
	Count int64
	// Exchange and RoutingKey are where the message was first published.
	Exchange, RoutingKey string
	// FirstFailedAt is in milliseconds since the epoch. It is 0 if this is the first failure.
	FirstFailedAt int64
	// History has the earlier failures, newest first.
	History []Failure
	// Never is the consumer's word that the message will never succeed.
	Never bool
	// DueAt is when a wait of several delays ends, in milliseconds since the epoch. It is 0 if the message does not
	// come from one.
	DueAt int64
	// After is the shortest delay that the consumer asked for. It is negative if the consumer asked for no delay. NotBefore
	// is the consumer's date for the next attempt, or zero.
	After     time.Duration
	NotBefore time.Time
	// AfterUnreadable says that the consumer asked for a delay that cannot be read.
	AfterUnreadable bool
	// Unreadable is the header without which the number of attempts or their age is not known. It is "" if both are known.
	Unreadable string

	// dead says that the broker dead-lettered the message. Otherwise a client published it.
	dead bool
	// answers says that a client published the message to the return exchange without saying that it failed before.
	answers bool
	// retryAfter says that the consumer asked for the wait with [HeaderRetryAfter].
	retryAfter bool
	// foreign says that the retry headers are about another queue, or are the publisher's own.
	foreign bool
}

// age is how long ago the message failed first. It is 0 for a future time, which only another clock can have written.
// No message is older than the epoch, so the difference fits.
func (l Letter) age(now time.Time) time.Duration {
	if l.FirstFailedAt == 0 {
		return 0
	}
	return time.Duration(max(0, now.UnixMilli()-l.FirstFailedAt)) * time.Millisecond
}

// Read reads a delivery. It accepts headers of any type and content.
func (p *Pipeline) Read(d *amqp.Delivery) Letter {
	if d.Exchange == p.Names.ReturnExchange() && isReturning(d.Headers) {
		return p.readLost(d)
	}
	return p.readFailed(d)
}

// isReturning reports whether a worker has sent the message to the return exchange, or an operator has put a failed
// message there. Only a worker writes the address of a work queue into CC, and only messages that must wait once more
// have none. All others there come from programs that publish to the exchange that delivered a message to them.
func isReturning(h amqp.Table) bool {
	keys, _ := h[HeaderCC].([]any)
	return has(h, HeaderDueAt) || has(h, HeaderDeadLetterReason) || slices.ContainsFunc(keys, func(key any) bool {
		return strings.HasPrefix(asText(key), pipeline.ReturnKey(""))
	})
}

// readLost reads a message that the return exchange could not route, so that its alternate exchange brought it here. It
// counts no attempt, since no consumer had the message.
func (p *Pipeline) readLost(d *amqp.Delivery) Letter {
	l := Letter{Lost: true, After: -1, Queue: queueName(d.Headers[HeaderQueue]), RoutingKey: d.RoutingKey}
	if p.Names.OwnsQueue(l.Queue) || asText(d.Headers[HeaderPipeline]) != string(p.Names) {
		l.Queue = ""
	}
	l.Reason = asText(d.Headers[HeaderReason])
	l.readProgress(d.Headers)
	l.Unreadable = ""
	l.DueAt = l.progress(d.Headers, HeaderDueAt, 1, 0)
	return l
}

// readFailed reads a message from the dead-letter exchange, where the broker publishes and consumers can publish, or
// one that a consumer published to the return exchange.
func (p *Pipeline) readFailed(d *amqp.Delivery) Letter {
	l := Letter{After: -1, RoutingKey: d.RoutingKey, Reason: pipeline.ReasonRejected}
	last, answers := newestDeath(d.Headers), d.Exchange == p.Names.ReturnExchange()
	switch {
	case !answers && p.isDeath(last, d.Headers):
		l.dead = true
		l.Queue, l.Reason, l.Exchange, l.RoutingKey = last.queue, last.reason, last.exchange, last.key
	case answers && !has(d.Headers, HeaderQueue):
		l.Queue, l.answers = p.answeredQueue(d.RoutingKey), true
	default:
		l.Queue = p.workQueue(queueName(d.Headers[HeaderQueue]))
	}
	l.Never = isNever(d.Headers[HeaderHint])
	copied := p.areCopied(d.Headers, l.Queue)
	wasHere := has(d.Headers, HeaderPipeline) || !l.dead && has(d.Headers, HeaderQueue)
	// Without retry-pipeline, the retry headers of a rejected message are the publisher's own.
	l.foreign = copied || l.dead && !wasHere
	if !copied {
		l.readAfter(d.Headers)
	}
	if wasHere && !copied {
		l.readProgress(d.Headers)
	}
	if l.Count < math.MaxInt64 {
		l.Count++
	}
	return l
}

func has(h amqp.Table, key string) bool {
	_, found := h[key]
	return found
}

// areCopied reports whether the retry headers were written for another queue. Consumers that publish elsewhere often
// copy all headers. Headers about this queue stay valid, even if another pipeline had the queue before. If either queue
// is not known, retry-pipeline decides.
func (p *Pipeline) areCopied(h amqp.Table, queue string) bool {
	if wrote, readable := shortString(h[HeaderQueue]); queue != "" && readable {
		return wrote != queue
	}
	return p.areOfAnother(h)
}

// areOfAnother reports whether the retry headers name another pipeline.
func (p *Pipeline) areOfAnother(h amqp.Table) bool {
	name, readable := shortString(h[HeaderPipeline])
	return readable && name != string(p.Names)
}

func (p *Pipeline) hasWorkQueue(queue string) bool { return p.workQueue(queue) != "" }

// workQueue returns "" if the queue is no work queue of the configuration.
func (p *Pipeline) workQueue(name string) string {
	if _, ok := p.Worker.WorkQueues[name]; ok {
		return name
	}
	return ""
}

// answeredQueue is the work queue of a message that was published to the return exchange without saying which: the one
// that its routing key names, or the only one.
func (p *Pipeline) answeredQueue(key string) string {
	if queues := p.WorkQueues(); len(queues) == 1 {
		return queues[0]
	}
	return p.workQueue(key)
}

// readProgress reads the headers that the worker wrote when the message was here before. If one cannot be read, the
// history stands in for it.
func (l *Letter) readProgress(h amqp.Table) {
	l.History = ParseHistory(asText(h[HeaderHistory]))
	var newest, oldest Failure
	if n := len(l.History); n > 0 {
		newest, oldest = l.History[0], l.History[n-1]
	}
	l.Count = l.progress(h, HeaderCount, 0, newest.Attempt)
	l.FirstFailedAt = l.progress(h, HeaderFirstFailedAt, 1, oldest.At)
	if exchange, ok := shortString(h[HeaderExchange]); ok {
		l.Exchange = exchange
	}
	if key, ok := shortString(h[HeaderRoutingKey]); ok {
		l.RoutingKey = key
	}
}

// progress reads a number that is not below the least one. It returns 0 if the header is absent, and the other number if
// the header cannot be read.
func (l *Letter) progress(h amqp.Table, key string, least, other int64) int64 {
	if !has(h, key) {
		return 0
	}
	n, ok := whole(h[key])
	if ok && n >= least {
		return n
	}
	if other < 1 {
		l.Unreadable = cmp.Or(l.Unreadable, key)
	}
	return other
}

// readAfter reads how long the consumer asked to wait. On a message that the broker dead-lettered, retry-after is the
// publisher's own.
func (l *Letter) readAfter(h amqp.Table) {
	var ok bool
	switch l.After, ok = readWait(h[HeaderAfter], time.Millisecond); {
	case ok:
		return
	case l.dead || !has(h, HeaderRetryAfter):
		l.AfterUnreadable = has(h, HeaderAfter)
	default:
		if l.After, ok = readWait(h[HeaderRetryAfter], time.Second); !ok {
			l.NotBefore, ok = httpDate(h[HeaderRetryAfter])
		}
		l.retryAfter, l.AfterUnreadable = ok, !ok
	}
}
