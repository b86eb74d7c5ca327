package operation

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/transfer"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
)

// foreignScan is how many messages are read from a queue that is not a pipeline's, unless the options set a number.
const foreignScan = 100

// AMQP tells a queue's delivery limit only to users with the permission configure, and never tells a policy's limit. A quorum
// queue deletes or dead-letters messages that were put back more often.
const (
	// mostLooks is how often a message can have been put back before a run refuses to read it again, apart from the run's own looks.
	mostLooks = 3
	// usualLimit is the default delivery limit of quorum queues in RabbitMQ 4.
	usualLimit = 20
)

// Options limit a run.
type Options struct {
	// Scan is how many messages are read, 0 for all, or for 100 of a queue that is not a pipeline's. Limit is how many are acted
	// on, 0 for all.
	Scan, Limit int
	// Force reads messages although the queue could delete them after too many looks.
	Force bool
}

// Run is an operation on a queue.
type Run struct {
	*Target
	Options
	// ID identifies the run, in records and in headers of the messages that it publishes.
	ID string
	// Limited says that the queue can delete messages after too many looks.
	Limited bool
	// takes is how many messages the queue hands over, 0 for all.
	takes int
	// Progress is called every second; it can be nil.
	Progress func(transfer.Progress)
	// Saved keeps the chosen messages before they are taken out, nil for no copy.
	Saved *Sink

	// serving is the connected broker, frameMax its largest frame in bytes, and release its version.
	serving  amqpconn.URI
	frameMax int
	// looks is how often the run has gone over the queue.
	looks   int64
	release string
}

// Guard begins a run. If the run looks at messages, Guard finds out whether the queue can delete them after too many looks.
func (t *Target) Guard(ctx context.Context, o Options, looks bool) (*Run, error) {
	conn, serving, err := t.connect(ctx, "look")
	if err != nil {
		return nil, err
	}
	defer amqpconn.HangUp(conn.Connection)
	r := &Run{Target: t, Options: o, ID: newID(), serving: serving, frameMax: conn.Config.FrameSize}
	r.release, _ = conn.Connection.Properties["version"].(string)
	if err := cmp.Or(refuseOwn(ctx, conn, t.Name), t.recognize(ctx, conn)); err != nil {
		return nil, err
	}
	if t.Pipeline == "" && t.Delayed == "" {
		r.Scan = cmp.Or(o.Scan, foreignScan)
		r.takes = r.Scan
	}
	if !looks || t.isKept() || o.Force && t.OfWorkQueues() {
		return r, nil // with Force, the user says that the pipeline declares the queue
	}
	kind, err := t.queue().KindOver(ctx, conn)
	if kind == amqp.QueueTypeStream {
		err = fmt.Errorf("queue %q is a stream, which keeps messages after they are read: they cannot be replayed or taken out", t.Name)
	}
	r.Limited = kind == amqp.QueueTypeQuorum && !o.Force
	return r, err
}

// Broker is the address of the connected broker, without credentials.
func (r *Run) Broker() string { return r.serving.String() }

// FrameMax is the connection's largest frame, in bytes.
func (r *Run) FrameMax() int { return r.frameMax }

// newID is short enough to read aloud.
func newID() string {
	id := make([]byte, 4)
	_, _ = rand.Read(id) // never fails
	return fmt.Sprintf("%x", id)
}

// Look is the result of a look at the queue.
type Look struct {
	transfer.Result
	// Timeless is how many messages the filter's bounds of time excluded because they have no time.
	Timeless int
	// Missing are the filter's ids and message-ids without a message.
	Missing []string
	// Absent are the filter's runs without a message.
	Absent []string
	// Selected is how many messages the filter selects.
	Selected int
}

// Look passes the messages that the filter selects to visit, until visit has enough. It puts all messages back.
func (r *Run) Look(ctx context.Context, filter failed.Filter, visit func(*failed.Entry) (enough bool)) (Look, error) {
	selector := filter.Selector()
	var look Look
	var refused error
	job := transfer.Job{Scan: r.Scan, OneFirst: r.Limited, Decide: func(e *failed.Entry) transfer.Choice {
		if r.Limited && e.DeliveryCount >= mostLooks+r.looks { // if it is the first message, no other one was delivered
			refused = r.tooOften(e)
			return transfer.Choice{Last: true}
		}
		if !selector.Selects(e) {
			return transfer.Choice{}
		}
		look.Selected++
		return transfer.Choice{Last: visit(e)}
	}}
	result, err := r.goOver(ctx, job)
	if refused != nil {
		return Look{}, errors.Join(refused, err)
	}
	if err == nil && result.Interrupted {
		back := "all put back"
		if result.Uncounted {
			back = "put back"
		}
		err = fmt.Errorf("stopped after %s; %s", failed.Messages(result.Seen), back)
	}
	look.Result, look.Timeless, look.Missing, look.Absent = result, selector.Timeless, selector.Missing(), selector.Absent()
	return look, err
}

