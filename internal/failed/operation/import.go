package operation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/file"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/transfer"
)

// ImportOptions say how messages of a file are imported.
type ImportOptions struct {
	// Replays sends the messages to the work queues where they failed.
	Replays bool
	// Replaces replaces the messages in the queue that have the same ids.
	Replaces bool
	// Duplicates also imports messages that are in the queue already.
	Duplicates bool
}

// Looks reports whether the import looks at the queue.
func (o ImportOptions) Looks() bool { return !o.Replays && !o.Duplicates }

// Import puts messages of a file into the queue.
type Import struct {
	*Run
	ImportOptions
	// Total is how many messages the file has, and Present how many are in the queue already. ToReplace is how many messages
	// of the queue are replaced.
	Total, Present, ToReplace int
	// Notes count messages that were changed or left out, by the change or the reason.
	Notes map[string]int
	// Runs count the file's messages that are in the queue already, by the run that imported them.
	Runs map[string]int

	file io.ReadSeeker
	// size is how many bytes of the file were checked.
	size int64
	// read is how many messages were read in the last pass over the file.
	read int
	how  failed.Import
	back failed.Replay
	// ids has the messages of the file and of the queue. It is empty if the import does not look at the queue.
	ids map[string]*sameID
	// kept is how many messages of the queue are kept to show them.
	kept int
}

// sameID has the messages with one id, in the file and in the queue.
type sameID struct {
	// contents are these messages, by their content. Most ids have one, so a map would take more memory.
	contents []sameContent
	// line is the first line with this id. queue is a message whose content no line of the file has.
	line  int
	queue *failed.Message
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
// queue without a line. other are those of them whose content no line has.
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

// NewImport prepares the import of a file, which is read again after [Import.Check].
func (r *Run) NewImport(o ImportOptions, f io.ReadSeeker) *Import {
	user := r.serving.Username()
	return &Import{
		Run: r, ImportOptions: o, file: f, ids: map[string]*sameID{}, Notes: map[string]int{}, Runs: map[string]int{},
		how:  failed.Import{Exchange: r.Entrance(), Queue: r.Name, User: user, Run: r.ID, FrameMax: r.frameMax},
		back: failed.Replay{Pipeline: r.Pipeline, Delayed: r.Delayed, ID: r.ID, FrameMax: r.frameMax},
	}
}

// Check reads the whole file, and notes each change that an import will make. It returns how many messages are not left out.
// Lines that are appended afterwards do not belong to the import.
func (i *Import) Check(from io.Reader) (meant int, err error) {
	next := i.messages(from, func(id string, m failed.Message, line int) bool {
		if i.Looks() {
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

// count counts the messages in the queue whose ids are in the file.
func (i *Import) count(ctx context.Context) error {
	look, err := i.Look(ctx, failed.Filter{}, func(e *failed.Entry) (enough bool) {
		s := i.ids[e.ID]
		if s == nil {
			return false
		}
		m := i.how.Content(e.Message)
		c := s.of(failed.Digest(m))
		if e.Run != "" && c.lines > 0 {
			i.Runs[e.Run]++
		}
		if c.queued++; c.lines == 0 && s.queue == nil && i.kept < shownConflicts {
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
		n := s.count()
		conflict := Conflict{ID: id, Line: s.line, InFile: n.lines, InQueue: n.queued, Queue: s.queue}
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
			if err := failed.Publishable(m.Properties); err != nil {
				return p, false, fmt.Errorf("line %d: %w", reader.Line, err)
			}
			p, changes, err := i.publishing(m, reader.ID)
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

// publishing builds the message to publish, and lists the changes.
func (i *Import) publishing(m failed.Message, id string) (p failed.Publishing, changes []string, err error) {
	if i.Replays {
		e := failed.Read(m)
		p, err = i.back.Publishing(&e, time.Now())
		return p, nil, err
	}
	how := i.how
	if s := i.ids[id]; i.Replaces && s != nil && s.count().queued > 0 {
		how.Run = "" // otherwise "delete --run" could remove the only copy
	}
	return how.Publishing(m, id)
}

// rest reads the file again, leaves out messages that are in the queue already, and starts new notes.
func (i *Import) rest() (func() (failed.Publishing, bool, error), error) {
	if _, err := i.file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	i.Present = 0
	clear(i.Notes)
	return i.messages(io.LimitReader(i.file, i.size), func(id string, m failed.Message, _ int) bool {
		s := i.ids[id]
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

// Try notes the messages that [Import.Publish] would change or leave out.
func (i *Import) Try() error {
	next, err := i.rest()
	for more := err == nil; more; {
		_, more, err = next()
	}
	return err
}

// Fresh is how many of the imported messages can be deleted without a loss. A message that has replaced others is the only
// copy.
func (i *Import) Fresh(p transfer.Result) (n int) {
	if i.Replays {
		return 0
	}
	if !i.Replaces {
		return p.Confirmed
	}
	for _, s := range i.ids {
		if s.count().queued == 0 {
			n += s.confirmed
		}
	}
	return n
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
		return fmt.Errorf("not all messages were imported: %d returned, %d refused, %d too large, %d unconfirmed",
			p.Returned, p.Refused, len(p.Oversized), p.Uncertain)
	case removed.Dropped < i.ToReplace || removed.Unverified:
		return errors.New("not all messages were replaced for good")
	}
	return nil
}
