package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/console"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/file"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/pass"
)

const importHelp = `Puts messages from a file of "failed export" into the failed queue, exactly as they were; what a queue cannot
bear is dropped, and said: an expiration would take the message out again. With --replay they go to their work
queues instead.

The whole file is read first: nothing is published of a damaged one. To import a file twice duplicates its messages;
--skip-present leaves out those that are in the queue.

Needs: write on <pipeline>.failed. With --replay: write on <pipeline>.return instead. With --queue: write on amq.default
instead. With --skip-present: also read on <pipeline>.failed, or on the queue of --queue.`

const importExample = `  export RABBITMQ_URI=amqp://operator:secret@rabbitmq:5672
  rabbitmq-retry failed import orders unrecoverable.jsonl

  # Edited on the way.
  jq -c '.properties.headers.tenant = "b"' unrecoverable.jsonl | rabbitmq-retry failed import orders - --replay --yes`

type importOptions struct {
	target
	auditLog                         string
	replay, dryRun, skipPresent, yes bool
	force                            bool
}

func newImport(caller caller) *cobra.Command {
	o := &importOptions{target: newTarget(caller)}
	const most = 2
	cmd := &cobra.Command{
		Use:     "import [PIPELINE] FILE",
		Short:   "Put messages from a file back",
		Long:    importHelp,
		Example: importExample,
		Args:    cobra.RangeArgs(1, most),
		RunE:    func(cmd *cobra.Command, args []string) error { return o.run(cmd, args) },
	}
	o.addFlags(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&o.replay, "replay", false, "send the messages to the work queues they failed in")
	flags.BoolVar(&o.dryRun, "dry-run", false, "only check the file, and say what would be imported")
	flags.BoolVar(&o.skipPresent, "skip-present", false, "leave out as many of each message as are in the queue")
	addYes(cmd, &o.yes)
	addAuditLog(cmd, &o.auditLog, "the run")
	addForce(cmd, &o.force)
	cmd.MarkFlagsMutuallyExclusive("replay", "skip-present")
	return cmd
}

// imports is a run of the command.
type imports struct {
	*importOptions
	*survey
	// file has the messages, once they were read; name is what the command line calls it, from where they are read first.
	file *os.File
	name string
	from io.Reader
	how  failed.Import
	back failed.Replay
	// present is how many messages of an id are in the queue.
	present map[string]int
	// notes are what was changed or left out, and of how many messages.
	notes   map[string]int
	skipped int
}

