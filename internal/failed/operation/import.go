package operation

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/file"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/transfer"
)

// Import puts messages of a file into the queue.
type Import struct {
	*Run
	// Replaces replaces the messages in the queue that have the same ids.
	Replaces bool
	// Duplicates also imports messages that are in the queue already, and does without a look at it.
	Duplicates bool
	// Total is how many messages the file has, and Present how many are in the queue already. ToReplace is how many messages
	// of the queue are replaced.
	Total, Present, ToReplace int
	// Notes count messages that were changed or left out, or seem wrong, by the change or the reason.
	Notes map[string]int
	// Runs count the file's messages that are in the queue already, by the run that imported them.
	Runs map[string]int

	file io.ReadSeeker
	// size is how many bytes of the file were checked.
	size int64
	// read is how many messages were read in the last pass over the file.
	read int
	how  failed.Import
	// ids has the messages of the file and of the queue. It is empty if the import does not look at the queue.
	ids map[string]*sameID
}

// NewImport prepares the import of a file, which is read again after [Import.Check].
func (r *Run) NewImport(f io.ReadSeeker) *Import {
	return &Import{
		Run: r, file: f, ids: map[string]*sameID{}, Notes: map[string]int{}, Runs: map[string]int{},
		how: failed.Import{Exchange: r.Entrance(), Queue: r.Name, User: r.serving.Username(), Run: r.ID, FrameMax: r.frameMax},
	}
}

// Check reads the whole file, and notes each change that an import will make. It returns how many messages are not left out.
// Lines that are appended afterwards do not belong to the import.
func (i *Import) Check(from io.Reader) (meant int, err error) {
	next := i.messages(from, func(id string, m failed.Message, line int) bool {
		if !i.Duplicates {
			if i.ids[id] == nil {
				i.ids[id] = &sameID{line: line}
			}
			i.ids[id].of(failed.Digest(i.how.Content(m))).lines++
		}
		return true
	})
	for ; ; meant++ {
		if _, ok, err := next(); err != nil {
			return meant, err
		} else if !ok {
			i.Total = i.read
			i.size, err = i.file.Seek(0, io.SeekCurrent)
			return meant, err
		}
	}
}

// Compare finds out which messages of the file are in the queue already. It returns a [ConflictError] if the queue has
// messages with the same ids and another content.
func (i *Import) Compare(ctx context.Context) error {
	if len(i.ids) == 0 {
		return nil
	}
	if err := i.count(ctx); err != nil {
		return err
	}
	for _, s := range i.ids {
		if i.Replaces {
			s.replace()
			i.ToReplace += s.old
		}
		n := s.count()
		i.Present += n.lines - n.missing
	}
	return i.conflicts()
}

// messages reads the file from the beginning. It leaves out messages that cannot be published, and messages that takes
// refuses. After the last message it returns false.
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
			if reader.Cancel != "" {
				return p, false, fmt.Errorf("line %d: is from \"delayed cancel\": write rabbitmq-retry delayed import", reader.Line)
			}
			if err := failed.Publishable(m.Properties); err != nil {
				return p, false, fmt.Errorf("line %d: %w", reader.Line, err)
			}
			how := i.how
			if s := i.ids[reader.ID]; i.Replaces && s != nil && s.count().queued > 0 {
				how.Run = "" // otherwise "delete --run" could remove the only copy
			}
			p, changes, err := how.Publishing(m, reader.ID)
			if err != nil {
				i.Notes["skipped: "+err.Error()]++
				continue
			}
			if !takes(reader.ID, m, reader.Line) {
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

// rest reads the file again, leaves out messages that are in the queue already, and starts new notes.
func (i *Import) rest() (func() (failed.Publishing, bool, error), error) {
	if _, err := i.file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	i.Present = 0
	clear(i.Notes)
	return i.messages(io.LimitReader(i.file, i.size), func(id string, m failed.Message, line int) bool {
		s := i.ids[id]
		if s != nil && line > s.line {
			i.Notes["with the id of an earlier line"]++
		}
		if s == nil || s.count().queued == 0 {
			return true
		}
		c := s.of(failed.Digest(i.how.Content(m)))
		if c.skipped == c.queued { // each message in the queue counts for one line
			return true
		}
		c.skipped++
		i.Present++
		return false
	}), nil
}

// Publish imports the messages that are not in the queue yet.
func (i *Import) Publish(ctx context.Context) (transfer.Result, error) {
	next, err := i.rest()
	if err != nil {
		return transfer.Result{}, err
	}
	return transfer.Send(ctx, i.queue(), transfer.Sending{
		Next: next,
		Done: func(p failed.Publishing, confirmed bool) {
			if s := i.ids[p.Of]; s != nil && confirmed {
				s.confirmed++
			}
		},
		Progress: i.Progress,
	})
}

// Try notes the messages that [Import.Publish] would change or leave out.
func (i *Import) Try() error {
	next, err := i.rest()
	for more := err == nil; more; {
		_, more, err = next()
	}
	return err
}

// Counts are the record's counts.
func (i *Import) Counts(p, removed transfer.Result) map[string]int {
	return map[string]int{
		"read": i.Total, "imported": p.Confirmed, "returned": p.Returned, "refused": p.Refused, "too_large": len(p.Oversized),
		"unconfirmed": p.Uncertain, "present": i.Present, "replaced": removed.Dropped, "duplicated": 0,
	}
}

// Unfinished is an error unless all messages are in the queue, and the replaced ones are removed for good.
func (i *Import) Unfinished(p, removed transfer.Result) error {
	switch {
	case p.Confirmed+i.Present < i.Total:
		unsent := i.Total - i.Present - p.Confirmed - p.Returned - p.Refused - len(p.Oversized) - p.Uncertain
		return fmt.Errorf("not all messages were imported: %d returned, %d refused, %d too large, %d unconfirmed, %d not sent",
			p.Returned, p.Refused, len(p.Oversized), p.Uncertain, unsent)
	case removed.Dropped < i.ToReplace || removed.Unverified:
		return errors.New("not all messages were replaced for good: the lines above say why")
	}
	return nil
}
