package command

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
)

func newDelayedShow(getenv func(string) string) *cobra.Command {
	o := &delayedOptions{targetFlags: newTarget(getenv)}
	cmd := &cobra.Command{
		Use:   "show EXCHANGE ID",
		Short: "Show one message that waits",
		Long: `Shows when a message is due, its properties, headers and body. ID is its header delay-publish-id, which "delayed list
--messages" shows and which stays the same in every level, or its message-id.

"rabbitmq-retry delayed --help" says what a look does to the messages, and what it needs.`,
		Example: `  rabbitmq-retry delayed show events order-1 --endpoint http://localhost:15672`,
		Args:    cli.Arguments(2, 2),
		RunE:    func(cmd *cobra.Command, args []string) error { return o.show(cmd, args[0], args[1]) },
	}
	o.addFlags(cmd)
	cmd.Flags().BoolVar(&o.raw, "raw", false, "write only the body, unchanged and with its encoding")
	cmd.Flags().StringVarP(&o.format, "output", "o", cli.Table, "table or json")
	complete(cmd, "output", cli.Table, cli.JSON)
	return cmd
}

func (o *delayedOptions) show(cmd *cobra.Command, name, id string) error {
	if err := cli.CheckFormat(o.format, cli.Table, cli.JSON); err != nil {
		return err
	}
	if err := o.find(cmd, name); err != nil {
		return err
	}
	found, seen := map[string]*failed.Waiting{}, 0
	err := o.look(cmd.Context(), func(m *failed.Waiting) (enough bool) {
		if seen++; m.ID == id || m.MessageID == id {
			found[m.ID] = m
		}
		return m.ID == id
	})
	if len(found) == 0 {
		o.sayPlaces()
		if err == nil {
			err = cli.RuntimeError{Err: fmt.Errorf("0 of %s that were seen have the id or message-id %q; it can be among the others, "+
				"delivered, or in %s", failed.Messages(seen), id, o.waiting.Delayed.UnroutedQueue())}
		}
		return err
	}
	if len(found) > 1 {
		return cli.RuntimeError{Err: fmt.Errorf("%d messages have the message-id %q. Write one of these ids: %s", len(found), id,
			strings.Join(slices.Sorted(maps.Keys(found)), ", "))}
	}
	for _, m := range found {
		err = o.write(output{Context: cmd.Context(), To: cmd.OutOrStdout()}, m)
	}
	return cli.Runtime(err)
}

func (o *delayedOptions) write(w io.Writer, m *failed.Waiting) error {
	if o.raw {
		_, err := w.Write(m.Body)
		return err
	}
	if o.format == cli.JSON {
		return cli.WriteJSON(w, struct {
			dueRow
			contentOf
		}{newDueRow(m), newContent(&m.Entry)}, "  ")
	}
	var text bytes.Buffer
	_ = writeColumns(&text, [][]string{
		{"ID", cell(m.ID)},
		{"Due", dueRange(m.From, m.By)},
		{"Waits in", cell(m.Queue)},
		{"Exchange", cell(m.FirstExchange)},
		{"Routing key", cell(m.RoutingKey)},
		{"Message id", cell(m.MessageID)},
	}, nil)
	writeContent(&text, &m.Entry)
	_, err := w.Write(text.Bytes())
	return err
}
