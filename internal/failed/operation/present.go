package operation

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/transfer"
)

// sameID has the messages with one id, in the file and in the queue.
type sameID struct {
	// contents are these messages, by their content. Most ids have one, so a map would take more memory.
	contents []sameContent
	// line is the first line with this id.
	line int
	// confirmed is how many messages the broker has confirmed. old is how many messages of the queue are replaced.
	confirmed, old int
}

// sameContent counts equal messages: lines of the file, messages in the queue, lines that were skipped since they are in the
// queue, and messages to take out of the queue once all lines are in it.
type sameContent struct {
	digest                      string
	lines, queued, skipped, old int
}

func (s *sameID) of(digest string) *sameContent {
	i := slices.IndexFunc(s.contents, func(c sameContent) bool { return c.digest == digest })
	if i < 0 {
		i = len(s.contents)
		s.contents = append(s.contents, sameContent{digest: digest})
	}
	return &s.contents[i]
}

// counts are the numbers of one id's messages. missing are lines without a message in the queue, and surplus messages in the
// queue without a line. other are surplus messages with content that no line has.
type counts struct{ lines, queued, missing, surplus, other int }

func (s *sameID) count() (n counts) {
	for _, c := range s.contents {
		n.lines += c.lines
		n.queued += c.queued
		n.missing += max(0, c.lines-c.queued)
		n.surplus += max(0, c.queued-c.lines)
		if c.lines == 0 {
			n.other += c.queued
		}
	}
	return n
}

// conflicts reports whether the queue has this id's messages in another form than the file. If more messages were replaced
// than the file has, some would be lost.
func (s *sameID) conflicts(replace bool) bool {
	n := s.count()
	if replace {
		return n.other > n.lines
	}
	return n.surplus > 0 && n.missing > 0
}

// replace counts the messages to take out of the queue. They include copies left by a run that was killed.
func (s *sameID) replace() {
	n := s.count()
	fresh := max(0, n.missing-n.other)
	for i := range s.contents {
		c := &s.contents[i]
		if c.old = c.queued; c.lines > 0 {
			c.old = min(max(0, c.queued-c.lines), fresh)
			fresh -= c.old
		}
		s.old += c.old
	}
}

// count counts the messages in the queue whose ids are in the file.
func (i *Import) count(ctx context.Context) error {
	look, err := i.Look(ctx, failed.Filter{}, func(e *failed.Entry) (enough bool) {
		s := i.ids[e.ID]
		if s == nil {
			return false
		}
		c := s.of(failed.Digest(i.how.Content(e.Message)))
		if c.queued++; e.Run != "" && c.lines > 0 {
			i.Runs[e.Run]++
		}
		return false
	})
	if err == nil && look.Uncounted {
		err = fmt.Errorf("it is not known whether %q has more of the file's messages (%w); --allow-duplicates imports without a look",
			i.Name, amqpconn.ErrNeedsConfigure)
	}
	if err == nil && look.Consumers > 0 {
		err = fmt.Errorf("another consumer of %q can hold messages that cannot be seen; stop it, or write --allow-duplicates", i.Name)
	}
	return err
}

// Conflict describes an id whose messages differ between the queue and the file.
type Conflict struct {
	ID string
	// Line is the first line with the id. InFile and InQueue are the numbers of messages.
	Line, InFile, InQueue int
}

// ConflictError says that messages in the queue have the file's ids and another content.
type ConflictError struct {
	Queue string
	// Conflicts are in the order of the file.
	Conflicts []Conflict
}

// Error names the number of ids and the queue.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("nothing was imported: messages with %s of the file have other content in %s",
		failed.Count(len(e.Conflicts), "id"), e.Queue)
}

// conflicts returns a [ConflictError] if the queue has messages with the file's ids and another content.
func (i *Import) conflicts() error {
	found := &ConflictError{Queue: i.Name}
	for id, s := range i.ids {
		if s.conflicts(i.Replaces) {
			n := s.count()
			found.Conflicts = append(found.Conflicts, Conflict{ID: id, Line: s.line, InFile: n.lines, InQueue: n.queued})
		}
	}
	if len(found.Conflicts) == 0 {
		return nil
	}
	slices.SortFunc(found.Conflicts, func(a, b Conflict) int { return cmp.Compare(a.Line, b.Line) })
	return found
}

// RemoveReplaced removes the old messages of each id whose lines are all confirmed.
func (i *Import) RemoveReplaced(ctx context.Context) (transfer.Result, error) {
	done := map[string]*sameID{}
	for id, s := range i.ids {
		if s.old > 0 && s.confirmed == s.count().missing {
			done[id] = s
		}
	}
	if len(done) == 0 {
		return transfer.Result{}, nil
	}
	job := transfer.Job{Drops: true, Decide: func(e *failed.Entry) transfer.Choice {
		s := done[e.ID]
		if s == nil {
			return transfer.Choice{}
		}
		c := s.of(failed.Digest(i.how.Content(e.Message)))
		if c.old == 0 { // true for all imported messages
			return transfer.Choice{}
		}
		c.old--
		return transfer.Choice{Drop: true}
	}}
	return i.goOver(ctx, job)
}
