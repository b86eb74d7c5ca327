package failed

import (
	"cmp"
	"errors"
	"strconv"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/content"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delaying"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
)

// Why a message cannot be replayed.
var (
	ErrNoWorkQueue = errors.New("it does not say which queue it failed in")
	ErrTooLarge    = errors.New("its headers do not fit a frame of the connection: raise the broker's frame_max")
)

// frameOverhead is what a frame with a content header has besides the properties: type, channel, size and end;
// class, weight and body size.
const frameOverhead = 8 + 12

// persistent is the delivery mode of messages that survive a restart.
const persistent = 2

// Publishing is a message to publish, mandatory.
type Publishing struct {
	Exchange, RoutingKey string
	Properties           []byte
	Body                 []byte
	// Line is where it stands in a file, 0 if it comes from a queue. Of is the digest of the message there, or its id in the file.
	Line int
	Of   string
}

// Replay says how messages are replayed.
type Replay struct {
	// Pipeline is the one that they go through. With "", those that a worker has parked go through the one that they name, and
	// others straight to their queue.
	Pipeline pipeline.Names
	// Delayed is the delayed exchange whose unrouted queue they lie in, "" for any other queue.
	Delayed delayed.Names
	// To is a queue that they go to instead of the one that they failed in.
	To string
	// ID is that of the run.
	ID string
	// FrameMax is the connection's limit in bytes, 0 for none.
	FrameMax int
}

// Publishing builds what is published. What the message says of earlier attempts is left out, so that a worker
// counts from 1; what says where it came from stays.
func (r Replay) Publishing(e *Entry, now time.Time) (Publishing, error) {
	properties, err := content.Parse(e.Properties)
	if err != nil {
		return Publishing{}, err
	}
	if r.To == "" && r.Delayed != "" {
		return r.goesOn(e, properties, now)
	}
	queue := cmp.Or(r.To, e.WorkQueue)
	if queue == "" {
		return Publishing{}, ErrNoWorkQueue
	}
	if r.Pipeline == "" && r.To == "" && e.System == SystemWorker {
		r.Pipeline = pipeline.Names(e.Pipeline)
	}
	p := Publishing{RoutingKey: queue, Body: e.Body}
	headers := r.headers(e, &properties, queue, now)
	if r.To == "" && r.Pipeline != "" {
		route := deadletter.ReturnRoute(r.Pipeline, queue, e.FirstRoutingKey)
		p.Exchange, p.RoutingKey = route.Exchange, route.Key
		headers = headers.With("CC", list(route.CC))
	}
	if e.System == SystemBabelQueue {
		p.Body = babelRestored(e.Body)
	}
	properties.Remove(content.Expiration)
	if r.Pipeline != "" {
		properties.SetNumber(content.DeliveryMode, persistent)
	}
	return p, r.complete(&p, properties, headers)
}

// complete gives the message its properties, without those that the broker refuses of whoever replays it.
func (r Replay) complete(p *Publishing, properties content.Properties, headers content.Table) error {
	properties.SetHeaders(headers)
	properties.Remove(content.UserID) // the broker refuses that of another user
	moveReplyTo(&properties, r.aside().ReplyTo)
	p.Properties = properties.Encode()
	return Fits(p.Properties, r.FrameMax)
}

// aside are the headers for what the message cannot have: whoever gets it next knows its own.
func (r Replay) aside() deadletter.Aside {
	if r.Delayed != "" && r.To == "" {
		return delaying.Aside()
	}
	return deadletter.AsideOfPipelines()
}

// Fits is an error if properties do not fit a frame.
func Fits(properties []byte, frameMax int) error {
	if frameMax > 0 && len(properties)+frameOverhead > frameMax {
		return ErrTooLarge
	}
	return nil
}

// headers are those that stay, and what is added.
func (r Replay) headers(e *Entry, p *content.Properties, queue string, now time.Time) content.Table {
	before := p.Headers()
	kept := make(content.Table, 0, len(before)+512)
	for name, value := range before.All() {
		if !r.drops(e, string(name), value) {
			kept = kept.With(string(name), e.restored(string(name), value))
		}
	}
	if user := p.Text(content.UserID); user != "" {
		kept = set(kept, r.aside().UserID, content.Text(user))
	}
	if r.Pipeline != "" {
		kept = r.address(kept, e, p, queue)
	}
	kept = set(kept, HeaderReplayCount, e.number(e.Replays+1))
	kept = set(kept, HeaderReplayedAt, e.number(now.UnixMilli()))
	return set(kept, HeaderReplayID, content.Text(r.ID))
}

// address adds what a worker needs to send the message back to its queue, and to know its origin. Without the
// name of the pipeline that it goes through, the worker takes the rest for somebody else's.
func (r Replay) address(t content.Table, e *Entry, p *content.Properties, queue string) content.Table {
	t = set(t, deadletter.HeaderPipeline, content.Text(string(r.Pipeline)))
	t = set(t, deadletter.HeaderQueue, content.Text(queue))
	t = set(t, deadletter.HeaderExchange, content.Text(e.FirstExchange))
	t = set(t, deadletter.HeaderRoutingKey, content.Text(e.FirstRoutingKey))
	_, kept := t.Get(deadletter.HeaderDeliveryMode)
	if mode := p.Number(content.DeliveryMode); mode != persistent && !kept {
		t = t.With(deadletter.HeaderDeliveryMode, content.Long(int64(mode))) //nolint:gosec // one byte
	}
	return t
}

// drops reports whether a header is left out: what a broker, a worker or a library wrote about failures.
func (r Replay) drops(e *Entry, name string, value content.Value) bool {
	if deadletter.IsAddress(name) && r.Delayed != "" && r.To == "" {
		return false // still the keys that it is routed by
	}
	if isImports(name) || deadletter.IsBrokers(name) || deadletter.IsForgotten(name) {
		return true
	}
	if name == deadletter.HeaderHint { // any other value is the publisher's own
		text, _ := value.Text()
		return text == deadletter.HintNever
	}
	isForeign := e.System != SystemWorker && e.System != SystemInbox && e.System != SystemDelayed
	return isForeign && isFault(name)
}

// restored is the value without what a library has noted in it, or 0 of the same type where a library counts attempts.
func (e *Entry) restored(name string, value content.Value) content.Value {
	if notes, ok := value.Table(); ok && name == rascalNotes {
		// With one of these, Rascal rejects the message before the application sees it, until the broker has counted another death.
		kept := notes.Keep(func(note []byte) bool { return string(note) != rascalRecovery && string(note) != rascalError })
		return content.Value{Type: value.Type, Bytes: kept}
	}
	if _, ok := value.Integer(); !ok || !e.isCounter(name) {
		return value
	}
	return content.Value{Type: value.Type, Bytes: make([]byte, len(value.Bytes))}
}

// number is what a replay adds. Watermill refuses messages with headers that are no texts.
func (e *Entry) number(n int64) content.Value {
	if e.System == SystemWatermill {
		return content.Text(strconv.FormatInt(n, 10))
	}
	return content.Long(n)
}

// set replaces all values of this name.
func set(t content.Table, name string, value content.Value) content.Table {
	if _, found := t.Get(name); found {
		t = t.Keep(func(key []byte) bool { return string(key) != name })
	}
	return t.With(name, value)
}

func list(texts []string) content.Value {
	values := make([]content.Value, len(texts))
	for i, text := range texts {
		values[i] = content.Text(text)
	}
	return content.List(values...)
}
