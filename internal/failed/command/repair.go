package command

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/operation"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/transfer"
)

func newRepair(target targetFlags) *cobra.Command {
	o := &options{targetFlags: target}
	cmd := &cobra.Command{
		Use:   "repair [PIPELINE]",
		Short: "Replace messages from AMQP 1.0 that end other commands with error 541",
		Long: `Replaces messages that AMQP 0-9-1 cannot carry by copies that it can carry. A message that was published over
AMQP 1.0 can contain a type that AMQP 0-9-1 lacks, such as a UUID, or copies of the broker's own annotations. If another
command reads such a message, the broker closes its connection. The copy has the same body, and its dead-letter-error
lists values that changed. The original is taken out only after the broker has confirmed the copy. All other messages
stay unchanged. If the run is interrupted, their order can change.

Needs: read on <pipeline>.failed, write on <pipeline>.failed. With --queue <name>.delay.unrouted, the unrouted queue of a
delayed exchange: read and write on that queue.`,
		Example: "  rabbitmq-retry failed repair orders",
		Args:    cli.Arguments(0, 1),
		RunE:    o.repair,
	}
	o.targetFlags.addFlags(cmd)
	o.addRunFlags(cmd)
	return cmd
}

func (o *options) repair(cmd *cobra.Command, args []string) error {
	if _, err := o.find(cmd, args, 0); err != nil {
		return err
	}
	if err := canRecord(o.record, nil); err != nil {
		return err
	}
	ctx := cmd.Context()
	if err := o.guard(ctx, false); err != nil {
		return err
	}
	if o.queue != "" && o.target.Delayed == "" {
		return errors.New("--queue: must be the failed queue of a pipeline or the unrouted queue of a delayed exchange, " +
			"since other queues can delete messages after a look")
	}
	count, err := o.target.Count(ctx)
	if err != nil {
		return o.failed(err)
	}
	if count.Ready == 0 {
		return o.sayNone(transfer.Result{Consumers: count.Consumers})
	}
	record := operation.Record{Command: o.command}
	if err := o.begin(ctx, fmt.Sprintf("Replace each message in %s that AMQP 0-9-1 cannot carry by a copy (%s in the queue)?",
		o.target.Name, failed.Messages(count.Ready)), record, count.Ready); err != nil {
		return err
	}
	replaced, err := o.guarded.Repair(ctx, count.Ready)
	o.terminal.say("replaced %s in %s; all others put back", failed.Messages(replaced), o.target.Name)
	return o.recordEnd(record, map[string]int{"replaced": replaced}, transfer.Result{}, err, nil)
}
