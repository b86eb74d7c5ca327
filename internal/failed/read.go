package failed

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/content"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delaying"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
)

// Headers that a replay adds.
const (
	// HeaderReplayCount is how often the message was replayed.
	HeaderReplayCount = "replay-count"
	// HeaderReplayedAt is the time of the last replay, in milliseconds since the epoch.
	HeaderReplayedAt = "replayed-at"
	// HeaderReplayID is the id of the run that replayed the message last.
	HeaderReplayID = "replay-id"
)

// Read returns the facts about a message's failure. It accepts properties of any content.
func Read(m Message) Entry {
	properties, err := content.Parse(m.Properties)
	d := digest(m, &properties, err == nil)
	e := Entry{Message: m, ID: d, Digest: d, FirstRoutingKey: m.RoutingKey, Unreadable: err}
	if err != nil {
		return e
	}
	f := readFields(properties.Headers())
	if m.isImported() {
		if id := f.text(HeaderID); IsID(id) {
			e.ID = id
		}
		e.Run = f.text(HeaderRun)
	}
	e.MessageID = properties.Text(content.MessageID)
	e.Replays, e.ReplayID = f.positive(HeaderReplayCount), f.text(HeaderReplayID)
	if m.Redelivered { // otherwise the header can come from another queue
		e.DeliveryCount = f.positive("x-delivery-count")
	}
	if strings.HasPrefix(properties.Text(content.Type), wrapperType) {
		e.wrapper, e.Refusal = unwrap(e.Body)
	}
	e.Pipeline = f.text(deadletter.HeaderPipeline)
	owner, deaths := PipelineOf(m.Queue), f.deaths(m.Queue)
	switch {
	case e.isUnrouted(deaths):
		e.readUnrouted(f, deaths)
	case owner != "" && len(deaths) > 0 && deaths[0].queue == owner.Inbox():
		e.readInbox(f, owner, deaths)
	case f.text(deadletter.HeaderDeadLetterReason) != "":
		e.readWorker(f, deaths)
	default:
		e.readForeign(f, deaths)
	}
	if isParked := e.System == SystemWorker || e.System == SystemInbox; isParked && e.WorkQueue != "" {
		e.wrapper, e.Refusal = nil, nil // this is the message that the work queue had
	}
	return e
}

// PipelineOf is the pipeline whose failed queue has this name, "" if the name does not end like a failed queue's.
func PipelineOf(queue string) pipeline.Names {
	return ownerOf[pipeline.Names](queue, pipeline.Names("").FailedQueue())
}

// ownerOf is the name without the suffix, "" if it does not end in the suffix.
func ownerOf[N ~string](name, suffix string) N {
	begin, found := strings.CutSuffix(name, suffix)
	if !found {
		return ""
	}
	return N(begin)
}

// readWorker reads a message that a worker parked, or a consumer that counts attempts itself. Such a consumer does not write
// down the first exchange and routing key, so they come from the message's deaths.
func (e *Entry) readWorker(f fields, deaths []death) {
	e.System = SystemWorker
	e.Reason = f.text(deadletter.HeaderDeadLetterReason)
	e.WorkQueue = f.text(deadletter.HeaderQueue)
	e.FailedAt = f.millis(deadletter.HeaderDeadLetterAt)
	if f.text(deadletter.HeaderPipeline) == "" && len(deaths) > 0 {
		d := e.failure(f, deaths)
		e.FirstExchange, e.FirstRoutingKey = d.exchange, d.key
		e.WorkQueue = cmp.Or(e.WorkQueue, d.queue)
	}
	if e.readProgress(f); e.Error == "" && e.Exception == "" { // a library can have published it to the dead-letter exchange
		other := Entry{Message: e.Message, wrapper: e.wrapper}
		other.readForeign(f, nil)
		e.errorOf, e.Error, e.Exception = other.System, other.Error, other.Exception
		e.Refusal = cmp.Or(e.Refusal, other.Refusal)
	}
}

// readProgress reads what a worker wrote about the attempts.
func (e *Entry) readProgress(f fields) {
	e.Error, e.Exception = f.text(deadletter.HeaderDeadLetterError), f.text(deadletter.HeaderDeadLetterException)
	e.Attempts, e.MaxAttempts = f.positive(deadletter.HeaderCount), f.positive(deadletter.HeaderMaxAttempts)
	e.FirstFailedAt = f.millis(deadletter.HeaderFirstFailedAt)
	e.History = deadletter.ParseHistory(f.text(deadletter.HeaderHistory))
	if exchange, ok := f[deadletter.HeaderExchange].Text(); ok {
		e.FirstExchange = exchange
	}
	if key, ok := f[deadletter.HeaderRoutingKey].Text(); ok {
		e.FirstRoutingKey = key
	}
}

// readInbox reads a message that the broker moved from the inbox to the failed queue, because the worker crashed over it or
// could not republish it. If the retry headers name this pipeline and the message's work queue, they describe the previous
// attempt.
func (e *Entry) readInbox(f fields, names pipeline.Names, deaths []death) {
	e.System, e.Reason, e.FailedAt = SystemInbox, deadletter.ReasonMalformed, deaths[0].at
	wrote := f.text(deadletter.HeaderQueue)
	for _, d := range deaths[1:] {
		if !names.OwnsQueue(d.queue) {
			e.WorkQueue, e.FirstExchange, e.FirstRoutingKey = d.queue, d.exchange, d.key
			break
		}
	}
	if e.WorkQueue == "" && !names.OwnsQueue(wrote) {
		e.WorkQueue = wrote
	}
	if f.text(deadletter.HeaderPipeline) == string(names) && e.WorkQueue == wrote {
		e.readProgress(f)
	}
	e.Error, e.Exception = f.text(deadletter.HeaderDeadLetterError), f.text(deadletter.HeaderDeadLetterException)
}

// HasRead reports whether the entry's fields contain the whole header in a more readable form.
func (e *Entry) HasRead(header string) bool {
	read := []string{deadletter.HeaderDeadLetterError, deadletter.HeaderDeadLetterException, deadletter.HeaderHistory}
	return e.System == SystemWorker && slices.Contains(read, header) || e.System == SystemDelayed && delaying.IsBit(header)
}

// maxDeaths is how many entries of x-death are read. The broker keeps one per queue and reason.
const maxDeaths = 64

// death is an entry of x-death. It counts the deaths in a queue for a reason; exchange, key and time are of the first of them.
type death struct {
	queue, reason, exchange, key string
	at                           time.Time
	count                        int64
}

// deaths reads x-death, newest first. It skips rejections in the message's own queue, since a failed queue dead-letters to
// itself.
func (f fields) deaths(queue string) []death {
	list, ok := f["x-death"].Array()
	if !ok {
		return nil
	}
	var deaths []death
	for value := range list.All() {
		table, ok := value.Table()
		if d := readDeath(table); ok && d.queue != "" && d.queue != queue {
			deaths = append(deaths, d)
		}
		if len(deaths) == maxDeaths {
			break
		}
	}
	return deaths
}

func readDeath(t content.Table) death {
	f := readFields(t)
	d := death{queue: f.text("queue"), reason: f.text("reason"), exchange: f.text("exchange")}
	d.count = max(f.positive("count"), f.digits("count")) // some clients make texts of all values
	d.at, _ = f["time"].Time()
	if keys, ok := f["routing-keys"].Array(); ok {
		key, _ := keys.First()
		d.key, _ = key.Text()
	}
	return d
}
