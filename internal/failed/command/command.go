// Package command implements the sidecar's commands for failed messages, "failed" and "status": flags, questions, output and
// records. Packages failed, failed/operation and failed/transfer do the work.
package command

import (
	"fmt"
	"os/signal"
	"slices"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
)

const failedHelp = `Shows the messages in the failed queue of a pipeline, and sends them back to work. With --queue, it works on
any queue, such as the error queue of NServiceBus, MassTransit, Spring or Celery, or the unrouted queue of a
delayed exchange.

The broker's address is an AMQP URI, as for the worker. Its user is an operator, since the worker's user
cannot read the failed queue. The user needs, in the vhost:

  list, show, export, delete   read on <pipeline>.failed
  replay                       read on <pipeline>.failed, write on <pipeline>.return
  replay --to                  read on <pipeline>.failed, write on amq.default
  import                       read on <pipeline>.failed, write on <pipeline>.failed
  repair                       read on <pipeline>.failed, write on <pipeline>.failed

With --queue:

  list, show, export, delete   read on the queue
  replay                       read on the queue, write on amq.default
  import                       read on the queue, write on amq.default

With --queue <name>.delay.unrouted, the unrouted queue of a delayed exchange:

  list, show, export, delete   read on the queue
  replay                       read on the queue, write on <name>.deliver, and on <name> for messages not due
  import                       read on the queue, write on <name>.delay.unrouted
  repair                       read on the queue, write on <name>.delay.unrouted

With a pipeline's name and --queue, the queue is a failed queue that the pipeline declares for some of its work queues
(failed_queue). The user then needs read on the queue, and to replay, write on <pipeline>.return. A message that a
worker has parked goes back through its pipeline from any queue.

The vhost comes from --vhost, else from the pipeline in the configuration ($RABBITMQ_RETRY_CONFIG or --config), else
from the path of the AMQP URI. Without all of these, it is "/".

Exit codes: 0 all done, 1 something stayed or failed, 2 wrong usage, file or configuration, 3 stopped by a
second signal.`

// NewFailed is the command "failed" with its subcommands.
func NewFailed(getenv func(string) string) *cobra.Command {
	target := newTarget(getenv)
	return newFamily("failed", "See, replay, export and delete failed messages", failedHelp, newList(target), newShow(target),
		newReplay(target), newExport(target), newImport(target), newDelete(target), newRepair(target))
}

// newFamily is a command with subcommands.
func newFamily(name, short, long string, subcommands ...*cobra.Command) *cobra.Command {
	command := &cobra.Command{
		Use:       name,
		Short:     short,
		Long:      long,
		ValidArgs: []string{"help"},
		Args:      cli.Arguments(0, 0),
		RunE:      func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			// If the reader of the output exits, the command must still acknowledge the messages that it published.
			signal.Ignore(syscall.SIGPIPE)
			return noneEmpty(cmd.Flags())
		},
	}
	command.AddCommand(subcommands...)
	return command
}

// noneEmpty refuses a flag with an empty value, as an unset variable produces, and a limit of 0. They would select all
// messages, or keep no copy.
func noneEmpty(flags *pflag.FlagSet) (err error) {
	flags.Visit(func(f *pflag.Flag) {
		value := f.Value.String()
		list, isList := f.Value.(pflag.SliceValue)
		switch {
		case err != nil:
		case value == "", isList && (len(list.GetSlice()) == 0 || slices.Contains(list.GetSlice(), "")):
			err = fmt.Errorf("--%s: is empty, or has an empty part", f.Name)
		case f.Name == "record":
			err = cli.MustBeFile("--record", value)
		case value == "0" && (f.Name == "limit" || f.Name == "scan"):
			err = fmt.Errorf("--%s 0: must be 1 or more; leave it out for all messages", f.Name)
		}
	})
	return err
}

// complete offers the fixed values of a flag.
func complete(cmd *cobra.Command, flag string, values ...string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)) // the flag exists
}
