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

	"github.com/spf13/cobra"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/operation"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/transfer"
)

// importOptions are the options of "import", and its run.
type importOptions struct {
	options
	replaces, duplicates bool

	// The messages are first read from the field from, and then again from file. name is the file's name on the command line.
	file *os.File
	name string
	from io.Reader
	*operation.Import
}

func newImport(target targetFlags) *cobra.Command {
	o := &importOptions{options: options{targetFlags: target}}
	o.options.Scan = math.MaxInt
	cmd := &cobra.Command{
		Use:   "import [PIPELINE] FILE",
		Short: "Put messages from a file back",
		Long: `Puts messages from a file of "failed export" into the failed queue, unchanged and with their old ids. It drops only
the parts that a queue cannot keep, such as an expiration, and lists them. "failed replay --run RUN" then sends the
messages to their work queues.

It reads the whole file first, and publishes nothing from a damaged file. It skips a message that is in the queue
already, with the same id and content. If the file was edited, a message in the queue can have the same id and other
content. In this case, it imports nothing. With --replace, it replaces the message in the queue, and takes the old one
out only after the broker has confirmed the new one. "failed delete --run RUN" undoes an import. To undo an import with
--replace, import the earlier file with --replace.

Needs: read on <pipeline>.failed, write on <pipeline>.failed. With --queue: read on the queue, write on amq.default
instead. With --allow-duplicates: only write.`,
		Example: `  rabbitmq-retry failed import orders unrecoverable.jsonl

  # Correct messages, and replace them in the queue.
  rabbitmq-retry failed export orders --reason malformed --decode --file malformed.jsonl
  jq -c '.body |= (fromjson | .currency = "EUR" | tojson)' malformed.jsonl > corrected.jsonl
  rabbitmq-retry failed import orders corrected.jsonl --replace
  rabbitmq-retry failed replay orders --ids corrected.jsonl`,
		Args: cli.Arguments(1, 2),
		RunE: o.run,
	}
	o.targetFlags.addFlags(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&o.dryRun, "dry-run", false, "only check the file, and count the messages that would be imported")
	flags.BoolVar(&o.replaces, "replace", false, "replace messages in the queue by messages of the file with the same id")
	flags.BoolVar(&o.duplicates, "allow-duplicates", false, "import messages even if the queue has them already")
	o.addRunFlags(cmd)
	o.addForce(cmd)
	cmd.MarkFlagsMutuallyExclusive("replace", "allow-duplicates")
	return cmd
}

func (o *importOptions) run(cmd *cobra.Command, args []string) error {
	rest, err := o.find(cmd, args, 1)
	if err != nil {
		return err
	}
	if len(rest) != 1 {
		return errors.New("which file? Write its name, or - for stdin, after the name of a pipeline or --queue")
	}
	o.name = rest[0]
	if err := o.open(cmd.InOrStdin()); err != nil {
		return err
	}
	defer func() { _ = o.file.Close() }()
	if err := canRecord(o.record, o.file); err != nil {
		return err
	}
	return o.imports(cmd.Context())
}

// open copies stdin to a temporary file, since the messages are read twice.
func (o *importOptions) open(stdin io.Reader) (err error) {
	if o.name == "-" {
		o.file, err = temporary()
		o.from = io.TeeReader(stdin, o.file)
		return err
	}
	if err := cli.MustBeFile("FILE", o.name); err != nil {
		return err
	}
	// A device can be endless, and a pipe cannot be read twice.
	if info, err := os.Stat(o.name); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s: is not a regular file; write - to read stdin", o.name)
	}
	o.file, err = os.Open(o.name)
	o.from = o.file
	return err
}

// prepare reads the file and looks at the queue. It returns how many messages to import.
func (o *importOptions) prepare(ctx context.Context) (meant int, err error) {
	if err := o.guard(ctx, !o.duplicates); err != nil {
		return 0, err
	}
	o.Import = o.guarded.NewImport(o.file)
	o.Replaces, o.Duplicates = o.replaces, o.duplicates
	meant, err = o.Check(o.from)
	if copied, is := errors.AsType[*os.PathError](err); is && copied.Path == o.file.Name() && o.name == "-" {
		return 0, cli.RuntimeError{Err: fmt.Errorf("copy stdin: %w; set TMPDIR to a folder with room for it", copied)}
	}
	if err != nil {
		return 0, fmt.Errorf("%s: %w", o.name, err)
	}
	err = o.Compare(ctx)
	if conflicts, are := errors.AsType[*operation.ConflictError](err); are {
		return 0, o.sayConflicts(conflicts)
	}
	return meant - o.Present, o.failed(err)
}

