package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/file"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/transfer"
)

const importHelp = `Puts messages from a file of "failed export" into the failed queue, as they were and with the ids that they had;
what a queue cannot bear is dropped, and said: an expiration would take the message out again. With --replay they go
to their work queues instead, without a look at the failed queue: one that is still there is then there twice.

The whole file is read first: nothing is published of a damaged one. A message that is in the queue already, with the
same id and content, is skipped. If one has the same id and other content, since the file was edited, nothing is
imported, unless --replace puts the file's in its place: the broker has confirmed it before the old one is taken out.
"failed delete --run RUN" takes an import back, but not one with --replace: import the file from before with --replace.

Needs: read on <pipeline>.failed, write on <pipeline>.failed. With --replay: write on <pipeline>.return instead. With
--queue: read on the queue, write on amq.default instead. With --allow-duplicates: write alone.`

const importExample = `  rabbitmq-retry failed import orders unrecoverable.jsonl

  # Edited: corrected messages in place of those in the queue.
  rabbitmq-retry failed export orders --reason malformed --decode --file malformed.jsonl
  jq -c '.body |= (fromjson | .currency = "EUR" | tojson)' malformed.jsonl > corrected.jsonl
  rabbitmq-retry failed import orders corrected.jsonl --replace

  # Edited on the way.
  jq -c '.properties.headers.tenant = "b"' unrecoverable.jsonl | rabbitmq-retry failed import orders - --replay --yes`

type importOptions struct {
	options
	replay, dryRun, replace, duplicates bool
}

func newImport(caller caller) *cobra.Command {
	o := &importOptions{options: newOptions(caller)}
	o.scan = math.MaxInt
	const most = 2
	cmd := &cobra.Command{
		Use:     "import [PIPELINE] FILE",
		Short:   "Put messages from a file back",
		Long:    importHelp,
		Example: importExample,
		Args:    cobra.RangeArgs(1, most),
		RunE:    func(cmd *cobra.Command, args []string) error { return o.run(cmd, args) },
	}
	o.targetFlags.addFlags(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&o.replay, "replay", false, "send the messages to the work queues they failed in")
	flags.BoolVar(&o.dryRun, "dry-run", false, "only check the file, and say what would be imported")
	flags.BoolVar(&o.replace, "replace", false, "put messages of the file in the place of those in the queue that have the same id")
	flags.BoolVar(&o.duplicates, "allow-duplicates", false, "do not look what is in the queue already")
	o.addRunFlags(cmd, "the run")
	o.addForce(cmd)
	cmd.MarkFlagsMutuallyExclusive("replay", "replace", "allow-duplicates")
	return cmd
}

// imports is a run of the command.
type imports struct {
	*importOptions
	*inspection
	// file has the messages, once they were read; name is what the command line calls it, from where they are read first.
	file *os.File
	name string
	from io.Reader
	how  failed.Import
	back failed.Replay
	// ids are the messages of the file and those of the queue, order the ids as they come in the file. Neither has anything if
	// the queue is not looked at.
	ids   map[string]*sameID
	order []string
	// kept is how many messages of the queue are kept to be shown, and sent has the ids of lines without an answer.
	kept int
	sent map[int]string
	// notes are what was changed or left out, and of how many messages.
	notes map[string]int
	// runs are how many messages of the file each earlier import has put into the queue.
	runs map[string]int
	// total is how many messages the file has, read how many were read of it last, skipped how many are in the queue already.
	total, read, skipped int
}

func (o *importOptions) run(cmd *cobra.Command, args []string) error {
	target, rest, err := o.find(args, 1)
	if err != nil {
		return err
	}
	if len(rest) != 1 {
		return errors.New("which file? Write its name, or - for stdin")
	}
	i := &imports{
		importOptions: o, name: rest[0], ids: map[string]*sameID{}, sent: map[int]string{}, notes: map[string]int{}, runs: map[string]int{},
		inspection: o.inspection(cmd, target),
		back:       failed.Replay{Pipeline: target.Pipeline, ID: newRunID()},
	}
	if err := i.open(cmd.InOrStdin()); err != nil {
		return err
	}
	defer func() { _ = i.file.Close() }()
	if err := canRecord(i.importOptions.record, i.file); err != nil {
		return err
	}
	return i.run(cmd.Context())
}

