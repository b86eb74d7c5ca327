package command

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/operation"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/view"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

const delayedHelp = `Shows the messages that wait in a delayed exchange. The messages in its unrouted queue are shown by "failed --queue".

A look takes up to 5000 messages from the front of each level, for less than a second, and puts them back. It loses no
message and makes none early. In each level where a message is due meanwhile, it makes that message late by up to a
second, or by about 3 seconds if its process is frozen. Levels that wait for less than 10 s, the inbox and the refused
queue are only counted. One look goes on at a time: the queue <name>.delay.lock is the lock.

Look at levels with these commands only. "Get messages" in the management UI, or a consumer of your own, makes messages
late by as long as the level waits, which can be days.

The levels and the sizes of their messages come from the management API (--endpoint or $RABBITMQ_ENDPOINT), whose user
needs the tag management. Without it, the levels come from the worker's configuration, retired levels are not seen, and
the command asks before it looks. Levels whose messages are too large are only counted.

Needs: configure on <name>.delay.lock, read on the levels, as in operator_permissions["delayed list"].`

// NewDelayed is the command "delayed" with its subcommands.
func NewDelayed(getenv func(string) string) *cobra.Command {
	cmd := &cobra.Command{
		Use:               "delayed",
		Short:             "See the messages that wait in a delayed exchange",
		Long:              delayedHelp,
		ValidArgs:         []string{"help"},
		Args:              cli.Arguments(0, 0),
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return noneEmpty(cmd.Flags()) },
	}
	cmd.AddCommand(newDelayedList(getenv), newDelayedShow(getenv))
	return cmd
}

// delayedOptions are what the commands about waiting messages share.
type delayedOptions struct {
	targetFlags
	format   string
	raw      bool
	terminal terminal
	waiting  operation.Waiting
}

func (o *delayedOptions) addFlags(cmd *cobra.Command) {
	o.addConnection(cmd, "delayed exchange")
	o.addEndpoint(cmd)
	cmd.Flags().BoolVarP(&o.terminal.yes, "yes", "y", false, "do not ask, without the management API")
}

// find finds the delayed exchange and its levels.
func (o *delayedOptions) find(cmd *cobra.Command, name string) error {
	o.terminal.in, o.terminal.err = cmd.InOrStdin(), cmd.ErrOrStderr()
	uris, err := o.connection.Brokers()
	if err != nil {
		return err
	}
	config, err := o.config()
	if err != nil {
		return err
	}
	if err := refusal(config, name); err != nil && !o.managed() {
		return err
	}
	t := &operation.Target{Brokers: o.connection.Brokers, Vhost: o.vhost, Delayed: delayed.Names(name), Name: name}
	if err := chooseDelayed(t, name, config); err != nil {
		return err
	}
	if t.Vhost == "" {
		t.Vhost = uris[0].Vhost()
	}
	o.waiting.Target = t
	switch {
	case o.managed():
		return o.listLevels(cmd.Context())
	case t.Delaying == nil:
		return fmt.Errorf("the levels of %q are not known: write --endpoint, or --config with a configuration that has it", name)
	}
	o.waiting.Places = operation.NewPlaces(t.Delayed, t.Delaying.Levels())
	o.terminal.say("Without the management API (--endpoint), levels of an earlier precision or max_delay are not seen. " +
		"The size of the messages is not known. If a policy sets a delivery limit, looks can make messages early.")
	return o.terminal.ask(cmd.Context(), fmt.Sprintf("Read up to %d messages of each level, of any size?", topology.LookSize))
}

// listLevels finds the levels that the broker has, and the size of their messages.
func (o *delayedOptions) listLevels(ctx context.Context) error {
	client, err := o.connection.Management(o.endpoint)
	if err != nil {
		return err
	}
	n := o.waiting.Delayed
	const columns = "name,messages,messages_dlx,message_bytes,effective_policy_definition,type,durable,arguments"
	queues, err := client.QueuesLike(ctx, o.waiting.Vhost, n.LevelPattern(), columns)
	if broker.IsNotFound(err) {
		err = errors.New("it does not exist, or the user has no permissions in it")
	}
	if err != nil {
		err = fmt.Errorf("list levels of vhost %q by the management API (--vhost, %s): %w", o.waiting.Vhost, o.endpointBy(), err)
		return cli.RuntimeError{Err: err}
	}
	found, levels := map[string]broker.QueueInfo{}, []delayed.Level{}
	for _, q := range queues {
		if l, is := n.LevelOf(q.Name); is && n.IsLevelQueue(q.Name, q.Queue()) {
			found[q.Name], levels = q, append(levels, l)
		}
	}
	if len(levels) == 0 {
		return cli.RuntimeError{Err: o.waiting.Missing()}
	}
	o.waiting.Places = operation.NewPlaces(n, levels)
	for i := range o.waiting.Places {
		p := &o.waiting.Places[i]
		q := found[p.Queue]
		p.Pending = known(q.MessagesDLX)
		p.Weigh(known(q.Messages), known(q.Bytes))
		if policies, is := q.Policies.(map[string]any); is && policies["delivery-limit"] != nil {
			p.Against = "a policy sets a delivery limit, so a look could make messages early"
		}
	}
	return nil
}

// known is a count, 0 if it is not known.
func known(count *int64) int64 {
	if count == nil {
		return 0
	}
	return *count
}

// look passes the messages to visit, and returns an error if not all levels were looked at.
func (o *delayedOptions) look(ctx context.Context, visit func(*failed.Waiting) (enough bool)) error {
	o.waiting.Progress = func(p *operation.Place) { o.terminal.line("looking at " + p.Queue) }
	err := o.waiting.Look(ctx, visit)
	o.terminal.line("")
	if ctx.Err() != nil {
		err = errors.New("stopped; what was read is put back")
	}
	return cli.Runtime(o.advise(o.waiting.Target, err))
}

// sayPlaces tells which messages were not seen. Places with the same note share a line.
func (o *delayedOptions) sayPlaces() {
	counted, queues := map[string]int{}, map[string][]string{}
	for _, p := range o.waiting.Places {
		if p.Note != "" {
			counted[p.Note] += p.Messages
			queues[p.Note] = append(queues[p.Note], p.Queue)
		}
	}
	for _, note := range slices.Sorted(maps.Keys(counted)) {
		o.terminal.say("%s only counted in %s: %s.", failed.Messages(counted[note]), strings.Join(queues[note], ", "), note)
	}
	for _, p := range o.waiting.Places {
		if p.Note == "" && p.Unseen > 0 {
			o.terminal.say("%d of %s in %s not seen, due from %s on.", p.Unseen, failed.Messages(p.Messages), p.Queue, view.Time(p.UnseenFrom))
		}
		if p.Pending > 0 {
			o.terminal.say("%s more of %s on the way to the next level.", failed.Messages(int(p.Pending)), p.Queue)
		}
	}
}

// dueTime is a time in UTC, rounded up to seconds.
func dueTime(at time.Time) string { return view.Time(at.Add(time.Second - 1)) }
