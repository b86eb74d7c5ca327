package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/operation"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/transfer"
)

// remove removes the chosen messages, after they were saved if there is a file for them.
func (o *options) remove(ctx context.Context) error {
	if err := o.guard(ctx, true); err != nil {
		return err
	}
	look, chosen, err := o.guarded.Choose(ctx, o.filter)
	if err != nil {
		return o.failed(err)
	}
	o.sayHidden(look)
	unfound, meant := o.notFound(look), chosen.Total()
	if meant == 0 {
		return errors.Join(o.sayNone(look.Result), unfound)
	}
	if o.dryRun {
		o.terminal.say("would delete %s", failed.Messages(meant))
		return errors.Join(o.counted(look.Result), unfound)
	}
	saved := "nothing is kept"
	if o.saved != nil {
		saved = "saved to " + o.keep + " first"
	}
	record := operation.Record{Command: o.command, To: o.keep, Filter: o.filter}
	if err := o.begin(ctx, fmt.Sprintf("Delete %s (%s)?", failed.Messages(meant), saved), record, meant); err != nil {
		return err
	}
	o.guarded.Progress = o.progress(func(p transfer.Progress) string { return fmt.Sprintf("%d/%d  %s", p.Dropped, meant, p.Phase) })
	p, err := o.guarded.Remove(ctx, chosen)
	if p.Interrupted && p.Dropped < meant {
		o.terminal.say("stopped: %d deleted, %d left", p.Dropped, max(0, meant-p.Dropped-p.Vanished))
	} else {
		o.terminal.say("deleted %d of %d", p.Dropped, meant)
	}
	o.sayVanished(p)
	if o.keep != "" && p.Dropped > 0 {
		o.terminal.say("To undo: rabbitmq-retry failed import %s %s", o.argument(o.target), pasted(o.keep))
	}
	if p.Unverified {
		o.terminal.say("up to %s deleted that can still be in %s", failed.Messages(p.MostDoubled()), o.target.Name)
	}
	counts := map[string]int{"selected": p.Selected, "deleted": p.Dropped, "duplicated": 0}
	return cmp.Or(o.recordEnd(record, counts, p, err, operation.Unremoved(p, meant)), unfound)
}

func newDelete(target targetFlags) *cobra.Command {
	o, discard := &options{targetFlags: target}, false
	cmd := &cobra.Command{
		Use:   "delete [PIPELINE]",
		Short: "Take failed messages out of the queue, to a file or for good",
		Long: `Takes failed messages out of the queue. With --export, it writes each message to the disk first, and
"failed import" puts the messages back. With --discard, the messages are lost.

Needs: read on <pipeline>.failed. With --queue: read on the queue.`,
		Example: `  rabbitmq-retry failed delete orders --reason unrecoverable --export deleted.jsonl --yes

  rabbitmq-retry failed delete orders --older-than 720h --discard --yes`,
		Args: cli.Arguments(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.read(cmd, args); err != nil {
				return err
			}
			if o.keep == "" && !discard && !o.dryRun {
				return errors.New("what happens to the messages? Write --export FILE to keep them there, or --discard")
			}
			return o.saving(cmd.Context(), o.remove)
		},
	}
	o.addFlags(cmd)
	cmd.Flags().BoolVar(&discard, "discard", false, "keep no copy")
	o.addTakingFlags(cmd, "messages", "deleted")
	cmd.MarkFlagsMutuallyExclusive("export", "discard")
	return cmd
}
