package operation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/file"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/transfer"
)

// ImportOptions say how messages of a file are imported.
type ImportOptions struct {
	// Replays sends them to the work queues that they failed in.
	Replays bool
	// Replaces puts them in the place of those in the queue that have the same ids.
	Replaces bool
	// Duplicates imports also what is in the queue already.
	Duplicates bool
}

// Looks reports whether the queue is looked at.
func (o ImportOptions) Looks() bool { return !o.Replays && !o.Duplicates }

// Import puts messages of a file into the queue.
type Import struct {
	*Run
	ImportOptions
	// Total is how many messages the file has, and Present how many are in the queue already.
	Total, Present int
	// Notes are what was changed or left out, and of how many messages.
	Notes map[string]int
	// Runs are how many messages of the file each earlier import has put into the queue.
	Runs map[string]int

	file io.ReadSeeker
	// read is how many messages were read of the file last.
	read int
	how  failed.Import
	back failed.Replay
	// ids are the messages of the file and those of the queue, order the ids as they come in the file. Neither has anything if
	// the queue is not looked at.
	ids   map[string]*sameID
	order []string
	// kept is how many messages of the queue are kept to be shown.
	kept int
}

// NewImport is an import of a file. It is read once more after [Import.Check].
func (r *Run) NewImport(o ImportOptions, f io.ReadSeeker) *Import {
	user := r.serving.Username()
	return &Import{
		Run: r, ImportOptions: o, file: f, ids: map[string]*sameID{}, Notes: map[string]int{}, Runs: map[string]int{},
		how:  failed.Import{Exchange: r.Entrance(), Queue: r.Name, User: user, Run: r.ID, FrameMax: r.frameMax},
		back: failed.Replay{Pipeline: r.Pipeline, Delayed: r.Delayed, ID: r.ID, FrameMax: r.frameMax},
	}
}

// Check reads the whole file, from where it is read first, and notes what an import will change. Meant are the messages that are not
// left out.
func (i *Import) Check(from io.Reader) (meant int, err error) {
	next := i.messages(from, func(id string, m failed.Message, line int) bool {
		if i.Looks() {
			i.noteLine(id, m, line)
		}
		return true
	})
	for ; ; meant++ {
		if _, ok, err := next(); err != nil || !ok {
			i.Total = i.read
			return meant, err
		}
	}
}

// Compare looks what of the file is in the queue already. It is a [ConflictError] if that has other messages of the same ids.
func (i *Import) Compare(ctx context.Context) error {
	if len(i.ids) == 0 {
		return nil
	}
	if err := i.count(ctx); err != nil {
		return err
	}
	i.Present = i.present()
	return i.conflicts()
}

// messages reads from the first one, and leaves out what could not be published, and what the function does not take. It is
// false after the last one.
func (i *Import) messages(
	from io.Reader, takes func(id string, m failed.Message, line int) bool,
) func() (failed.Publishing, bool, error) {
	reader := file.NewReader(from)
	i.read = 0
	return func() (p failed.Publishing, ok bool, err error) {
		for {
			m, err := reader.Next()
			if errors.Is(err, io.EOF) {
				return p, false, nil
			}
			if err != nil {
				return p, false, err
			}
			i.read++
			p, changes, ok, err := i.publishing(m, reader.ID)
			if err != nil {
				return p, false, fmt.Errorf("line %d: %w", reader.Line, err)
			}
			if !ok || !takes(reader.ID, m, reader.Line) {
				continue
			}
			for _, change := range changes {
				i.Notes[change]++
			}
			p.Line, p.Of = reader.Line, reader.ID
			return p, true, nil
		}
	}
}

// publishing is false for a message that cannot be published.
func (i *Import) publishing(m failed.Message, id string) (p failed.Publishing, changes []string, ok bool, err error) {
	if err := failed.Publishable(m.Properties); err != nil {
		return p, nil, false, err
	}
	if i.Replays {
		e := failed.Read(m)
		p, err := i.back.Publishing(&e, time.Now())
		return p, nil, i.note(err), nil
	}
	how := i.how
	if s := i.ids[id]; i.Replaces && s != nil && len(s.queued) > 0 {
		how.Run = "" // or "delete --run" would take out what has no other copy
	}
	p, changes, err = how.Publishing(m, id)
	return p, changes, i.note(err), nil
}

// note counts a message that cannot be published.
func (i *Import) note(err error) bool {
	if err != nil {
		i.Notes["skipped: "+err.Error()]++
	}
	return err == nil
}

// rest reads the file again, without what is in the queue already, and begins the notes anew.
func (i *Import) rest() (func() (failed.Publishing, bool, error), error) {
	if _, err := i.file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	i.Present = 0
	clear(i.Notes)
	return i.messages(i.file, func(id string, m failed.Message, _ int) bool {
		if i.isPresent(id, m) {
			i.Present++
			return false
		}
		return true
	}), nil
}

// Publish imports what is not in the queue already.
func (i *Import) Publish(ctx context.Context) (transfer.Result, error) {
	next, err := i.rest()
	if err != nil {
		return transfer.Result{}, err
	}
	return transfer.Send(ctx, i.queue(), transfer.Sending{
		Next: next,
		Done: func(p failed.Publishing, o transfer.Outcome) {
			if s := i.ids[p.Of]; s != nil && o == transfer.Confirmed {
				s.confirmed++
			}
		},
		Progress: i.Progress,
	})
}

// Try notes what [Import.Publish] would change and leave out.
func (i *Import) Try() error {
	next, err := i.rest()
	for more := err == nil; more; {
		_, more, err = next()
	}
	return err
}

// Fresh is how many messages can be taken out again without losing one: those that replaced another one cannot.
func (i *Import) Fresh(p transfer.Result) (n int) {
	if i.Replays {
		return 0
	}
	if !i.Replaces {
		return p.Confirmed
	}
	for _, s := range i.ids {
		if len(s.queued) == 0 {
			n += s.confirmed
		}
	}
	return n
}

// Counts are those of the record.
func (i *Import) Counts(p, removed transfer.Result) map[string]int {
	return map[string]int{
		"read": i.Total, "imported": p.Confirmed, "returned": p.Returned, "refused": p.Refused, "too_large": len(p.Oversized),
		"unconfirmed": p.Uncertain, "present": i.Present, "replaced": removed.Dropped, "duplicated": 0,
	}
}

// Unfinished is an error unless all messages are in the queue, and in the place of others for good.
func (i *Import) Unfinished(p, removed transfer.Result) error {
	switch {
	case p.Confirmed+i.Present < i.Total:
		return fmt.Errorf("not all messages were imported: %d returned, %d refused, %d too large, %d unconfirmed",
			p.Returned, p.Refused, len(p.Oversized), p.Uncertain)
	case removed.Dropped < i.ToReplace() || removed.Unverified:
		return errors.New("not all messages were replaced for good")
	}
	return nil
}
