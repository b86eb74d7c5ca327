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

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/console"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/file"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/pass"
)

const importHelp = `Puts messages from a file of "failed export" into the failed queue, exactly as they were; what a queue cannot
bear is dropped, and said: an expiration would take the message out again. With --replay they go to their work
queues instead.

The whole file is read first: nothing is published of a damaged one. To import a file twice doubles its messages;
--skip-present leaves out those that are in the queue.`

const importExample = `  RABBITMQ_URI=amqp://operator:secret@rabbitmq:5672 \
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
	flags.BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	flags.StringVar(&o.auditLog, "audit-log", "", "`file` for the record of the run (default: stderr)")
	addForce(cmd, &o.force)
	cmd.MarkFlagsMutuallyExclusive("replay", "skip-present")
	return cmd
}

// imports is a run of the command.
type imports struct {
	*importOptions
	*survey
	file *os.File
	how  failed.Import
	back failed.Replay
	// present is how many messages of an id are in the queue.
	present map[string]int
	// notes are what was changed or left out, and of how many messages.
	notes   map[string]int
	skipped int
}

func (o *importOptions) run(cmd *cobra.Command, args []string) error {
	place, rest, err := o.find(args)
	if err != nil {
		return err
	}
	if len(rest) != 1 {
		return errors.New("which file? Write its name, or - for stdin")
	}
	from, err := openImport(rest[0], cmd.InOrStdin())
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	i := &imports{
		importOptions: o, file: from, present: map[string]int{}, notes: map[string]int{},
		survey: &survey{
			place: place, filters: &filters{}, force: o.force,
			console: &console.Console{In: cmd.InOrStdin(), Err: cmd.ErrOrStderr(), Yes: o.yes},
		},
		how:  failed.Import{Pipeline: place.Pipeline, Queue: place.Name},
		back: failed.Replay{Pipeline: place.Pipeline, ID: newReplayID()},
	}
	return i.run(cmd.Context(), rest[0])
}

// openImport also makes a file of stdin, since the messages are read twice.
func openImport(name string, stdin io.Reader) (*os.File, error) {
	if name != "-" {
		if err := cli.MustBeFile("FILE", name); err != nil {
			return nil, err
		}
		return os.Open(name) //nolint:gosec // the user says which
	}
	spool, err := os.CreateTemp("", "rabbitmq-retry-*.jsonl")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(spool.Name()); err != nil { // it is there until it is closed
		return nil, err
	}
	_, err = io.Copy(spool, stdin)
	return spool, err
}

func (i *imports) run(ctx context.Context, name string) error {
	total, err := i.check()
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := console.CanAudit(i.auditLog); err != nil {
		return err
	}
	where := i.place.Name
	if i.replay {
		where = "their work queues"
	}
	switch {
	case i.dryRun:
		i.console.Say("would import %d messages into %s", total, where)
		i.say()
		return nil
	case i.replay:
		if err := i.console.Ask(ctx, fmt.Sprintf("Replay %d messages of %s?", total, name)); err != nil {
			return err
		}
	case i.skipPresent:
		seen, err := i.lookFor(ctx, failed.Filter{}, func(e *failed.Entry) { i.present[e.ID]++ })
		if err != nil {
			return err
		}
		if seen.Consumers > 0 {
			return cli.RuntimeError{Err: fmt.Errorf("--skip-present: another consumer of %q may hold messages that cannot be seen; "+
				"stop it, or import without --skip-present", i.place.Name)}
		}
	}
	clear(i.notes)
	result, err := i.publish(ctx, total)
	i.console.Say("imported %d of %d messages into %s", result.Confirmed, total, where)
	i.say()
	return i.finish(result, total, name, err)
}

// check reads the whole file, and notes what an import will change.
func (i *imports) check() (total int, err error) {
	for next := i.messages(); ; total++ {
		if _, _, err := next(); errors.Is(err, io.EOF) {
			return total, nil
		} else if err != nil {
			return 0, err
		}
	}
}

// messages begins with the first one.
func (i *imports) messages() func() (failed.Publishing, bool, error) {
	_, err := i.file.Seek(0, io.SeekStart)
	reader := file.NewReader(i.file)
	return func() (failed.Publishing, bool, error) {
		if err != nil {
			return failed.Publishing{}, false, err
		}
		m, err := reader.Next()
		if err != nil {
			return failed.Publishing{}, false, err
		}
		return i.publishing(m)
	}
}

// publishing is false for a message that is left out.
func (i *imports) publishing(m failed.Message) (failed.Publishing, bool, error) {
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
	if err != nil {
		i.notes["skipped: "+err.Error()]++
	}
	return err == nil
}

func (i *imports) publish(ctx context.Context, total int) (pass.Result, error) {
	next := i.messages()
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
			i.sayBlocked(p)
			i.console.Line(fmt.Sprintf("%d/%d%s", p.Confirmed, total, waiting(p)))
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
		i.console.Say("%d are in the queue already", i.skipped)
	}
}

// finish leaves the record, and says by its error whether all is done.
func (i *imports) finish(p pass.Result, total int, name string, err error) error {
	record := console.Record{
		Command: "import",
		Filter:  map[string]any{"file": name, "replay": i.replay},
		Counts: map[string]int{
			"read": total, "imported": p.Confirmed, "returned": p.Returned, "refused": p.Refused, "uncertain": p.Uncertain,
			"present": i.skipped,
		},
	}
	if i.replay {
		record.ReplayID = i.back.ID
	}
	err = i.record(record, i.auditLog, err)
	if err == nil && p.Confirmed+i.skipped < total {
		err = errors.New("not all messages were imported: " +
			fmt.Sprintf("%d were returned, %d refused, of %d nobody knows", p.Returned, p.Refused, p.Uncertain))
	}
	if err != nil {
		return cli.RuntimeError{Err: i.place.unknown(err)}
	}
	return nil
}
