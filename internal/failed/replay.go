package failed

import (
	"cmp"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/content"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delaying"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
)

// Why a message cannot be replayed.
var (
	ErrNoWorkQueue = errors.New("the message does not say which queue it failed in")
	ErrTooLarge    = errors.New("the headers do not fit a frame of the connection: raise the broker's frame_max")
)

// frameOverhead is the size of a content header frame without the properties. The frame has type, channel, size and end; the
// header has class, weight and body size.
const frameOverhead = 8 + 12

// persistent is the delivery mode of messages that survive a restart.
const persistent = 2

// Publishing is a message to publish with the flag mandatory.
type Publishing struct {
	Exchange, RoutingKey string
	Properties           []byte
	Body                 []byte
	// Line is the message's line in a file, 0 if it comes from a queue. Of is the digest of the message in the queue, or its id
	// in the file.
	Line int
	Of   string
}

// Replay says how messages are replayed.
type Replay struct {
	// Pipeline is the pipeline that the messages go through. If it is "", messages that a worker parked go through the pipeline
	// that they name, and all others straight to their queue.
	Pipeline pipeline.Names
	// Delayed is the delayed exchange whose unrouted queue has the messages, "" for any other queue.
	Delayed delayed.Names
	// To is the queue to send messages to, "" for the queues where they failed.
	To string
	// ID is the run's id.
	ID string
	// FrameMax is the connection's limit in bytes, 0 for none.
	FrameMax int
}

// Publishing builds the message to publish. It leaves out headers about earlier attempts, so that a worker counts from 1, and
// keeps headers about the message's origin.
func (r Replay) Publishing(e *Entry, now time.Time) (Publishing, error) {
	properties, err := content.Parse(e.Properties)
	if err != nil {
		return Publishing{}, err
	}
	if r.To == "" && r.Delayed != "" {
		return r.goesOn(e, properties, now)
	}
	if e.Refusal != nil {
		return Publishing{}, e.Refusal
	}
	queue := cmp.Or(r.To, e.WorkQueue)
	if queue == "" {
		return Publishing{}, ErrNoWorkQueue
	}
	if r.Pipeline == "" && r.To == "" && e.System == SystemWorker {
		r.Pipeline = pipeline.Names(e.Pipeline)
	}
	p := Publishing{RoutingKey: queue, Body: e.Body}
	if e.wrapper != nil {
		properties, p.Body = e.wrapper.original, []byte(*e.wrapper.Message)
	}
	headers := r.headers(e, &properties, queue, now)
	if r.To == "" && r.Pipeline != "" {
		route := deadletter.ReturnRoute(r.Pipeline, queue, e.FirstRoutingKey)
		p.Exchange, p.RoutingKey = route.Exchange, route.Key
		var copies []content.Value
		for _, key := range route.CC {
			copies = append(copies, content.Text(key))
		}
		headers = headers.With("CC", content.List(copies...))
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

// complete sets the properties. It moves user-id and reply-to into headers if the broker would refuse them from the user who
// replays.
func (r Replay) complete(p *Publishing, properties content.Properties, headers content.Table) error {
	properties.SetHeaders(headers)
	properties.Remove(content.UserID) // the broker refuses another user's name
	moveReplyTo(&properties, r.aside().ReplyTo)
	p.Properties = properties.Encode()
	return fits(p.Properties, r.FrameMax)
}

// aside are the headers for properties that were moved. The next reader of the message knows only its own names for them.
func (r Replay) aside() deadletter.Aside {
	if r.Delayed != "" && r.To == "" {
		return delaying.Aside()
	}
	return deadletter.AsideOfPipelines()
}

// fits returns [ErrTooLarge] if the encoded properties do not fit one frame. A frameMax of 0 means no limit.
func fits(properties []byte, frameMax int) error {
	if frameMax > 0 && len(properties)+frameOverhead > frameMax {
		return ErrTooLarge
	}
	return nil
}

// headers are the headers to keep and the headers that a replay adds.
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

// address adds the headers that a worker needs to return the message to its queue and to know its origin. Without the
// pipeline's name, the worker would ignore the other headers as another pipeline's.
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

// drops reports whether to leave out a header because a broker, a worker or a library describes failures in it.
func (r Replay) drops(e *Entry, name string, value content.Value) bool {
	if deadletter.IsAddress(name) && r.Delayed != "" && r.To == "" {
		return false // a delayed exchange still routes by these keys
	}
	if isImports(name) || deadletter.IsBrokers(name) || deadletter.IsForgotten(name) {
		return true
	}
	if name == deadletter.HeaderHint { // any other value comes from the publisher
		text, _ := value.Text()
		return strings.EqualFold(text, deadletter.HintNever)
	}
	return e.isFault(name)
}

// restored is the value without a library's notes about the failure. A library's count of attempts becomes 0 of the same
// type.
func (e *Entry) restored(name string, value content.Value) content.Value {
	if notes, ok := value.Table(); ok && name == "rascal" {
		// If a note of these stays, Rascal rejects the message before the application sees it, until the broker has counted another
		// death.
		kept := notes.Keep(func(note []byte) bool { return string(note) != "recovery" && string(note) != "error" })
		return content.Value{Type: value.Type, Bytes: kept}
	}
	_, isInteger := value.Integer()
	switch {
	case !e.isCounter(name):
		return value
	case value.Type == content.TypeText:
		return content.Text("0")
	case isInteger:
		return content.Value{Type: value.Type, Bytes: make([]byte, len(value.Bytes))}
	}
	return value
}

// number is a number for a header that a replay adds. Watermill refuses messages whose headers are not texts.
func (e *Entry) number(n int64) content.Value {
	if e.System == SystemWatermill {
		return content.Text(strconv.FormatInt(n, 10))
	}
	return content.Long(n)
}

// set replaces all values of the header.
func set(t content.Table, name string, value content.Value) content.Table {
	if _, found := t.Get(name); found {
		t = t.Keep(func(key []byte) bool { return string(key) != name })
	}
	return t.With(name, value)
}
