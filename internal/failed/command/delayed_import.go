package command

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/operation"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/transfer"
)

func newDelayedImport(target targetFlags) *cobra.Command {
	o := newDelayedOptions(target)
	cmd := &cobra.Command{
		Use:   "import EXCHANGE FILE",
		Short: "Publish cancelled messages again",
		Long: `Publishes the messages of a file of "delayed cancel" that were taken out, so that each is due when it was due before, or at
once. It notes in the file which messages it has published, so that the command can be run again.

If a command was killed, it can be open whether a message was taken out or published. The import leaves such a message out
if a level within reach has it. It names the others. To import one of them, write "done" in place of "open" or "undo".

Needs: as "delayed list", and write on the exchange.`,
		Example: `  rabbitmq-retry delayed import events cancelled-20261130T120000Z.jsonl`,
		Args:    cli.Arguments(2, 2),
		RunE:    func(cmd *cobra.Command, args []string) error { return o.imports(cmd, args[0], args[1]) },
	}
	o.addFlags(cmd)
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "only count the messages that would be imported")
	o.addRunFlags(cmd)
	return cmd
}

func (o *delayedOptions) imports(cmd *cobra.Command, exchange, name string) error {
	if err := cli.MustBeFile("FILE", name); err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_RDWR, 0) //nolint:gosec // the user says which
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if err := o.find(cmd, exchange); err != nil {
		return err
	}
	if err := canRecord(o.record, f); err != nil {
		return err
	}
	ctx := cmd.Context()
	if err := o.begins(ctx); err != nil {
		return err
	}
	file, err := operation.ReadCancelFile(f, o.target.Delayed)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := o.ended(ctx, file.Settle(ctx, &o.waiting)); err != nil {
		return err
	}
	for _, id := range file.Open {
		o.terminal.say("%s: a command was killed, and no level within reach has it. It can be in another place, or delivered.", id)
	}
	var open error
	if n := len(file.Open); n > 0 {
		o.sayPlaces()
		open = cli.RuntimeError{Err: fmt.Errorf("%s: %w", failed.Messages(n), errOpen)}
	}
	meant := file.Done()
	if meant == 0 || o.dryRun {
		o.terminal.say("would import %s into %s", failed.Messages(meant), exchange)
		return open
	}
	record := operation.Record{Command: "delayed import", Filter: map[string]any{"file": name}}
	if err := o.begin(ctx, fmt.Sprintf("Publish %s to %s?", failed.Messages(meant), exchange), record, meant); err != nil {
		return err
	}
	p, err := file.Import(ctx, &o.waiting, o.guarded.FrameMax(), o.progress(func(p transfer.Progress) string {
		return fmt.Sprintf("%d/%d", p.Confirmed, meant)
	}))
	o.terminal.say("imported %d of %s into %s", p.Confirmed, failed.Messages(meant), exchange)
	o.sayOversized(p)
	if open == nil && p.Confirmed < meant {
		open = fmt.Errorf("not all messages were imported: %d returned, %d refused, %d unconfirmed; run the command again for the others",
			p.Returned, p.Refused, p.Uncertain)
	}
	counts := map[string]int{
		"selected": meant, "imported": p.Confirmed, "returned": p.Returned, "refused": p.Refused, "unconfirmed": p.Uncertain,
	}
	return o.recordEnd(record, counts, transfer.Result{}, err, open)
}
