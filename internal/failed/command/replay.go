package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/operation"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/transfer"
)

const replayHelp = `Sends failed messages back to the work queue that they failed in. Their attempts count from 1 again. A message is
acknowledged only after the broker has confirmed its copy. SIGTERM ends a replay in good order, and the same command
continues it.

It first says how many messages and consumers each target has, and which limits, if you give the address of the
management API. It sends 20 messages, and waits until refused ones would be back. If more than --stop-if-back percent
of the sent messages are back, it stops, and leaves the rest where it was.

If a work queue has no binding to the pipeline's return exchange, its messages go to the inbox. The worker sends them
to the queue by name, or parks them again as unknown_queue.

--wait says how many messages came back. It waits for the pipeline's gives_up_after, which follows from the worker's
configuration. A message that fails each time is parked again by then. --wait=1m waits for a minute. A message that did
not come back can also wait for a slow or stopped consumer.

A replay removes the facts about the failure from the message: reason, error and history. With --to, it also removes
the queue that the message failed in. --export FILE keeps the original messages.

If a message in the unrouted queue of a delayed exchange (--queue <name>.delay.unrouted) is due, it goes to
<name>.deliver. Otherwise it goes to <name> with the rest of its delay. With --to, it goes to that queue at once. The
broker brings back messages that it still cannot route.

Needs: read on <pipeline>.failed, write on <pipeline>.return. With --to: write on amq.default instead. With --queue:
read on the queue, write on amq.default, and on <pipeline>.return for messages that a worker has parked there.
For an unrouted queue: read on the queue, write on <name>.deliver and <name>. --wait needs no other permission. On
RabbitMQ 4.3, the command needs read on <pipeline>.inbox to warn that no worker consumes that queue, and read on a
target to count it. The management API needs the tag management.`

const replayExample = `  # Try one message, and see whether it fails again.
  rabbitmq-retry failed replay orders --reason exhausted --limit 1 --wait --config worker.json --yes

  # Then the others, at a rate that the consumers can take.
  rabbitmq-retry failed replay orders --reason exhausted --rate 50/s --yes

  # Messages that a delayed exchange refused while its max_delay was too short.
  rabbitmq-retry failed replay --queue events.delay.unrouted --reason delay_too_long --yes

  # Any other choice, for example with jq.
  rabbitmq-retry failed list orders --messages -o jsonl | jq -c 'select(.body_bytes < 1000)' |
    rabbitmq-retry failed replay orders --ids - --yes`

// replayOptions are the options of "replay", and its run.
type replayOptions struct {
	options
	rate, to string
	// until is how long to wait for messages to come back, or untilGivenUp.
	until string
	// stopIfBack is a percentage.
	stopIfBack int

	// perSecond is the parsed rate, and wait the parsed until.
	perSecond float64
	wait      time.Duration
	*operation.Replay
}

func newReplay(target targetFlags) *cobra.Command {
	o := &replayOptions{options: options{targetFlags: target}}
	cmd := &cobra.Command{
		Use:     "replay [PIPELINE]",
		Aliases: []string{"redrive"},
		Short:   "Send failed messages back to their work queues",
		Long:    replayHelp,
		Example: replayExample,
		Args: func(cmd *cobra.Command, args []string) error {
			if _, err := time.ParseDuration(strings.Join(args[len(args)-min(1, len(args)):], "")); err == nil && o.until == untilGivenUp {
				return fmt.Errorf("--wait: write --wait=%s", args[len(args)-1])
			}
			return cli.Arguments(0, 1)(cmd, args)
		},
		RunE: o.run,
	}
	o.addFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&o.rate, "rate", "", "`messages` a second at most, such as 50/s (default: as many as possible)")
	flags.StringVar(&o.to, "to", "", "`queue` to send the messages to, instead of the queues that they failed in")
	flags.StringVar(&o.until, "wait", "", "wait until the pipeline has given up, or for this `duration`; say how many messages came back")
	flags.Lookup("wait").NoOptDefVal = untilGivenUp
	flags.IntVar(&o.stopIfBack, "stop-if-back", 10, "stop once more than this `percentage` of the sent messages is back; 100 never stops")
	o.addEndpoint(cmd)
	o.addTakingFlags(cmd, "original messages", "replayed")
	return cmd
}

