package deadletter

import (
	"errors"
	"math"
	"strconv"
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
	// After is the shortest delay that the consumer asked for. It is negative if the consumer asked for no delay.
	After time.Duration
	// AfterUnreadable says that the consumer asked for a delay that cannot be read.
	AfterUnreadable bool

	// dead says that the broker dead-lettered the message. Otherwise a client published it.
	dead bool
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

// Read reads a delivery. It accepts headers of any type and content. An invalid header counts as absent.
func (p *Pipeline) Read(d *amqp.Delivery) Letter {
	if d.Exchange == p.Names.ReturnExchange() {
		return p.readLost(d)
	}
	return p.readFailed(d)
}

// readLost reads a message that the return exchange could not route, so that its alternate exchange brought it here. It
// counts no attempt, since no consumer had the message.
func (p *Pipeline) readLost(d *amqp.Delivery) Letter {
	l := Letter{Lost: true, After: -1, Queue: queueName(d.Headers[HeaderQueue]), RoutingKey: d.RoutingKey}
	if p.Names.OwnsQueue(l.Queue) || d.Headers[HeaderPipeline] != string(p.Names) {
		l.Queue = ""
	}
	l.Reason, _ = d.Headers[HeaderReason].(string)
	if at, ok := Integer(d.Headers[HeaderDueAt]); ok && at > 0 {
		l.DueAt = at
	}
	l.readProgress(d.Headers)
	return l
}

// readFailed reads a message from the dead-letter exchange, where the broker publishes and consumers can publish.
func (p *Pipeline) readFailed(d *amqp.Delivery) Letter {
	l := Letter{After: -1, RoutingKey: d.RoutingKey, Reason: pipeline.ReasonRejected}
	if last := newestDeath(d.Headers); p.isDeath(last, d.Headers) {
		l.dead = true
		l.Queue, l.Reason, l.Exchange, l.RoutingKey = last.queue, last.reason, last.exchange, last.key
	} else if queue := queueName(d.Headers[HeaderQueue]); p.hasWorkQueue(queue) {
		l.Queue = queue
	}

	l.Never = d.Headers[HeaderHint] == HintNever
	copied, wasHere := p.areCopied(d.Headers, l.Queue), d.Headers[HeaderPipeline] != nil
	// Without retry-pipeline, the retry headers are the publisher's own, or a consumer's first hints.
	l.foreign = copied || l.dead && !wasHere
	if !copied {
		l.After, l.AfterUnreadable = readAfter(d.Headers)
	}
	if wasHere && !copied {
		l.readProgress(d.Headers)
	}
	if l.Count < math.MaxInt64 {
		l.Count++
	}
	return l
}

// areCopied reports whether the retry headers were written for another queue. Consumers that publish elsewhere often
// copy all headers. Headers about this queue stay valid, even if another pipeline had the queue before. If the queue is
// not known, retry-queue still says which queue the consumer meant.
func (p *Pipeline) areCopied(h amqp.Table, queue string) bool {
	wroteQueue, hasQueue := h[HeaderQueue]
	if queue != "" && hasQueue {
		_, named := h[HeaderPipeline].(string)
		return wroteQueue != queue || h[HeaderPipeline] != nil && !named
	}
	return p.areOfAnother(h)
}

// areOfAnother reports whether the retry headers name another pipeline.
func (p *Pipeline) areOfAnother(h amqp.Table) bool {
	pipeline, found := h[HeaderPipeline]
	return found && pipeline != string(p.Names)
}

func (p *Pipeline) hasWorkQueue(queue string) bool {
	_, ok := p.Worker.WorkQueues[queue]
	return ok
}

// readProgress reads the headers that the worker wrote when the message was here before.
func (l *Letter) readProgress(h amqp.Table) {
	if count, ok := Integer(h[HeaderCount]); ok && count > 0 {
		l.Count = count
	}
	if at, ok := Integer(h[HeaderFirstFailedAt]); ok && at > 0 {
		l.FirstFailedAt = at
	}
	l.History = parseHistory(h[HeaderHistory])
	if exchange, ok := shortString(h[HeaderExchange]); ok {
		l.Exchange = exchange
	}
	if key, ok := shortString(h[HeaderRoutingKey]); ok {
		l.RoutingKey = key
	}
}

// readAfter reads how long the consumer asked to wait. It reports whether the consumer asked with an unreadable value.
func readAfter(h amqp.Table) (after time.Duration, unreadable bool) {
	value, asked := h[HeaderAfter]
	ms, ok := Milliseconds(value)
	if !ok || ms < 0 {
		return -1, asked
	}
	// Half of the longest duration is 146 years, which leaves room for another wait.
	return time.Duration(min(ms, math.MaxInt64/2/int64(time.Millisecond))) * time.Millisecond, false
}

// queueName returns "" if the value cannot be the name of a queue.
func queueName(value any) string {
	name, _ := shortString(value)
	return name
}

func shortString(value any) (string, bool) {
	s, ok := value.(string)
	if !ok || len(s) > maxShortString {
		return "", false
	}
	return s, true
}

// Milliseconds reads every type that the plugin for delayed messages reads: integers of every width, also as text, and
// floating-point numbers, truncated. A number beyond an int64 becomes the largest or the smallest int64.
func Milliseconds(value any) (ms int64, ok bool) {
	switch value := value.(type) {
	case string:
		n, err := strconv.ParseInt(value, 10, 64)
		return n, err == nil || errors.Is(err, strconv.ErrRange)
	case float32:
		return truncated(float64(value))
	case float64:
		return truncated(value)
	default:
		return Integer(value)
	}
}

func truncated(f float64) (int64, bool) {
	switch {
	case math.IsNaN(f):
		return 0, false
	case f >= math.MaxInt64:
		return math.MaxInt64, true
	case f <= math.MinInt64:
		return math.MinInt64, true
	}
	return int64(f), true
}

// Integer reads any of AMQP's integer types, since clients in other languages choose the smallest one.
func Integer(value any) (int64, bool) {
	switch n := value.(type) {
	case int64:
		return n, true
	case int32:
		return int64(n), true
	case int:
		return int64(n), true
	case int16:
		return int64(n), true
	case int8:
		return int64(n), true
	case uint8:
		return int64(n), true
	case uint16:
		return int64(n), true
	case uint32:
		return int64(n), true
	}
	return 0, false
}