// open makes a file of stdin, too, since the messages are read twice.
func (i *imports) open(stdin io.Reader) (err error) {
	if i.name == "-" {
		if i.file, err = temporary(); err == nil {
			i.from = io.TeeReader(stdin, i.file)
		}
		return err
	}
	if err := cli.MustBeFile("FILE", i.name); err != nil {
		return err
	}
	// A device may have no end, and a pipe cannot be read twice.
	if info, err := os.Stat(i.name); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s: is no regular file; write - to read stdin", i.name)
	}
	i.file, err = os.Open(i.name)
	i.from = i.file
	return err
}

// prepare reads the file and looks at the queue. Meant are the messages that are imported.
func (i *imports) prepare(ctx context.Context) (meant int, err error) {
	// The broker says how large a frame may be.
	conn, err := i.target.Open(ctx, "import")
	if err != nil {
		return 0, cli.RuntimeError{Err: err}
	}
	amqpconn.HangUp(conn.Connection)
	if err := i.target.recognize(ctx); err != nil {
		return 0, cli.RuntimeError{Err: err}
	}
	i.how = failed.Import{Exchange: i.target.entrance(), Queue: i.target.Name, User: i.target.serving.Username(), Run: i.back.ID}
	i.back.Delayed = i.target.Delayed
	if meant, err = i.check(); err != nil {
		return 0, fmt.Errorf("%s: %w", i.name, err)
	}
	if len(i.ids) > 0 {
		if err := i.count(ctx); err != nil {
			return 0, err
		}
	}
	i.skipped = i.present()
	return meant - i.skipped, i.conflicts()
}

// where is where the messages go.
func (i *imports) where() string {
	switch n := i.target.Delayed; {
	case i.replay && n != "":
		return n.Exchange() + " and " + n.DeliverExchange()
	case i.replay:
		return "their work queues"
	}
	return i.target.Name
}

func (i *imports) run(ctx context.Context) error {
	meant, err := i.prepare(ctx)
	if err != nil {
		return err
	}
	total, where := i.total, i.where()
	nothing := meant+i.toReplace() == 0 && i.skipped == total
	if nothing || i.dryRun { // there is nothing to be allowed
		done := "imported"
		if i.dryRun {
			done = "would import"
		}
		i.terminal.say("%s %d of %s into %s%s", done, meant, failed.Messages(total), where, i.inPlace())
		return i.sayOfRest()
	}
	if err := i.terminal.ask(ctx, i.question(meant, where)); err != nil {
		return err
	}
	filter := map[string]any{"file": i.name, "replay": i.replay, "replace": i.replace}
	record := Record{Run: i.back.ID, Command: "import", Filter: filter}
	if i.replay {
		record.ReplayID = i.back.ID
	}
	if err := i.recordBegin(record, meant); err != nil {
		return err
	}
	result, err := i.publish(ctx, meant)
	var removed transfer.Result
	if i.replace && err == nil && !result.Interrupted {
		removed, err = i.removeReplaced(ctx)
	}
	i.terminal.say("imported %d of %s into %s", result.Confirmed, failed.Messages(total), where)
	i.say()
	i.sayReplaced(removed)
	i.sayOversized(result)
	i.sayHowToContinue(result)
	return i.finish(record, result, removed, err)
}

func (i *imports) question(meant int, where string) string {
	if i.replay {
		return fmt.Sprintf("Replay %s of %s?", failed.Messages(meant), i.name)
	}
	return fmt.Sprintf("Import %d of %s into %s%s?", meant, failed.Messages(i.total), where, i.inPlace())
}

// check reads the whole file, and notes what an import will change. Meant are the messages that are not left out.
func (i *imports) check() (meant int, err error) {
	next := i.messages(i.from, func(id string, m failed.Message, line int) bool {
		if !i.replay && !i.duplicates {
			i.noteLine(id, m, line)
		}
		return true
	})
	for ; ; meant++ {
		if _, ok, err := next(); err != nil || !ok {
			i.total = i.read
			return meant, err
		}
	}
}

// messages reads from the first one, and leaves out what could not be published, and what the function does not take. It is
// false after the last one.
func (i *imports) messages(
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
				i.notes[change]++
			}
			p.Line = reader.Line
			return p, true, nil
		}
	}
}

// publishing is false for a message that cannot be published.
func (i *imports) publishing(m failed.Message, id string) (p failed.Publishing, changes []string, ok bool, err error) {
	if err := failed.Publishable(m.Properties); err != nil {
		return p, nil, false, err
	}
	i.how.FrameMax, i.back.FrameMax, i.how.User = i.target.frameMax, i.target.frameMax, i.target.serving.Username()
	if i.replay {
		e := failed.Read(m)
		p, err := i.back.Publishing(&e, time.Now())
		return p, nil, i.note(err), nil
	}
	how := i.how
	if s := i.ids[id]; i.replace && s != nil && len(s.queued) > 0 {
		how.Run = "" // or "delete --run" would take out what has no other copy
	}
	p, changes, err = how.Publishing(m, id)
	return p, changes, i.note(err), nil
}

