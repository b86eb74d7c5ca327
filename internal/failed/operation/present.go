package operation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/file"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/transfer"
)

// copies counts the messages with one id, by the digest of their content. Most ids have one message, so a map would take more
// memory.
type copies []copied

type copied struct {
	digest string
	n      int
}

func (c copies) of(digest string) int {
	for _, entry := range c {
		if entry.digest == digest {
			return entry.n
		}
	}
	return 0
}

func (c *copies) add(digest string, n int) {
	for i := range *c {
		if (*c)[i].digest == digest {
			(*c)[i].n += n
			return
		}
	}
	*c = append(*c, copied{digest, n})
}

func (c copies) total() (n int) {
	for _, entry := range c {
		n += entry.n
	}
	return n
}

// sameID has the messages with one id, in the file and in the queue.
type sameID struct {
	lines, queued copies
	// line is the first line with this id. queue is a message whose content no line of the file has.
	line  int
	queue *failed.Message
	// confirmed is how many messages the broker has confirmed. skipped are the messages that are in the queue already.
	confirmed int
	skipped   copies
}

// missing is how many lines have no message in the queue.
func (s *sameID) missing() (n int) {
	for _, l := range s.lines {
		n += max(0, l.n-s.queued.of(l.digest))
	}
	return n
}

// surplus are the messages in the queue without a line: messages with another content, and more equal messages than there are
// lines.
func (s *sameID) surplus() (other, equal int) {
	for _, q := range s.queued {
		if lines := s.lines.of(q.digest); lines == 0 {
			other += q.n
		} else {
			equal += max(0, q.n-lines)
		}
	}
	return other, equal
}

// conflicts reports whether the queue has this id's messages in another form than the file. If more messages were replaced
// than the file has, some would be lost.
func (s *sameID) conflicts(replace bool) bool {
	other, equal := s.surplus()
	if replace {
		return other > s.lines.total()
	}
	return other+equal > 0 && s.missing() > 0
}

// replaced are the copies to remove once all lines are in the queue. They include copies left by a run that was killed.
func (s *sameID) replaced() copies {
	var old copies
	other, _ := s.surplus()
	fresh := max(0, s.missing()-other)
	for _, q := range s.queued {
		n := q.n
		if lines := s.lines.of(q.digest); lines > 0 {
			n = min(max(0, q.n-lines), fresh)
			fresh -= n
		}
		old.add(q.digest, n)
	}
	return old
}

// count counts the messages in the queue whose ids are in the file.
func (i *Import) count(ctx context.Context) error {
	look, err := i.Look(ctx, failed.Filter{}, func(e *failed.Entry) (enough bool) {
		s := i.ids[e.ID]
		if s == nil {
			return false
		}
		m := i.how.Content(e.Message)
		digest := failed.Digest(m)
		if e.Run != "" && s.lines.of(digest) > 0 {
			i.Runs[e.Run]++
		}
		if s.queued.add(digest, 1); s.lines.of(digest) == 0 && s.queue == nil && i.kept < shownConflicts {
			s.queue = &m
			i.kept++
		}
		return false
	})
	if err == nil && look.Consumers > 0 {
		err = fmt.Errorf("%w %q can hold messages that cannot be seen", ErrHeld, i.Name)
	}
	return err
}

// ErrHeld says that another consumer holds messages, so it is not known whether the file's messages are in the queue.
var ErrHeld = errors.New("another consumer of")

// shownConflicts is how many conflicts are shown.
const shownConflicts = 3

// Conflict describes an id whose messages differ between the queue and the file.
type Conflict struct {
	ID string
	// Line is the first line with the id. InFile and InQueue are the numbers of messages.
	Line, InFile, InQueue int
	// Queue is a message that only the queue has; it can be nil. File is the file's first message.
	Queue *failed.Message
	File  failed.Message
}

// ConflictError says that messages in the queue have the file's ids and another content.
type ConflictError struct {
	// IDs is how many ids conflict, and First are the first ones.
	IDs   int
	First []Conflict
	Queue string
}

// Error names the number of ids and the queue.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("nothing was imported: messages with %s of the file have other content in %s", failed.Count(e.IDs, "id"), e.Queue)
}

// conflicts returns a [ConflictError] if the queue has messages with the file's ids and another content.
func (i *Import) conflicts() error {
	ids := slices.Collect(maps.Keys(i.ids))
	ids = slices.DeleteFunc(ids, func(id string) bool { return !i.ids[id].conflicts(i.Replaces) })
	if len(ids) == 0 {
		return nil
	}
	slices.SortFunc(ids, func(a, b string) int { return cmp.Compare(i.ids[a].line, i.ids[b].line) })
	found := &ConflictError{IDs: len(ids), Queue: i.Name}
	for _, id := range ids[:min(shownConflicts, len(ids))] {
		s := i.ids[id]
		conflict := Conflict{ID: id, Line: s.line, InFile: s.lines.total(), InQueue: s.queued.total(), Queue: s.queue}
		var err error
		if conflict.File, err = i.lineOf(s.line); err != nil {
			conflict.Queue = nil
		}
		found.First = append(found.First, conflict)
	}
	return found
}

// lineOf is the content of a line in the file.
func (i *Import) lineOf(line int) (m failed.Message, err error) {
	if _, err := i.file.Seek(0, io.SeekStart); err != nil {
		return m, err
	}
	for reader := file.NewReader(i.file); reader.Line < line; {
		if m, err = reader.Next(); err != nil {
			return m, err
		}
	}
	return i.how.Content(m), nil
}

// ToReplace is how many messages of the queue are replaced.
func (i *Import) ToReplace() (n int) {
	if !i.Replaces {
		return 0
	}
	for _, s := range i.ids {
		n += s.replaced().total()
	}
	return n
}

// RemoveReplaced removes the old messages of each id whose lines are all confirmed.
func (i *Import) RemoveReplaced(ctx context.Context) (transfer.Result, error) {
	old := map[string]*copies{}
	for id, s := range i.ids {
		if replaced := s.replaced(); s.confirmed == s.missing() && replaced.total() > 0 {
			old[id] = &replaced
		}
	}
	if len(old) == 0 {
		return transfer.Result{}, nil
	}
	job := transfer.Job{Drops: true, Decide: func(e *failed.Entry) transfer.Verdict {
		left := old[e.ID]
		if left == nil {
			return transfer.Verdict{}
		}
		digest := failed.Digest(i.how.Content(e.Message))
		if left.of(digest) == 0 { // true for all imported messages
			return transfer.Verdict{}
		}
		left.add(digest, -1)
		return transfer.Verdict{Drop: true}
	}}
	return i.goOver(ctx, job)
}

// noteLine notes a line of the file.
func (i *Import) noteLine(id string, m failed.Message, line int) {
	s := i.ids[id]
	if s == nil {
		s = &sameID{line: line}
		i.ids[id] = s
	}
	s.lines.add(failed.Digest(i.how.Content(m)), 1)
}

// isPresent reports whether the queue has the message already. Each message in the queue counts for one line.
func (i *Import) isPresent(id string, m failed.Message) bool {
	s := i.ids[id]
	if s == nil || len(s.queued) == 0 {
		return false
	}
	digest := failed.Digest(i.how.Content(m))
	if s.skipped.of(digest) >= s.queued.of(digest) {
		return false
	}
	s.skipped.add(digest, 1)
	return true
}
