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
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/file"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/operation"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/transfer"
)

const importHelp = `Puts messages from a file of "failed export" into the failed queue, unchanged and with their old ids. It drops only
the parts that a queue cannot keep, such as an expiration, and lists them. With --replay, the messages go to their work
queues instead, without a look at the failed queue. A message that is still there is then duplicated.

It reads the whole file first, and publishes nothing from a damaged file. It skips a message that is in the queue
already, with the same id and content. If the file was edited, a message in the queue can have the same id and other
content. In this case, it imports nothing. With --replace, it replaces the message in the queue, and takes the old one
out only after the broker has confirmed the new one. "failed delete --run RUN" undoes an import. To undo an import with
--replace, import the earlier file with --replace.

Needs: read on <pipeline>.failed, write on <pipeline>.failed. With --replay: write on <pipeline>.return instead. With
--queue: read on the queue, write on amq.default instead. With --allow-duplicates: only write.`

const importExample = `  rabbitmq-retry failed import orders unrecoverable.jsonl

  # Correct messages, and replace them in the queue.
  rabbitmq-retry failed export orders --reason malformed --decode --file malformed.jsonl
  jq -c '.body |= (fromjson | .currency = "EUR" | tojson)' malformed.jsonl > corrected.jsonl
  rabbitmq-retry failed import orders corrected.jsonl --replace

  # Edit messages on the way to their work queues.
  jq -c '.properties.headers.tenant = "b"' unrecoverable.jsonl | rabbitmq-retry failed import orders - --replay --yes`

type importOptions struct {
	options
	how    operation.ImportOptions
	dryRun bool
}

func newImport(target targetFlags) *cobra.Command {
	o := &importOptions{options: options{targetFlags: target}}
	o.Scan = math.MaxInt
	const most = 2
	cmd := &cobra.Command{
		Use:     "import [PIPELINE] FILE",
		Short:   "Put messages from a file back",
		Long:    importHelp,
		Example: importExample,
		Args:    cobra.RangeArgs(1, most),
		RunE:    o.run,
	}
	o.targetFlags.addFlags(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&o.how.Replays, "replay", false, "send the messages to the work queues they failed in")
	flags.BoolVar(&o.dryRun, "dry-run", false, "only check the file, and count the messages that would be imported")
	flags.BoolVar(&o.how.Replaces, "replace", false, "replace messages in the queue by messages of the file with the same id")
	flags.BoolVar(&o.how.Duplicates, "allow-duplicates", false, "import messages even if the queue has them already")
	o.addRunFlags(cmd, "the run")
	o.addForce(cmd)
	cmd.MarkFlagsMutuallyExclusive("replay", "replace", "allow-duplicates")
	return cmd
}

// imports is a run of the command.
type imports struct {
	*importOptions
	*inspection
	*operation.Import
	// The messages are first read from the field from, and then again from file. name is the file's name on the command line.
	file *os.File
	name string
	from io.Reader
}

func (o *importOptions) run(cmd *cobra.Command, args []string) error {
	target, rest, err := o.find(args, 1)
	if err != nil {
		return err
	}
	if len(rest) != 1 {
		return errors.New("which file? Write its name, or - for stdin")
	}
	i := &imports{importOptions: o, inspection: o.inspection(cmd, target), name: rest[0]}
	if err := i.open(cmd.InOrStdin()); err != nil {
		return err
	}
	defer func() { _ = i.file.Close() }()
	if err := canRecord(o.record, i.file); err != nil {
		return err
	}
	return i.run(cmd.Context())
}

// open copies stdin to a temporary file, since the messages are read twice.
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
	// A device can be endless, and a pipe cannot be read twice.
	if info, err := os.Stat(i.name); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s: is not a regular file; write - to read stdin", i.name)
	}
	i.file, err = os.Open(i.name)
	i.from = i.file
	return err
}

// prepare reads the file and looks at the queue. It returns how many messages to import.
func (i *imports) prepare(ctx context.Context) (meant int, err error) {
	if err := i.guard(ctx, i.how.Looks()); err != nil {
		return 0, err
	}
	i.Import = i.guarded.NewImport(i.how, i.file)
	if meant, err = i.Check(i.from); err != nil {
		return 0, fmt.Errorf("%s: %w", i.name, err)
	}
	err = i.Compare(ctx)
	if conflicts := (*operation.ConflictError)(nil); errors.As(err, &conflicts) {
		return 0, i.sayConflicts(conflicts)
	}
	return meant - i.Present, i.failed(err)
}

// where names the messages' destination.
func (i *imports) where() string {
	switch n := i.target.Delayed; {
	case i.Replays && n != "":
		return n.Exchange() + " and " + n.DeliverExchange()
	case i.Replays:
		return "their work queues"
	}
	return i.target.Name
}

