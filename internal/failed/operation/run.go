package operation

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/transfer"
)

// foreignScan is how many messages of a queue of others are looked at, unless the options say how many.
const foreignScan = 100

// AMQP tells nobody but who may configure a queue whether it has a delivery limit, and nobody at all what a policy says.
// A message that is put back more often than the limit allows is deleted, or dead-lettered.
const (
	// mostLooks is how often a message was put back when it is looked at no more.
	mostLooks = 3
	// usualLimit is that of a quorum queue of RabbitMQ 4 that has no other one.
	usualLimit = 20
)

// Options say how much is done with a queue.
type Options struct {
	// Scan is how many messages are looked at, 0 for all, or 100 of a queue of others; and Limit how many are acted on, 0 for all.
	Scan, Limit int
	// Force looks although the queue may delete what is looked at too often.
	Force bool
}

// Run is an operation on a queue.
type Run struct {
	*Target
	Options
	// ID names it, in records and in the headers of what it publishes.
	ID string
	// Limited says that the queue may delete what is looked at too often.
	Limited bool
	// Progress is told every second how far it is; nil for nobody.
	Progress func(transfer.Progress)

	// serving is the broker, frameMax the size of its frames, and release what it is.
	serving  amqpconn.URI
	frameMax int
	release  string
}

// Guard begins a run. Unless nothing is looked at, it finds out whether the queue of others may delete what is.
func (t *Target) Guard(ctx context.Context, o Options, looks bool) (*Run, error) {
	conn, serving, err := t.connect(ctx, "look")
	if err != nil {
		return nil, err
	}
	defer amqpconn.HangUp(conn.Connection)
	r := &Run{Target: t, Options: o, ID: newID(), serving: serving, frameMax: conn.Config.FrameSize}
	r.release, _ = conn.Connection.Properties["version"].(string)
	if err := t.recognize(ctx, conn); err != nil {
		return nil, err
	}
	if o.Scan == 0 && t.Pipeline == "" && t.Delayed == "" {
		r.Scan = foreignScan
	}
	if !looks || t.isKept() || o.Force && t.OfWorkQueues() {
		return r, nil // by force: the user says that the pipeline declares it
	}
	kind, err := t.queue().KindOver(ctx, conn)
	if kind == transfer.Stream {
		err = fmt.Errorf("queue %q is a stream, which keeps its messages whoever reads them: there is nothing to replay or to take out", t.Name)
	}
	r.Limited = kind == transfer.Quorum && !o.Force
	return r, err
}

// newID is short enough to be read out.
func newID() string {
	id := make([]byte, 4)
	_, _ = rand.Read(id) // never fails
	return hex.EncodeToString(id)
}

// Look is what a look has found.
type Look struct {
	transfer.Result
	// Timeless is how many messages have no time, and so are not within any.
	Timeless int
	// Missing are the ids and message-ids that the filter names and no message has.
	Missing []string
	// Absent are the runs that the filter names and no message is of.
	Absent []string
	// Selected is how many messages the filter selects.
	Selected int
}

// ErrTooOften says that a message was put back so often that a delivery limit may delete it.
var ErrTooOften = errors.New("deletes what is put back too often")

// Look hands over the messages that the filter selects, until there are enough. All are put back.
func (r *Run) Look(ctx context.Context, filter failed.Filter, visit func(*failed.Entry) (enough bool)) (Look, error) {
	selector := filter.Selector()
	var look Look
	var refused error
	job := transfer.Job{Scan: r.Scan, OneFirst: r.Limited, Decide: func(e *failed.Entry) transfer.Verdict {
		if r.Limited && e.DeliveryCount >= mostLooks { // if it is the first one, no other was delivered
			refused = fmt.Errorf("a message of %q was put back %d times already, and a delivery limit, which AMQP does not tell, %w: "+
				"one of %d, the default of RabbitMQ 4, leaves %d looks. Set delivery-limit to -1 in a policy (RabbitMQ 4)",
				r.Name, e.DeliveryCount, ErrTooOften, usualLimit, max(0, usualLimit-e.DeliveryCount-1))
			return transfer.Verdict{Last: true}
		}
		if !selector.Selects(e) {
			return transfer.Verdict{}
		}
		look.Selected++
		return transfer.Verdict{Last: visit(e)}
	}}
	result, err := r.goOver(ctx, job)
	if refused != nil {
		return Look{}, errors.Join(refused, err)
	}
	if err == nil && result.Interrupted {
		err = fmt.Errorf("stopped after %s; all put back", failed.Messages(result.Seen))
	}
	look.Result, look.Timeless, look.Missing, look.Absent = result, selector.Timeless, selector.Missing(), selector.Absent()
	return look, err
}

func (r *Run) goOver(ctx context.Context, job transfer.Job) (transfer.Result, error) {
	job.Progress = r.Progress
	return transfer.Run(ctx, r.queue(), job)
}

// ErrNoRun says that no message is of a run that is named.
var ErrNoRun = errors.New("no message is of the run")

// NotFound is an error if messages that were named are not there.
func (l *Look) NotFound(queue string) (err error) {
	if len(l.Missing) > 0 {
		err = fmt.Errorf("%s not found in %q", failed.Count(len(l.Missing), "id"), queue)
	}
	if len(l.Absent) > 0 {
		err = errors.Join(err, fmt.Errorf("%w %s in %q", ErrNoRun, strings.Join(l.Absent, ", "), queue))
	}
	return err
}

// Chosen are the messages that are acted on, by digest: equal messages share one, and are meant as often as they were added.
type Chosen map[string]int

// Add adds a message.
func (c Chosen) Add(e *failed.Entry) { c[e.Digest]++ }

// take reports whether a message is meant, and takes it off.
func (c Chosen) take(e *failed.Entry) bool {
	if c[e.Digest] == 0 {
		return false
	}
	c[e.Digest]--
	return true
}

// Total is how many messages are meant.
func (c Chosen) Total() (n int) {
	for _, times := range c {
		n += times
	}
	return n
}

// Choose looks for the messages that the filter selects, and chooses the first ones up to the limit.
func (r *Run) Choose(ctx context.Context, filter failed.Filter) (Look, Chosen, error) {
	chosen, n := Chosen{}, 0
	look, err := r.Look(ctx, filter, func(e *failed.Entry) (enough bool) {
		if n++; r.Limit == 0 || n <= r.Limit {
			chosen.Add(e)
		}
		return false
	})
	return look, chosen, err
}

// fewFound are as many messages as are kept of those that are found.
const fewFound = 5

// Finding is what was found of one message.
type Finding struct {
	Look
	// Entries are by id the messages that it may be: one if it is found. Of several there are the first ones.
	Entries map[string]*failed.Entry
	// Equal is how many messages have each id, as far as they were looked at.
	Equal map[string]int
}

// Find looks for a message by the beginning of its id, or its message-id. With a whole id it looks no further than to the message.
func (r *Run) Find(ctx context.Context, wanted string) (Finding, error) {
	prefix := strings.ToLower(wanted)
	byID, named, equal := map[string]*failed.Entry{}, map[string]*failed.Entry{}, map[string]int{}
	look, err := r.Look(ctx, failed.Filter{}, func(e *failed.Entry) (enough bool) {
		found := byID
		if e.MessageID == wanted {
			found = named
		} else if !strings.HasPrefix(e.ID, prefix) {
			return false
		}
		equal[e.ID]++
		if len(found) < fewFound {
			found[e.ID] = e
		}
		return e.ID == wanted
	})
	if len(named) > 0 {
		byID = named
	}
	return Finding{look, byID, equal}, err
}
