package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/operation"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/transfer"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// delayedActOptions belong to the commands that take messages out of levels.
type delayedActOptions struct {
	delayedOptions
	to, by string
	// due is when a message is to be due.
	due func(*failed.Entry) time.Time
	// unfound says which ids have no message. The run acts on the others.
	unfound error
}

// addActFlags adds the flags of these commands. The text says what is done.
func (o *delayedActOptions) addActFlags(cmd *cobra.Command, done string) {
	o.addFlags(cmd)
	o.addDueFlags(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&o.dryRun, "dry-run", false, "only count the messages that would be "+done)
	flags.BoolVar(&o.all, "all", false, "act on all messages that are seen; without --all, a filter or --limit must choose messages")
	flags.IntVar(&o.Limit, "limit", 0, "greatest `number` of messages to act on (default: all)")
	o.addRunFlags(cmd)
}

func newDelayedCancel(target targetFlags) *cobra.Command {
	o := &delayedActOptions{delayedOptions: newDelayedOptions(target)}
	cmd := &cobra.Command{
		Use:   "cancel EXCHANGE",
		Short: "Take messages that wait out, to a file",
		Long: `Takes messages out of the levels. It first writes them to a file, and then says in each line how far the message is:
"kept", "open" while it takes the message out, and "done". "delayed import" publishes the messages that are done again.

A message that leaves for another level meanwhile is found there. What is not found is due, or in a place that looks do
not reach, which the command names.

"rabbitmq-retry delayed --help" says what a look does to the messages. Needs: as "delayed list".`,
		Example: `  rabbitmq-retry delayed cancel events --header tenant=a --dry-run

  # The messages of an order, with a name for the file.
  rabbitmq-retry delayed cancel events --message-id order-1 --export order-1.jsonl --yes

  rabbitmq-retry delayed list events --due-before 2h -o id | rabbitmq-retry delayed cancel events --ids - --yes`,
		Args: cli.Arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args[0], o.cancel) },
	}
	o.addActFlags(cmd, "cancelled")
	cmd.Flags().StringVar(&o.keep, "export", "", "`file` to create for the messages (default: cancelled-, the time, and .jsonl)")
	return cmd
}

func newDelayedDeliver(target targetFlags) *cobra.Command {
	o := &delayedActOptions{delayedOptions: newDelayedOptions(target)}
	cmd := &cobra.Command{
		Use:   "deliver EXCHANGE",
		Short: "Deliver messages that wait now",
		Long: `Publishes messages to the delayed exchange again, without a delay, and then takes them out of their level. If the command
is killed, or loses its connection, a message can come twice, with the same message-id.

"rabbitmq-retry delayed --help" says what a look does to the messages. Needs: as "delayed list", and write on the exchange.`,
		Example: `  rabbitmq-retry delayed deliver events --message-id order-1`,
		Args:    cli.Arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.due = func(*failed.Entry) time.Time { return time.Now() }
			return o.run(cmd, args[0], o.move)
		},
	}
	o.addActFlags(cmd, "delivered")
	return cmd
}

func newDelayedReschedule(target targetFlags) *cobra.Command {
	o := &delayedActOptions{delayedOptions: newDelayedOptions(target)}
	cmd := &cobra.Command{
		Use:   "reschedule EXCHANGE",
		Short: "Change when messages that wait are due",
		Long: `Publishes messages to the delayed exchange again, with a new delay, and then takes them out of their level. If the command
is killed, or loses its connection, a message can come twice, with the same message-id. The new time is by the clock of
this machine. A message that is due before then is delivered at once.

"rabbitmq-retry delayed --help" says what a look does to the messages. Needs: as "delayed list", and write on the exchange.`,
		Example: `  rabbitmq-retry delayed reschedule events --header tenant=a --by 2h

  rabbitmq-retry delayed reschedule events --message-id order-1 --to 2026-12-24T18:00:00Z`,
		Args: cli.Arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.due, err = o.newTime(time.Now()); err != nil {
				return err
			}
			return o.run(cmd, args[0], o.move)
		},
	}
	o.addActFlags(cmd, "rescheduled")
	cmd.Flags().StringVar(&o.to, "to", "", "`time` when they are due: RFC 3339, or a duration from now such as 2h")
	cmd.Flags().StringVar(&o.by, "by", "", "`duration` to add to the time when each is due, such as 2h or -30m")
	cmd.MarkFlagsOneRequired("to", "by")
	cmd.MarkFlagsMutuallyExclusive("to", "by")
	return cmd
}

