package command

import (
	"context"
	"fmt"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/file"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/transfer"
)

// copies are how many messages there are of one id, by the digest of their content: mostly one, so that a map would be large.
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

// sameID are the messages of one id in the file and in the queue.
type sameID struct {
	lines, queued copies
	// line is where the first one stands, and queue has one that is like none of the file.
	line  int
	queue *failed.Message
	// confirmed is how many the broker has confirmed, skipped how many are in the queue already.
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

// surplus are the messages in the queue that have no line: others of another content, and equal ones.
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

// conflicts says that the queue has messages of this id that the file has otherwise. To replace more of them than the file
// has would take some out for good.
func (s *sameID) conflicts(replace bool) bool {
	other, equal := s.surplus()
	if replace {
		return other > s.lines.total()
	}
	return other+equal > 0 && s.missing() > 0
}

// replaced are the copies that are taken out once all lines are in the queue: also what a run left that was killed.
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

// count notes what is in the queue of the ids in the file.
func (i *imports) count(ctx context.Context) error {
	seen, err := i.look(ctx, failed.Filter{}, func(e *failed.Entry) {
		s := i.ids[e.ID]
		if s == nil {
			return
		}
		m := i.how.Content(e.Message)
		digest := failed.Digest(m)
		if e.Run != "" && s.lines.of(digest) > 0 {
			i.runs[e.Run]++
		}
		if s.queued.add(digest, 1); s.lines.of(digest) == 0 && s.queue == nil && i.kept < shownConflicts {
			s.queue = &m
			i.kept++
		}
	})
	if err == nil && seen.Consumers > 0 {
		err = cli.RuntimeError{Err: fmt.Errorf("another consumer of %q may hold messages that cannot be seen; "+
			"stop it, or write --allow-duplicates", i.target.Name)}
	}
	return err
}

// shownConflicts are as many as are shown.
const shownConflicts = 3

// conflicts is an error if the queue has other messages of the same ids. The first ones are shown.
func (i *imports) conflicts() error {
	conflicts := 0
	for _, id := range i.order {
		s := i.ids[id]
		if !s.conflicts(i.replace) {
			continue
		}
		if conflicts++; conflicts <= shownConflicts {
			i.sayConflict(id, s)
		}
	}
	if conflicts == 0 {
		return nil
	}
	advice := "--replace puts the file's in their place"
	if i.replace {
		advice = "--replace needs all of them in the file, or it would take some out for good"
	}
	return cli.RuntimeError{Err: fmt.Errorf("nothing was imported: messages with %s of the file have another content in %s; %s",
		failed.Count(conflicts, "id"), i.target.Name, advice)}
}

func (i *imports) sayConflict(id string, s *sameID) {
	i.terminal.say("line %d: %s has %s of id %s, and the file %d:", s.line, i.target.Name, failed.Messages(s.queued.total()), id,
		s.lines.total())
	if s.queue == nil {
		return
	}
	mine, err := i.lineOf(s.line)
	if err != nil {
		return
	}
	before, after := differing(lineText(*s.queue, id), lineText(mine, id))
	i.terminal.say("  in the queue:  %s", before)
	i.terminal.say("  in the file:   %s", after)
}

// lineOf is the content of a line.
func (i *imports) lineOf(line int) (m failed.Message, err error) {
	if _, err := i.file.Seek(0, 0); err != nil {
		return m, err
	}
	for reader := file.NewReader(i.file); reader.Line < line; {
		if m, err = reader.Next(); err != nil {
			return m, err
		}
	}
	return i.how.Content(m), nil
}

func lineText(m failed.Message, id string) []rune {
	text, err := file.Encode(m, id)
	if err != nil {
		return []rune(err.Error())
	}
	return []rune(string(text))
}

// differing are two texts from shortly before their first difference.
func differing(a, b []rune) (from, to string) {
	const before, most = 30, 100
	at := 0
	for at < min(len(a), len(b)) && a[at] == b[at] {
		at++
	}
	at = max(0, at-before)
	cut := func(text []rune) string {
		end := min(len(text), at+most)
		part := string(text[at:end])
		if at > 0 {
			part = "…" + part
		}
		if end < len(text) {
			part += "…"
		}
		return part
	}
	return cut(a), cut(b)
}

// toReplace is how many messages of the queue make way.
func (i *imports) toReplace() (n int) {
	if !i.replace {
		return 0
	}
	for _, s := range i.ids {
		n += s.replaced().total()
	}
	return n
}

// removeReplaced takes out the old messages of those ids whose lines are all confirmed.
func (i *imports) removeReplaced(ctx context.Context) (transfer.Result, error) {
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
		if left.of(digest) == 0 { // as for all that were imported
			return transfer.Verdict{}
		}
		left.add(digest, -1)
		return transfer.Verdict{Drop: true}
	}}
	return i.goOver(ctx, job, seen)
}

// noteLine notes that the file has a message of this id.
func (i *imports) noteLine(id string, m failed.Message, line int) {
	s := i.ids[id]
	if s == nil {
		s = &sameID{line: line}
		i.ids[id], i.order = s, append(i.order, id)
	}
	s.lines.add(failed.Digest(i.how.Content(m)), 1)
}

// isPresent takes one of the equal messages in the queue for this one.
func (i *imports) isPresent(id string, m failed.Message) bool {
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

// present is how many lines are in the queue already.
func (i *imports) present() (n int) {
	for _, s := range i.ids {
		n += s.lines.total() - s.missing()
	}
	return n
}

// inPlace says how many messages of the queue make way.
func (i *imports) inPlace() string {
	if n := i.toReplace(); n > 0 {
		return fmt.Sprintf(", and take out the %s there of the same ids", failed.Messages(n))
	}
	return ""
}

func (i *imports) sayReplaced(removed transfer.Result) {
	meant := i.toReplace()
	if meant == 0 {
		return
	}
	i.terminal.say("replaced %d of %s of the same ids", removed.Dropped, failed.Messages(meant))
	i.sayVanished(removed)
	if removed.Unverified {
		i.terminal.say("up to %s of them may be in %s still", failed.Messages(removed.MostDoubled()), i.target.Name)
	}
}