func (o *importOptions) run(cmd *cobra.Command, args []string) error {
	place, rest, err := o.find(args, 1)
	if err != nil {
		return err
	}
	if len(rest) != 1 {
		return errors.New("which file? Write its name, or - for stdin")
	}
	i := &imports{
		importOptions: o, name: rest[0], present: map[string]int{}, notes: map[string]int{},
		survey: &survey{
			place: place, filters: &filters{}, force: o.force,
			console: newConsole(cmd, o.yes),
		},
		back: failed.Replay{Pipeline: place.Pipeline, ID: newRunID()},
	}
	if err := i.open(cmd.InOrStdin()); err != nil {
		return err
	}
	defer func() { _ = i.file.Close() }()
	if err := console.CanAudit(i.auditLog, i.file); err != nil {
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

func (i *imports) run(ctx context.Context) error {
	// The broker says how large a frame may be.
	conn, err := i.place.Open(ctx, "import")
	if err != nil {
		return cli.RuntimeError{Err: err}
	}
	amqpconn.HangUp(conn.Connection)
	if err := i.place.recognize(ctx); err != nil {
		return cli.RuntimeError{Err: err}
	}
	i.how, i.back.Delayed = failed.Import{Exchange: i.place.entrance(), Queue: i.place.Name}, i.place.Delayed
	if i.skipPresent {
		if err := i.count(ctx); err != nil {
			return err
		}
	}
	present := maps.Clone(i.present)
	total, meant, err := i.check()
	if err != nil {
		return fmt.Errorf("%s: %w", i.name, err)
	}
	where := i.place.Name
	switch n := i.place.Delayed; {
	case i.replay && n != "":
		where = n.Exchange() + " and " + n.DeliverExchange()
	case i.replay:
		where = "their work queues"
	}
	if i.dryRun {
		i.console.Say("would import %d of %s into %s", meant, failed.Messages(total), where)
		i.say()
		return nil
	}
	if i.replay {
		if err := i.ask(ctx, fmt.Sprintf("Replay %s of %s?", failed.Messages(meant), i.name)); err != nil {
			return err
		}
	}
	record := console.Record{Run: i.back.ID, Command: "import", Filter: map[string]any{"file": i.name, "replay": i.replay}}
	if i.replay {
		record.ReplayID = i.back.ID
	}
	if err := i.recordBegin(record, meant, i.auditLog); err != nil {
		return err
	}
	clear(i.notes)
	i.present, i.skipped = present, 0
	result, err := i.publish(ctx, meant)
	i.console.Say("imported %d of %s into %s", result.Confirmed, failed.Messages(total), where)
	i.say()
	i.sayOversized(result)
	i.sayHowToContinue(result, total)
	return i.finish(record, result, total, err)
}

// count notes what is in the queue.
func (i *imports) count(ctx context.Context) error {
	seen, err := i.look(ctx, failed.Filter{}, func(e *failed.Entry) { i.present[e.ID]++ })
	if err == nil && seen.Consumers > 0 {
		err = cli.RuntimeError{Err: fmt.Errorf("--skip-present: another consumer of %q may hold messages that cannot be seen; "+
			"stop it, or import without --skip-present", i.place.Name)}
	}
	return err
}

// check reads the whole file, and notes what an import will change. Meant are the messages that are not left out.
func (i *imports) check() (total, meant int, err error) {
	for next := i.messages(i.from); ; total++ {
		_, ok, err := next()
		switch {
		case errors.Is(err, io.EOF):
			return total, meant, nil
		case err != nil:
			return 0, 0, err
		case ok:
			meant++
		}
	}
}

// messages reads from the first one.
func (i *imports) messages(from io.Reader) func() (failed.Publishing, bool, error) {
	reader := file.NewReader(from)
	return func() (p failed.Publishing, ok bool, err error) {
		m, err := reader.Next()
		if err != nil {
			return p, false, err
		}
		if p, ok, err = i.publishing(m); err != nil {
			err = fmt.Errorf("line %d: %w", reader.Line, err)
		}
		p.Line = reader.Line
		return p, ok, err
	}
}

// publishing is false for a message that is left out.
func (i *imports) publishing(m failed.Message) (failed.Publishing, bool, error) {
	if err := failed.Publishable(m.Properties); err != nil {
		return failed.Publishing{}, false, err
	}
	i.how.FrameMax, i.back.FrameMax, i.how.User = i.place.frameMax, i.place.frameMax, i.place.user
	if i.replay {
		e := failed.Read(m)
		p, err := i.back.Publishing(&e, time.Now())
		return p, i.note(err), nil
	}
	p, changes, err := i.how.Publishing(m)
	if !i.note(err) {
		return p, false, nil
	}
	if id := i.how.ID(p); i.present[id] > 0 {
		i.present[id]--
		i.skipped++
		return p, false, nil
	}
	for _, change := range changes {
		i.notes[change]++
	}
	return p, true, nil
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

func (i *imports) publish(ctx context.Context, meant int) (pass.Result, error) {
	if _, err := i.file.Seek(0, io.SeekStart); err != nil {
		return pass.Result{}, err
	}
	next := i.messages(i.file)
	result, err := pass.Send(ctx, i.place.Queue, pass.Sending{
		Next: func() (failed.Publishing, bool, error) {
			for {
				p, ok, err := next()
				switch {
				case errors.Is(err, io.EOF):
					return p, false, nil
				case err != nil || ok:
					return p, ok, err
				}
			}
		},
		Progress: func(p pass.Progress) {
			i.sayWaiting(p)
			i.console.Line(fmt.Sprintf("%d/%d%s", p.Confirmed, meant, waiting(p)))
		},
	})
	i.console.Line("")
	return result, err
}

func (i *imports) say() {
	for _, note := range slices.Sorted(maps.Keys(i.notes)) {
		i.console.Say("%d of them: %s", i.notes[note], note)
	}
	if i.skipped > 0 {
		i.console.Say("%s in the queue already", failed.Messages(i.skipped))
	}
}

// sayHowToContinue says how what is not imported can be, without importing the rest twice.
func (i *imports) sayHowToContinue(p pass.Result, total int) {
	if p.Confirmed+i.skipped < total && p.Confirmed+p.Uncertain > 0 && !i.replay {
		i.console.Say("To continue: the same command with --skip-present, which leaves out what is in %s.", i.place.Name)
	}
}

// finish leaves the record, and says by its error whether all is done.
func (i *imports) finish(record console.Record, p pass.Result, total int, err error) error {
	record.Counts = map[string]int{
		"read": total, "imported": p.Confirmed, "returned": p.Returned, "refused": p.Refused, "too_large": len(p.Oversized),
		"unconfirmed": p.Uncertain, "present": i.skipped,
	}
	err = i.recordEnd(record, i.auditLog, err)
	if err == nil && p.Confirmed+i.skipped < total {
		err = fmt.Errorf("not all messages were imported: %d returned, %d refused, %d too large, %d unconfirmed",
			p.Returned, p.Refused, len(p.Oversized), p.Uncertain)
	}
	if err != nil {
		return cli.RuntimeError{Err: i.place.unknown(err)}
	}
	return nil
}