func (o *replayOptions) run(cmd *cobra.Command, args []string) (err error) {
	if o.perSecond, err = parseRate(o.rate); err != nil {
		return err
	}
	if o.stopIfBack < 0 || o.stopIfBack > 100 {
		return fmt.Errorf("--stop-if-back %d: must be from 0 to 100", o.stopIfBack)
	}
	if err := o.read(cmd, args); err != nil {
		return err
	}
	if err := o.target.CheckTo(o.to); err != nil {
		return fmt.Errorf("--to: %w", err)
	}
	if o.wait, err = waitsFor(o.target, o.until); err != nil {
		return err
	}
	return o.saving(cmd.Context(), o.replay)
}

func (o *replayOptions) replay(ctx context.Context) error {
	if err := o.guard(ctx, true); err != nil {
		return err
	}
	o.Replay = o.guarded.NewReplay(o.to, o.perSecond)
	o.StopIfBack = o.stopIfBack
	look, err := o.Look(ctx, o.filter)
	if err != nil {
		return o.failed(err)
	}
	o.sayHidden(look)
	unfound, total := o.notFound(look), o.Total()
	plan := failed.Messages(total) + " to " + o.destination()
	switch {
	case total == 0 && len(o.Skipped) > 0:
		o.saySkipped()
		return cli.RuntimeError{Err: errors.New("no message can be replayed: the lines above say why")}
	case total == 0:
		return errors.Join(o.sayNone(look.Result), unfound)
	}
	if err := o.survey(ctx); err != nil {
		return err
	}
	o.sayIDs("chosen", o.IDs)
	if o.dryRun {
		o.terminal.say("would replay %s", plan)
		o.sayLost()
		o.saySkipped()
		return errors.Join(o.counted(look.Result), unfound)
	}
	o.sayLost()
	first := ""
	if o.saved != nil {
		first = " (saved to " + o.keep + " first)"
	}
	record := operation.Record{Command: o.command, To: o.to, Filter: o.filter, ReplayID: o.ID, IDs: o.IDs}
	if err := o.begin(ctx, "Replay "+plan+o.pace(total)+first+"?", record, total); err != nil {
		return err
	}
	began := time.Now()
	o.Progress = o.progress(func(p transfer.Progress) string { return progressLine(p, total, time.Since(began)) })
	result, err := o.Publish(ctx)
	o.report(result)
	unseen := o.waitAndCount(ctx, result)
	record.IDs = o.Sent
	if len(o.Sent) < len(o.IDs) {
		o.sayIDs("sent", o.Sent)
	}
	ended := o.recordEnd(record, o.Counts(result), result, errors.Join(err, unseen), o.Unfinished(result))
	return cmp.Or(ended, unfound)
}

// sayIDs names messages. The record has all of them.
func (o *replayOptions) sayIDs(done string, ids []string) {
	const most = 100
	if o.guarded.Limit > 0 {
		o.terminal.say("%s: %s", done, cmp.Or(strings.Join(ids[:min(most, len(ids))], " "), "none"))
	}
}

// sayLost names the facts that messages lose by --to.
func (o *replayOptions) sayLost() {
	if o.to != "" && o.keep == "" {
		o.terminal.say("With --to, the messages lose reason, error, history and the queue that they failed in. --export FILE keeps all of it.")
	}
}

// parseRate reads messages per second, such as 50/s or 50.
func parseRate(text string) (float64, error) {
	if text == "" {
		return 0, nil
	}
	rate, err := strconv.ParseFloat(strings.TrimSuffix(text, "/s"), 64)
	if err != nil || rate <= 0 || math.IsInf(rate, 0) || math.IsNaN(rate) {
		return 0, fmt.Errorf("--rate %q: must be messages a second, such as 50/s", text)
	}
	return rate, nil
}

// pace tells how long the replay takes.
func (o *replayOptions) pace(total int) string {
	if o.perSecond == 0 {
		return ""
	}
	return fmt.Sprintf(" at %s, about %s", o.rate, (time.Duration(float64(total)/o.perSecond) * time.Second).Round(time.Second))
}

func progressLine(p transfer.Progress, total int, since time.Duration) string {
	rate := float64(p.Confirmed) / max(since.Seconds(), 1)
	eta := ""
	if rate > 0 && p.Confirmed < total {
		eta = "  eta " + (time.Duration(float64(total-p.Confirmed)/rate) * time.Second).String()
	}
	if p.Phase != transfer.Reading {
		eta = "  " + string(p.Phase)
	}
	return fmt.Sprintf("%d/%d  %.0f/s  %d returned%s", p.Confirmed, total, rate, p.Returned, eta)
}