// note counts a message that cannot be published.
func (i *imports) note(err error) bool {
	switch {
	case errors.Is(err, failed.ErrNoWorkQueue):
		i.notes["skipped: "+err.Error()+"; import it without --replay, and replay it with --to"]++
	case err != nil:
		i.notes["skipped: "+err.Error()]++
	}
	return err == nil
}

// rest reads the file again, without what is in the queue already, and begins the notes anew.
func (i *imports) rest() (func() (failed.Publishing, bool, error), error) {
	if _, err := i.file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	i.skipped = 0
	clear(i.notes)
	return i.messages(i.file, func(id string, m failed.Message, line int) bool {
		if i.isPresent(id, m) {
			i.skipped++
			return false
		}
		if i.replace {
			i.sent[line] = id
		}
		return true
	}), nil
}

func (i *imports) publish(ctx context.Context, meant int) (transfer.Result, error) {
	next, err := i.rest()
	if err != nil {
		return transfer.Result{}, err
	}
	defer i.terminal.line("")
	return transfer.Send(ctx, i.target.Queue, transfer.Sending{
		Next: next,
		Done: func(p failed.Publishing, o transfer.Outcome) {
			if id := i.sent[p.Line]; id != "" && o == transfer.Confirmed {
				i.ids[id].confirmed++
			}
			delete(i.sent, p.Line)
		},
		Progress: i.progress(func(p transfer.Progress) string { return fmt.Sprintf("%d/%d", p.Confirmed, meant) }),
	})
}

// sayOfRest says what would be changed and left out.
func (i *imports) sayOfRest() error {
	next, err := i.rest()
	for more := err == nil; more; {
		_, more, err = next()
	}
	i.say()
	return err
}

func (i *imports) say() {
	for _, note := range slices.Sorted(maps.Keys(i.notes)) {
		i.terminal.say("%d of them: %s", i.notes[note], note)
	}
	if i.skipped > 0 {
		parts := []string{failed.Messages(i.skipped) + " in the queue already"}
		for _, run := range slices.Sorted(maps.Keys(i.runs)) {
			parts = append(parts, fmt.Sprintf("%d of run %s", i.runs[run], run))
		}
		i.terminal.say("%s", strings.Join(parts, ", "))
	}
}

// sayHowToContinue says how what is not imported can be, without importing the rest twice.
func (i *imports) sayHowToContinue(p transfer.Result) {
	if p.Confirmed+i.skipped < i.total && p.Confirmed+p.Uncertain > 0 && !i.replay && !i.duplicates {
		i.terminal.say("To continue: the same command again, which leaves out what is in %s.", i.target.Name)
	}
	if i.fresh(p) > 0 {
		i.terminal.say("To undo this run: rabbitmq-retry failed delete %s --run %s --discard", i.target.argument(), i.how.Run)
	}
}

// fresh is how many messages can be taken out again without losing one: those that replaced another one cannot.
func (i *imports) fresh(p transfer.Result) (n int) {
	if i.replay {
		return 0
	}
	if !i.replace {
		return p.Confirmed
	}
	for _, s := range i.ids {
		if len(s.queued) == 0 {
			n += s.confirmed
		}
	}
	return n
}

// finish leaves the record, and says by its error whether all is done.
func (i *imports) finish(record Record, p, removed transfer.Result, err error) error {
	record.Counts = map[string]int{
		"read": i.total, "imported": p.Confirmed, "returned": p.Returned, "refused": p.Refused, "too_large": len(p.Oversized),
		"unconfirmed": p.Uncertain, "present": i.skipped, "replaced": removed.Dropped, "duplicated": 0,
	}
	var unfinished error
	switch {
	case p.Confirmed+i.skipped < i.total:
		unfinished = fmt.Errorf("not all messages were imported: %d returned, %d refused, %d too large, %d unconfirmed",
			p.Returned, p.Refused, len(p.Oversized), p.Uncertain)
	case removed.Dropped < i.toReplace() || removed.Unverified:
		unfinished = errors.New("not all messages were replaced for good")
	}
	return i.recordEnd(record, removed, err, unfinished)
}