func (o *importOptions) imports(ctx context.Context) error {
	meant, err := o.prepare(ctx)
	if err != nil {
		return err
	}
	nothing := meant+o.ToReplace == 0 && o.Present == o.Total
	if nothing || o.dryRun { // no question is needed
		done := "imported"
		if o.dryRun {
			done = "would import"
		}
		o.terminal.say("%s %d of %s into %s%s", done, meant, failed.Messages(o.Total), o.target.Name, o.inPlace())
		err := o.Try()
		o.say()
		return err
	}
	filter := map[string]any{"file": o.name, "replace": o.Replaces}
	record := operation.Record{Command: o.command, Filter: filter}
	question := fmt.Sprintf("Import %d of %s into %s%s?", meant, failed.Messages(o.Total), o.target.Name, o.inPlace())
	if err := o.begin(ctx, question, record, meant); err != nil {
		return err
	}
	o.Progress = o.progress(func(p transfer.Progress) string { return fmt.Sprintf("%d/%d", p.Confirmed, meant) })
	result, err := o.Publish(ctx)
	var removed transfer.Result
	if o.Replaces && err == nil && !result.Interrupted {
		o.Progress = o.progress(seen)
		removed, err = o.RemoveReplaced(ctx)
	}
	o.terminal.say("imported %d of %s into %s", result.Confirmed, failed.Messages(o.Total), o.target.Name)
	o.say()
	o.sayReplaced(removed)
	o.sayOversized(result)
	o.sayHowToContinue(result)
	return o.recordEnd(record, o.Counts(result, removed), removed, err, o.Unfinished(result, removed))
}

func (o *importOptions) say() {
	for _, note := range slices.Sorted(maps.Keys(o.Notes)) {
		o.terminal.say("%d of them: %s", o.Notes[note], note)
	}
	if o.Present > 0 {
		parts := []string{failed.Messages(o.Present) + " in the queue already"}
		for _, run := range slices.Sorted(maps.Keys(o.Runs)) {
			parts = append(parts, fmt.Sprintf("%d of run %s", o.Runs[run], run))
		}
		o.terminal.say("%s", strings.Join(parts, ", "))
	}
}

// sayHowToContinue tells how to import the rest without importing messages twice.
func (o *importOptions) sayHowToContinue(p transfer.Result) {
	if p.Confirmed+o.Present < o.Total && p.Confirmed+p.Uncertain > 0 && !o.Duplicates {
		o.terminal.say("To continue, run the same command again. It skips messages that are in %s.", o.target.Name)
	}
	if p.Confirmed > 0 && !o.Replaces { // a message that has replaced others is the only copy
		o.terminal.say("To undo this run: rabbitmq-retry failed delete %s --run %s --discard", o.argument(o.target), o.ID)
	}
}

// sayConflicts names the first conflicting messages, and returns an error with advice.
func (o *importOptions) sayConflicts(conflicts *operation.ConflictError) error {
	const shown = 3
	for _, c := range conflicts.Conflicts[:min(shown, len(conflicts.Conflicts))] {
		o.terminal.say("line %d: %s has %s with id %s, and the file has %d.", c.Line, o.target.Name, failed.Messages(c.InQueue), c.ID, c.InFile)
	}
	advice := "--replace puts the file's messages in their place"
	if o.Replaces {
		advice = "--replace needs all of them in the file, or some would be lost"
	}
	return cli.RuntimeError{Err: fmt.Errorf("%w; %s", conflicts, advice)}
}

// inPlace tells how many messages of the queue are replaced.
func (o *importOptions) inPlace() string {
	if n := o.ToReplace; n > 0 {
		return fmt.Sprintf(", and take out %s with the same ids", failed.Messages(n))
	}
	return ""
}

func (o *importOptions) sayReplaced(removed transfer.Result) {
	if o.ToReplace == 0 {
		return
	}
	o.terminal.say("replaced %d of %s with the same ids", removed.Dropped, failed.Messages(o.ToReplace))
	o.sayVanished(removed)
	if removed.Unverified {
		o.terminal.say("up to %s of them can still be in %s", failed.Messages(removed.MostDoubled()), o.target.Name)
	}
}
