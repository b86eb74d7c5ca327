package failed

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/content"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
)

// Headers that a replay adds.
const (
	// HeaderReplayCount is how often the message was replayed.
	HeaderReplayCount = "replay-count"
	// HeaderReplayedAt is when, last, in milliseconds since the epoch.
	HeaderReplayedAt = "replayed-at"
	// HeaderReplayID is that of the run that replayed it last.
	HeaderReplayID = "replay-id"
)

// Read returns what a message says of its failure. It takes properties of any content.
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
	if m.Redelivered { // or the header is that of another queue
		e.DeliveryCount = f.positive(headerDeliveryCount)
	}
	e.Pipeline = f.text(deadletter.HeaderPipeline)
	owner, deaths := pipelineOf(m.Queue), f.deaths(m.Queue)
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
	return e
}

// pipelineOf is the pipeline whose failed queue it is by its name, "" if it is none.
func pipelineOf(queue string) pipeline.Names {
	return ownerOf[pipeline.Names](queue, pipeline.Names("").FailedQueue())
}

// ownerOf is the beginning of a name that ends like this, "" if it ends otherwise.
func ownerOf[N ~string](name, suffix string) N {
	begin, found := strings.CutSuffix(name, suffix)
	if !found {
		return ""
	}
	return N(begin)
}

// readWorker reads what a worker has parked, or a consumer that counts. The latter does not say how the message was
// published first; its deaths do.
func (e *Entry) readWorker(f fields, deaths []death) {
	e.System = SystemWorker
	e.Reason = f.text(deadletter.HeaderDeadLetterReason)
	e.WorkQueue = f.text(deadletter.HeaderQueue)
	e.FailedAt = f.millis(deadletter.HeaderDeadLetterAt)
	if f.text(deadletter.HeaderPipeline) == "" && len(deaths) > 0 {
		d := e.failure(deaths)
		e.FirstExchange, e.FirstRoutingKey = d.exchange, d.key
		e.WorkQueue = cmp.Or(e.WorkQueue, d.queue)
	}
	e.readProgress(f)
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

// readInbox reads what a broker has moved from the inbox to the failed queue, because a worker could not
// republish it or ended over it. The retry headers are about the round before, if they are this pipeline's and
// about the queue that the message failed in.
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

// HasRead reports whether the entry has all of this header, and in better shape.
func (e *Entry) HasRead(header string) bool {
	read := []string{deadletter.HeaderDeadLetterError, deadletter.HeaderDeadLetterException, deadletter.HeaderHistory}
	return e.System == SystemWorker && slices.Contains(read, header)
}

const headerDeath = "x-death"

// maxDeaths are as many entries of x-death as are looked at: the broker has one per queue and reason.
const maxDeaths = 64

// death is an entry of x-death.
type death struct {
	queue, reason, exchange, key string
	at                           time.Time
}

// deaths reads x-death, newest first, but for rejections in the queue that the message lies in: a failed
// queue dead-letters to itself.
func (f fields) deaths(queue string) []death {
	list, ok := f[headerDeath].Array()
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
	d.at, _ = f["time"].Time()
	if keys, ok := f["routing-keys"].Array(); ok {
		key, _ := keys.First()
		d.key, _ = key.Text()
	}
	return d
}