// newTime reads when messages are to be due. If only bounds are known, a message is not early.
func (o *delayedActOptions) newTime(now time.Time) (func(*failed.Entry) time.Time, error) {
	if o.by == "" {
		to, err := bounds{direction: "from now"}.moment("to", o.to, now)
		return func(*failed.Entry) time.Time { return to }, err
	}
	by, err := time.ParseDuration(o.by)
	if err != nil {
		return nil, fmt.Errorf("--by %q: must be a duration, such as 2h or -30m", o.by)
	}
	return func(e *failed.Entry) time.Time {
		if !e.DueBy.IsZero() {
			return e.DueBy.Add(by)
		}
		return e.Due.Add(by)
	}, nil
}

// run finds the exchange. Records name it as the queue.
func (o *delayedActOptions) run(cmd *cobra.Command, exchange string, do func(context.Context) error) error {
	if err := o.find(cmd, exchange); err != nil {
		return err
	}
	o.command = "delayed " + o.command
	return do(cmd.Context())
}

// begins begins the run.
func (o *delayedOptions) begins(ctx context.Context) (err error) {
	named := *o.target
	named.Name = string(named.Delayed)
	o.guarded, err = named.Guard(ctx, o.Options, false)
	return o.failed(err)
}

// choose selects the messages to act on. If none match, or with --dry-run, it says how many and returns nil.
func (o *delayedActOptions) choose(ctx context.Context, what string, each func(*failed.Entry)) (operation.Chosen, error) {
	if err := o.begins(ctx); err != nil {
		return nil, err
	}
	chosen, total := operation.Chosen{}, 0
	look, err := o.waiting.Look(ctx, o.filter, func(e *failed.Entry) (enough bool) {
		if total++; o.Limit == 0 || total <= o.Limit {
			chosen.Add(e)
			each(e)
		}
		return false
	})
	if err := o.ended(ctx, err); err != nil {
		return nil, err
	}
	o.unfound = o.failed(look.NotFound(string(o.target.Delayed)))
	if total = chosen.Total(); total == 0 || o.dryRun {
		o.terminal.say("would %s %d of %s that were seen", what, total, failed.Messages(look.Seen))
		o.sayPlaces()
		return nil, o.unfound
	}
	return chosen, nil
}

func (o *delayedActOptions) cancel(ctx context.Context) error {
	o.keep = cmp.Or(o.keep, time.Now().UTC().Format("cancelled-20060102T150405Z.jsonl"))
	f, err := createFile("--export", o.keep)
	if err != nil {
		return err
	}
	messages := operation.NewCancelFile(f)
	o.saved = operation.NewSink(f, o.keep)
	o.saved.Encode = messages.Encode
	defer o.saved.CloseKept()
	if err := canRecord(o.record, f); err != nil {
		return err
	}
	chosen, err := o.choose(ctx, "cancel", o.saved.WriteDated)
	if err != nil || chosen == nil {
		return err
	}
	meant := chosen.Total()
	record := operation.Record{Command: o.command, To: o.keep, Filter: o.filter}
	if err := o.begin(ctx, fmt.Sprintf("Cancel %s (saved to %s first)?", failed.Messages(meant), o.keep), record, meant); err != nil {
		return err
	}
	p, err := o.waiting.Cancel(ctx, chosen, messages)
	o.terminal.say("cancelled %d of %s", p.Dropped, failed.Messages(meant))
	if p.Dropped > 0 || p.Unverified {
		o.terminal.say("To undo: rabbitmq-retry delayed import %s %s", pasted(string(o.target.Delayed)), pasted(o.keep))
	}
	return o.finish(record, map[string]int{"selected": meant, "cancelled": p.Dropped}, p, err, meant)
}

