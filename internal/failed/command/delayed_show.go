package command

import (
	"github.com/spf13/cobra"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/operation"
)

type delayedShowOptions struct {
	delayedOptions
	showing
}

func newDelayedShow(target targetFlags) *cobra.Command {
	o := &delayedShowOptions{delayedOptions: newDelayedOptions(target)}
	cmd := &cobra.Command{
		Use:   "show EXCHANGE ID",
		Short: "Show one message that waits",
		Long: `Shows when a message is due, its properties, headers and body. ID is its header delay-publish-id, or a
unique prefix of at least 4 characters, or its message-id. "delayed list --messages" shows them. They stay the same in
every level.

"rabbitmq-retry delayed --help" says what a look does to the messages, and what it needs.`,
		Example: `  rabbitmq-retry delayed show events order-1 --endpoint http://localhost:15672`,
		Args:    cli.Arguments(2, 2),
		RunE:    o.run,
	}
	o.addLookFlags(cmd)
	o.addShowFlags(cmd)
	return cmd
}

func (o *delayedShowOptions) run(cmd *cobra.Command, args []string) error {
	if err := cli.CheckFormat(o.format, cli.Table, cli.JSON); err != nil {
		return err
	}
	if err := o.find(cmd, args[0]); err != nil {
		return err
	}
	found, err := operation.Find(cmd.Context(), &o.waiting, args[1])
	err = o.ended(cmd.Context(), err)
	if len(found.Entries) == 0 {
		o.sayPlaces()
		if err != nil {
			return err
		}
	}
	return o.show(cmd, &o.terminal, args[1], found, "it can be among the others, delivered, or in "+o.target.Name)
}