func (i *imports) run(ctx context.Context) error {
	meant, err := i.prepare(ctx)
	if err != nil {
		return err
	}
	where := i.where()
	nothing := meant+i.ToReplace() == 0 && i.Present == i.Total
	if nothing || i.dryRun { // no question is needed
		done := "imported"
		if i.dryRun {
			done = "would import"
		}
		i.terminal.say("%s %d of %s into %s%s", done, meant, failed.Messages(i.Total), where, i.inPlace())
		err := i.Try()
		i.say()
		return err
	}
	if err := i.terminal.ask(ctx, i.question(meant, where)); err != nil {
		return err
	}
	filter := map[string]any{"file": i.name, "replay": i.Replays, "replace": i.Replaces}
	record := operation.Record{Command: "import", Filter: filter}
	if i.Replays {
		record.ReplayID = i.ID
	}
	if err := i.recordBegin(record, meant); err != nil {
		return err
	}
	i.Progress = i.progress(func(p transfer.Progress) string { return fmt.Sprintf("%d/%d", p.Confirmed, meant) })
	result, err := i.Publish(ctx)
	var removed transfer.Result
	if i.Replaces && err == nil && !result.Interrupted {
		i.Progress = i.progress(seen)
		removed, err = i.RemoveReplaced(ctx)
	}
	i.terminal.say("imported %d of %s into %s", result.Confirmed, failed.Messages(i.Total), where)
	i.say()
	i.sayReplaced(removed)
	i.sayOversized(result)
	i.sayHowToContinue(result)
	return i.recordEnd(record, i.Counts(result, removed), removed, err, i.Unfinished(result, removed))
}

func (i *imports) question(meant int, where string) string {
	if i.Replays {
		return fmt.Sprintf("Replay %s of %s?", failed.Messages(meant), i.name)
	}
	return fmt.Sprintf("Import %d of %s into %s%s?", meant, failed.Messages(i.Total), where, i.inPlace())
}

func (i *imports) say() {
	for _, note := range slices.Sorted(maps.Keys(i.Notes)) {
		advice := ""
		if strings.HasSuffix(note, failed.ErrNoWorkQueue.Error()) {
			advice = "; import it without --replay, and replay it with --to"
		}
		i.terminal.say("%d of them: %s%s", i.Notes[note], note, advice)
	}
	if i.Present > 0 {
		parts := []string{failed.Messages(i.Present) + " in the queue already"}
		for _, run := range slices.Sorted(maps.Keys(i.Runs)) {
			parts = append(parts, fmt.Sprintf("%d of run %s", i.Runs[run], run))
		}
		i.terminal.say("%s", strings.Join(parts, ", "))
	}
}

// sayHowToContinue tells how to import the rest without importing messages twice.
func (i *imports) sayHowToContinue(p transfer.Result) {
	if p.Confirmed+i.Present < i.Total && p.Confirmed+p.Uncertain > 0 && i.Looks() {
		i.terminal.say("To continue, run the same command again. It skips messages that are in %s.", i.target.Name)
	}
	if i.Fresh(p) > 0 {
		i.terminal.say("To undo this run: rabbitmq-retry failed delete %s --run %s --discard", i.inspection.options.argument(i.target), i.ID)
	}
}

// sayConflicts shows the conflicting messages, and returns an error with advice.
func (i *imports) sayConflicts(conflicts *operation.ConflictError) error {
	for _, c := range conflicts.First {
		i.terminal.say("line %d: %s has %s with id %s, and the file has %d.", c.Line, i.target.Name, failed.Messages(c.InQueue), c.ID, c.InFile)
		if c.Queue == nil {
			continue
		}
		before, after := differing(lineText(*c.Queue, c.ID), lineText(c.File, c.ID))
		i.terminal.say("  in the queue:  %s", before)
		i.terminal.say("  in the file:   %s", after)
	}
	advice := "--replace puts the file's messages in their place"
	if i.Replaces {
		advice = "--replace needs all of them in the file, or some would be lost"
	}
	return cli.RuntimeError{Err: fmt.Errorf("%w; %s", conflicts, advice)}
}

func lineText(m failed.Message, id string) []rune {
	text, err := file.Encode(m, id)
	if err != nil {
		return []rune(err.Error())
	}
	return []rune(string(text))
}

// differing cuts two texts, from shortly before their first difference.
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

// inPlace tells how many messages of the queue are replaced.
func (i *imports) inPlace() string {
	if n := i.ToReplace(); n > 0 {
		return fmt.Sprintf(", and take out %s with the same ids", failed.Messages(n))
	}
	return ""
}

func (i *imports) sayReplaced(removed transfer.Result) {
	meant := i.ToReplace()
	if meant == 0 {
		return
	}
	i.terminal.say("replaced %d of %s with the same ids", removed.Dropped, failed.Messages(meant))
	i.sayVanished(removed)
	if removed.Unverified {
		i.terminal.say("up to %s of them can still be in %s", failed.Messages(removed.MostDoubled()), i.target.Name)
	}
}