// finish says what stays, and writes the record.
func (o *delayedActOptions) finish(r operation.Record, counts map[string]int, p transfer.Result, ended error, meant int) error {
	var unfinished error
	if p.Dropped < meant {
		unfinished = fmt.Errorf("%s not found again: delivered meanwhile, or in a place that a look does not reach",
			failed.Messages(meant-p.Dropped))
		o.sayPlaces()
	}
	return cmp.Or(o.recordEnd(r, counts, transfer.Result{}, ended, unfinished), o.unfound)
}

// longest is the longest delay that the exchange takes, 0 if it is not known.
func (o *delayedActOptions) longest(ctx context.Context) (time.Duration, error) {
	if !o.managed() {
		return pipeline.ParseDelay(o.target.Delaying.MaxDelay)
	}
	client, err := o.connection.Management(o.endpoint)
	if err != nil {
		return 0, err
	}
	bindings, err := client.BindingsTo(ctx, o.target.Vhost, o.target.Name)
	if err != nil && !broker.IsNotFound(err) {
		return 0, o.unlisted(o.target.Vhost, err)
	}
	exchange, _ := delayed.Recover(string(o.target.Delayed), o.target.Vhost, topology.Topology{Bindings: bindings})
	return exchange.MaxDelay.Wait, nil
}

func (o *delayedActOptions) move(ctx context.Context) error {
	if err := canRecord(o.record, nil); err != nil {
		return err
	}
	longest, err := o.longest(ctx)
	if err != nil {
		return err
	}
	verb, tooLong := o.command[len("delayed "):], 0
	chosen, err := o.choose(ctx, verb, func(e *failed.Entry) {
		if longest > 0 && time.Until(o.due(e)) > longest {
			tooLong++
		}
	})
	if err != nil || chosen == nil {
		return err
	}
	if tooLong > 0 {
		return cli.RuntimeError{Err: fmt.Errorf("%s would wait for longer than %s, the exchange's max_delay: nothing was changed",
			failed.Messages(tooLong), pipeline.FormatDelay(longest))}
	}
	idle, err := o.waiting.Idle(ctx)
	if err != nil {
		return o.failed(err)
	}
	meant := chosen.Total()
	if idle {
		o.terminal.say("No sidecar consumes %s: the messages stay there until one runs.", o.target.Delayed.Inbox())
	}
	record := operation.Record{Command: o.command, To: cmp.Or(o.to, o.by), Filter: o.filter}
	if err := o.begin(ctx, fmt.Sprintf("Publish %s again?", failed.Messages(meant)), record, meant); err != nil {
		return err
	}
	p, err := o.waiting.Move(ctx, chosen, o.due, o.guarded.FrameMax())
	o.terminal.say("%sed %d of %s", strings.TrimSuffix(verb, "e"), p.Dropped, failed.Messages(meant))
	if n := p.Confirmed - p.Dropped + p.Uncertain; n > 0 {
		o.terminal.say("%s can be delivered twice: published, and perhaps still in their level", failed.Messages(n))
	}
	o.sayOversized(p)
	counts := map[string]int{
		"selected": meant, "published": p.Confirmed, "taken_out": p.Dropped, "returned": p.Returned, "refused": p.Refused,
		"unconfirmed":        p.Uncertain,
		"duplicated_at_most": p.Confirmed - p.Dropped + p.Uncertain,
	}
	return o.finish(record, counts, p, err, meant)
}

var errOpen = errors.New("it is not known whether the delayed exchange has these messages")
