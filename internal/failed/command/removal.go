package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/operation"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/transfer"
)

// removal removes messages from a queue. If a file is named, it keeps them there first.
type removal struct {
	options
	// command is the command's name in the record.
	command string
	// dryRun only counts the messages to delete.
	dryRun bool
	// file is "" if no copy is kept.
	file string
}

// remove removes the chosen messages, after the sink has kept them if there is one.
func (r *removal) remove(ctx context.Context, to *operation.Sink) error {
	if err := r.guard(ctx, true); err != nil {
		return err
	}
	look, chosen, err := r.guarded.Choose(ctx, r.filter)
	if err != nil {
		return r.failed(err)
	}
	r.sayHidden(look)
	unfound, meant := r.notFound(look), chosen.Total()
	if meant == 0 {
		return errors.Join(r.sayNone(look.Result), unfound)
	}
	if r.dryRun {
		r.terminal.say("would delete %s", failed.Messages(meant))
		return unfound
	}
	saved := "nothing is kept"
	if to != nil {
		saved = "saved to " + r.file + " first"
	}
	if err := r.terminal.ask(ctx, fmt.Sprintf("Delete %s (%s)?", failed.Messages(meant), saved)); err != nil {
		return err
	}
	record := operation.Record{Command: r.command, To: r.file, Filter: r.filter}
	if err := r.recordBegin(record, meant); err != nil {
		return err
	}
	r.guarded.Progress = r.progress(func(p transfer.Progress) string { return fmt.Sprintf("%d/%d  %s", p.Dropped, meant, p.Phase) })
	result, err := r.guarded.Remove(ctx, chosen, to)
	r.report(result, meant)
	return cmp.Or(r.recordEnd(record, operation.RemovalCounts(result), result, err, operation.Unremoved(result, meant)), unfound)
}

func (r *removal) report(p transfer.Result, meant int) {
	if p.Interrupted && p.Dropped < meant {
		r.terminal.say("stopped: %d deleted, %d left", p.Dropped, max(0, meant-p.Dropped-p.Vanished))
	} else {
		r.terminal.say("deleted %d of %d", p.Dropped, meant)
	}
	r.sayVanished(p)
	if r.file != "" && p.Dropped > 0 {
		r.terminal.say("To undo: rabbitmq-retry failed import %s %s", r.argument(r.target), pasted(r.file))
	}
	if p.Unverified {
		r.terminal.say("up to %s deleted that can still be in %s", failed.Messages(p.MostDoubled()), r.target.Name)
	}
}

const deleteHelp = `Takes failed messages out of the queue. With --export, it writes each message to the disk first, and
"failed import" puts the messages back. With --discard, the messages are lost.

Needs: read on <pipeline>.failed. With --queue: read on the queue.`

const deleteExample = `  rabbitmq-retry failed delete orders --reason unrecoverable --export deleted.jsonl --yes

  rabbitmq-retry failed delete orders --older-than 720h --discard --yes`

type deleteOptions struct {
	removal
	discard bool
}

func newDelete(target targetFlags) *cobra.Command {
	o := &deleteOptions{removal: removal{options: options{targetFlags: target}, command: "delete"}}
	cmd := &cobra.Command{
		Use:     "delete [PIPELINE]",
		Short:   "Take failed messages out of the queue, to a file or for good",
		Long:    deleteHelp,
		Example: deleteExample,
		Args:    cobra.MaximumNArgs(1),
		RunE:    o.run,
	}
	o.addFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&o.file, "export", "", "`file` to keep the messages in, which must not exist")
	flags.BoolVar(&o.discard, "discard", false, "keep no copy")
	flags.BoolVar(&o.dryRun, "dry-run", false, "only count the messages that would be deleted")
	o.addAll(cmd)
	o.addRunFlags(cmd, "the run")
	cmd.MarkFlagsMutuallyExclusive("export", "discard")
	cmd.MarkFlagsMutuallyExclusive("export", "dry-run")
	return cmd
}

func (o *deleteOptions) run(cmd *cobra.Command, args []string) error {
	if err := o.read(cmd, args); err != nil {
		return err
	}
	if o.file == "" && !o.discard && !o.dryRun {
		return errors.New("what happens to the messages? Write --export FILE to keep them there, or --discard")
	}
	return o.saving(cmd.Context(), "--export", o.file, o.remove)
}
