package command

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/operation"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/transfer"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/view"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

const delayedHelp = `Shows, cancels and moves the messages that wait in a delayed exchange. "failed --queue" shows those in its unrouted
queue.

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
	target := newTarget(getenv)
	return newFamily("delayed", "See and change what waits in a delayed exchange", delayedHelp,
		newDelayedList(target), newDelayedShow(target), newDelayedCancel(target), newDelayedDeliver(target), newDelayedReschedule(target),
		newDelayedImport(target))
}

// delayedOptions are what the commands about waiting messages share.
type delayedOptions struct {
	options
	waiting operation.Waiting
}

func newDelayedOptions(target targetFlags) delayedOptions {
	return delayedOptions{options: options{targetFlags: target}}
}

func (o *delayedOptions) addFlags(cmd *cobra.Command) {
	o.addConnection(cmd, "delayed exchange")
	o.addEndpoint(cmd)
}

func (o *delayedOptions) addLookFlags(cmd *cobra.Command) {
	o.addFlags(cmd)
	cmd.Flags().BoolVarP(&o.terminal.yes, "yes", "y", false, "do not ask, without the management API")
}

// find reads the filter, and finds the delayed exchange and its levels. The target's queue is the unrouted queue.
func (o *delayedOptions) find(cmd *cobra.Command, name string) error {
	n := delayed.Names(name)
	o.queue = n.UnroutedQueue()
	if err := o.read(cmd, nil); err != nil {
		return err
	}
	o.target.Delayed = n
	switch {
	case o.managed():
		return o.listLevels(cmd.Context())
	case o.target.Delaying == nil:
		return fmt.Errorf("the levels of %q are not known: write --endpoint, or --config with a configuration that has it", name)
	}
	o.waiting = operation.NewWaiting(o.target, o.target.Delaying.Levels(), o.sayLook)
	o.terminal.say("Without the management API (--endpoint), levels of an earlier precision or max_delay are not seen. " +
		"The size of the messages is not known. If a policy sets a delivery limit, looks can make messages early.")
	return o.terminal.ask(cmd.Context(), fmt.Sprintf("Read up to %d messages of each level, of any size?", topology.LookSize))
}

func (o *delayedOptions) sayLook(queue string) { o.terminal.line("looking at " + queue) }

// listLevels finds the levels that the broker has, and the size of their messages.
func (o *delayedOptions) listLevels(ctx context.Context) error {
	client, err := o.connection.Management(o.endpoint)
	if err != nil {
		return err
	}
	const columns = "name,messages,messages_dlx,message_bytes,effective_policy_definition,type,durable,arguments"
	queues, err := client.QueuesLike(ctx, o.target.Vhost, o.target.Delayed.LevelPattern(), columns)
	if err != nil {
		return o.unlisted(o.target.Vhost, err)
	}
	found, levels := map[string]broker.QueueInfo{}, []delayed.Level{}
	for _, q := range queues {
		if l, _ := o.target.Delayed.LevelOf(q.Name); o.target.Delayed.IsLevelQueue(q.Name, q.Queue()) {
			found[q.Name], levels = q, append(levels, l)
		}
	}
	o.waiting = operation.NewWaiting(o.target, levels, o.sayLook)
	for i := range o.waiting.Places {
		p := &o.waiting.Places[i]
		q := found[p.Queue]
		p.Pending = known(q.MessagesDLX)
		p.Weigh(known(q.Messages), known(q.Bytes))
		policies, _ := q.Policies.(map[string]any)
		if limit := policies["delivery-limit"]; limit != nil && !strings.HasPrefix(fmt.Sprint(limit), "-") {
			p.Note = "a policy sets a delivery limit, so a look could make messages early"
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

// ended is the error of a look, with advice.
func (o *delayedOptions) ended(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		err = errors.New("stopped; what was read is put back")
	case errors.Is(err, transfer.ErrLocked):
		err = fmt.Errorf("%w%s", err, o.holder(ctx))
	}
	return o.failed(err)
}

// holder says where the other look comes from, if the management API tells.
func (o *delayedOptions) holder(ctx context.Context) string {
	if !o.managed() {
		return ""
	}
	client, err := o.connection.Management(o.endpoint)
	if err != nil {
		return ""
	}
	lock, err := client.Queue(ctx, o.target.Vhost, o.target.Delayed.Lock())
	if err != nil || lock.Holder.Name == "" {
		return ""
	}
	return ", from " + lock.Holder.Name
}

// sayPlaces tells which messages were not seen.
func (o *delayedOptions) sayPlaces() {
	for _, p := range o.waiting.Places {
		switch {
		case p.Unseen == 0:
		case p.Note != "":
			o.terminal.say("%s only counted in %s: %s.", failed.Messages(p.Messages), p.Queue, p.Note)
		default:
			o.terminal.say("%d of %s in %s not seen, due from %s on.", p.Unseen, failed.Messages(p.Messages), p.Queue, view.Time(p.UnseenFrom))
		}
		if p.Pending > 0 {
			o.terminal.say("%s more of %s on the way to the next level.", failed.Messages(int(p.Pending)), p.Queue)
		}
	}
}