// tooOften says that a message was put back so often that a delivery limit can delete it next time, and what to do.
func (r *Run) tooOften(e *failed.Entry) error {
	if p := pipeline.Names(e.Pipeline); r.Pipeline == "" && p != "" && p.FailedQueue() == r.Name {
		return fmt.Errorf("%q seems to be the failed queue of pipeline %q: write the pipeline's name instead of --queue", r.Name, p)
	}
	declared := ""
	if r.OfWorkQueues() {
		declared = fmt.Sprintf(". If pipeline %q declares the queue, --force is enough; its configuration (--config) would show that", r.Pipeline)
	}
	return fmt.Errorf("a message of %q was put back %d times already, and the next look can delete it. AMQP does not tell the delivery "+
		"limit; %d, the default of RabbitMQ 4, leaves %d looks. Set delivery-limit to -1 in a policy (RabbitMQ 4), and write --force%s",
		r.Name, e.DeliveryCount, usualLimit, max(0, usualLimit-e.DeliveryCount-1), declared)
}

func (r *Run) goOver(ctx context.Context, job transfer.Job) (transfer.Result, error) {
	job.Progress, job.Takes = r.Progress, r.takes
	job.Nacks = r.Limited && !transfer.CountsNacks(r.release)
	defer func() { r.looks++ }()
	return transfer.Run(ctx, r.queue(), job)
}

// ErrNoRun says that no message belongs to the run that the filter names.
var ErrNoRun = errors.New("no message belongs to the run")

// NotFound is an error if an id or a run of the filter has no message.
func (l *Look) NotFound(queue string) (err error) {
	if len(l.Missing) > 0 {
		err = fmt.Errorf("%s not found in %q", failed.Count(len(l.Missing), "id"), queue)
	}
	if len(l.Absent) > 0 {
		err = errors.Join(err, fmt.Errorf("%w %s in %q", ErrNoRun, strings.Join(l.Absent, ", "), queue))
	}
	return err
}

// Chosen counts the messages to act on by digest. Equal messages share a digest, so the number says how many of them are
// chosen.
type Chosen map[string]int

// Add chooses a message.
func (c Chosen) Add(e *failed.Entry) { c[e.Digest]++ }

// take reports whether the message is chosen, and removes it from the chosen ones.
func (c Chosen) take(e *failed.Entry) bool {
	if c[e.Digest] == 0 {
		return false
	}
	c[e.Digest]--
	return true
}

// Total is the number of chosen messages.
func (c Chosen) Total() (n int) {
	for _, times := range c {
		n += times
	}
	return n
}

// choose chooses a message, and saves it.
func (r *Run) choose(chosen Chosen, e *failed.Entry) {
	chosen.Add(e)
	if r.Saved != nil {
		r.Saved.Write(e)
	}
}

// Choose looks at the queue, and chooses the messages that the filter selects, up to the limit.
func (r *Run) Choose(ctx context.Context, filter failed.Filter) (Look, Chosen, error) {
	chosen, n := Chosen{}, 0
	look, err := r.Look(ctx, filter, func(e *failed.Entry) (enough bool) {
		if n++; r.Limit == 0 || n <= r.Limit {
			r.choose(chosen, e)
		}
		return false
	})
	return look, chosen, err
}

// fewFound is how many found messages are kept.
const fewFound = 5

// Finding is the result of a search for one message.
type Finding struct {
	Look
	// Entries are the messages that match, by id: one if the search was unambiguous. If there are many, it has the first ones.
	Entries map[string]*failed.Entry
	// Equal is how many messages have each id, among the messages that were read.
	Equal map[string]int
}

// minPrefix is how many digits of an id must be given.
const minPrefix = 4

// Looker is a [Run] or a look at messages that are [Waiting].
type Looker interface {
	Look(ctx context.Context, filter failed.Filter, visit func(*failed.Entry) (enough bool)) (Look, error)
}

// Find searches a message by the beginning of its id, at least 4 digits, or by its message-id. If the text is a whole id, the
// search ends at the message.
func Find(ctx context.Context, in Looker, wanted string) (Finding, error) {
	byID, named, equal := map[string]*failed.Entry{}, map[string]*failed.Entry{}, map[string]int{}
	look, err := in.Look(ctx, failed.Filter{}, func(e *failed.Entry) (enough bool) {
		found := byID
		if e.MessageID == wanted {
			found = named
		} else if len(wanted) < minPrefix || !strings.EqualFold(e.ID[:min(len(wanted), len(e.ID))], wanted) {
			return false
		}
		equal[e.ID]++
		if len(found) < fewFound || e.ID == wanted {
			found[e.ID] = e
		}
		return e.ID == wanted
	})
	if len(named) > 0 {
		byID = named
	}
	if e, is := byID[wanted]; is { // the id of a waiting message can be a prefix of another id
		byID = map[string]*failed.Entry{wanted: e}
	}
	return Finding{look, byID, equal}, err
}
