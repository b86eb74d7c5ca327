package command

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/operation"
)

const listExample = `  # What failed, and why?
  rabbitmq-retry failed list orders

  # Which messages are these? Their ids, for "failed replay --ids -".
  rabbitmq-retry failed list orders --reason exhausted --since 2h --messages
  rabbitmq-retry failed list orders --error "no such article" -o id

  # A page to attach to the incident, without the values of two headers or JSON members.
  rabbitmq-retry failed list orders -o html --file orders.html --mask email,card

  # The error queue of another system.
  rabbitmq-retry failed list --queue billing_error --messages -o json`

// listOptions are the options of "list".
type listOptions struct {
	options
	groupBy  []string
	messages bool
	format   string
	page     pageFlags
}

func newList(target targetFlags) *cobra.Command {
	o := &listOptions{options: options{targetFlags: target}}
	cmd := &cobra.Command{
		Use:   "list [PIPELINE]",
		Short: "Show what is in a failed queue",
		Long: `Counts the failed messages by reason, work queue and error, or lists them. It puts all of them back. Errors that
differ only in numbers, hexadecimal digits, UUIDs or times count as one error: <n>, <hex>, <uuid> and <time> stand for
these. It cannot see messages that another consumer holds. Without a name, it writes the same as rabbitmq-retry status.

-o html writes a page for a browser: the groups, the first messages of each, and the commands that send them back. The
page has no scripts and makes no requests, but it has what the messages hold. --mask leaves out the values of headers and
of members of JSON bodies. It then also leaves out all bodies that are not JSON.

Needs: read on <pipeline>.failed. With --queue: read on the queue.`,
		Example: listExample,
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && o.queue == "" && !o.given() && !o.messages && o.page.bodies == "" && len(o.page.mask) == 0 {
				return (&statusOptions{targetFlags: o.targetFlags, format: o.format, file: o.page.file}).run(cmd, args)
			}
			return o.run(cmd, args)
		},
	}
	o.addFlags(cmd)
	flags := cmd.Flags()
	flags.StringSliceVar(&o.groupBy, "group-by", failed.UsualColumns(), "`columns` to count by: "+strings.Join(failed.Columns(), ", "))
	flags.BoolVar(&o.messages, "messages", false, "list the messages instead of counting them")
	flags.StringVarP(&o.format, "output", "o", cli.Table, "table, json, jsonl, id or html")
	o.page.addFlags(cmd)
	complete(cmd, "output", formats...)
	complete(cmd, "group-by", failed.Columns()...)
	return cmd
}

// check checks the flags of the output.
func (o *listOptions) check() error {
	if err := cli.CheckFormat(o.format, formats...); err != nil {
		return err
	}
	if o.format == asHTML && (o.messages || o.Limit > 0) {
		return errors.New("-o html: does not go with --messages and --limit, since it shows the first messages of each group")
	}
	return o.page.check(o.format)
}

func (o *listOptions) run(cmd *cobra.Command, args []string) error {
	if err := o.check(); err != nil {
		return err
	}
	groups, err := failed.NewGroups(o.groupBy)
	if err != nil {
		return fmt.Errorf("--group-by %w", err)
	}
	if err := o.read(cmd, args); err != nil {
		return err
	}
	if o.format == asHTML {
		return o.writePage(cmd.Context(), groups)
	}
	messages := o.messages || o.format == asID
	list := listing{Queue: o.target.Name, Vhost: o.target.Vhost}
	look, err := o.look(cmd.Context(), func(e *failed.Entry) (enough bool) {
		switch {
		case !messages:
			groups.Add(e)
		case o.Limit == 0 || len(list.Rows) < o.Limit:
			list.Rows = append(list.Rows, newRow(e))
		}
		return false
	})
	if err != nil && look.Seen == 0 {
		return err
	}
	list.Groups, list.Messages, list.Selected, list.Consumers = groups.Sorted(), look.Seen, look.Selected, look.Consumers
	if printed := list.write(output{Context: cmd.Context(), To: cmd.OutOrStdout()}, o.format, time.Now()); printed != nil {
		return cli.RuntimeError{Err: printed}
	}
	o.summary(look, len(list.Groups) > 0)
	return cmp.Or(err, o.complete(look))
}

// summary tells how many messages were seen and selected.
func (o *listOptions) summary(result operation.Look, grouped bool) {
	text := failed.Messages(result.Seen) + " in " + o.target.Name
	if result.Selected < result.Seen {
		text += fmt.Sprintf(", %d of them selected", result.Selected)
	}
	if result.Seen > 0 {
		text += "; " + back(result.Result)
	}
	text += "."
	if grouped {
		text += " --messages lists them with their ids."
	}
	o.terminal.say("%s", text)
	if result.Seen == o.guarded.Scan && result.Ready > result.Seen+result.Vanished {
		o.terminal.say("Only the first %d of %d were looked at: write --scan %d for all.", result.Seen, result.Ready, result.Ready)
	}
	o.sayHidden(result)
}
