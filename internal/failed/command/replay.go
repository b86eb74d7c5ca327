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

const replayHelp = `Sends failed messages back to the work queue they failed in. Their attempts count from 1 again. A message is
acknowledged only after the broker has confirmed its copy; SIGTERM ends a replay in good order, and the same
command goes on.

A message whose work queue has no binding to the pipeline's return exchange goes to the inbox: the worker sends
it to its queue by name, or parks it again as unknown_queue.

--wait says how many came back. It waits for the pipeline's gives_up_after, which follows from the worker's
configuration: only then a message that fails each time is parked again. --wait=1m waits for a minute. What did not
come back may also wait for a consumer that is slow or stopped.

A replay takes from the message what is known of the failure: reason, error and history; with --to, the queue that it
failed in, too. --export FILE keeps the messages as they were.

A message in the unrouted queue of a delayed exchange (--queue <name>.delay.unrouted) goes to <name>.deliver if it
is due, and else to <name> with the rest of its delay. With --to it goes to that queue at once. The broker brings back
what still cannot be routed; how many those are is said without --wait, too.

Needs: read on <pipeline>.failed, write on <pipeline>.return. With --to: write on amq.default instead. With --queue:
read on the queue, write on amq.default, and on <pipeline>.return for what a worker has parked there.
Of an unrouted queue: read on it, write on <name>.deliver and <name>.
Nothing else for --wait; whether a worker consumes <pipeline>.inbox it says on RabbitMQ 4.3 only to a user who may
read that queue.`

const replayExample = `  # Try one message, and see whether it fails again.
  rabbitmq-retry failed replay orders --reason exhausted --limit 1 --wait --config worker.json --yes

  # Then the others, no faster than the consumers bear.
  rabbitmq-retry failed replay orders --reason exhausted --rate 50/s --yes

  # What a delayed exchange refused while its max_delay was too short.
  rabbitmq-retry failed replay --queue events.delay.unrouted --reason delay_too_long --yes

  # Any choice: with jq, for example.
  rabbitmq-retry failed list orders --messages -o jsonl | jq -c 'select(.body_bytes < 1000)' |
    rabbitmq-retry failed replay orders --ids - --yes`

// replayOptions are the options of "replay".
type replayOptions struct {
	options
	rate, to, exportTo string
	// until is how long to wait for messages to come back, or untilGivenUp.
	until  string
	dryRun bool
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
			return cobra.MaximumNArgs(1)(cmd, args)
		},
		RunE: o.run,
	}
	o.addFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&o.rate, "rate", "", "`messages` a second at most, such as 50/s (default: as many as possible)")
	flags.StringVar(&o.to, "to", "", "`queue` that the messages go to, in place of the one they failed in")
	flags.StringVar(&o.exportTo, "export", "", "`file` that keeps the messages as they were, which must not exist")
	flags.BoolVar(&o.dryRun, "dry-run", false, "only say what would be replayed")
	flags.StringVar(&o.until, "wait", "", "then wait until the pipeline has given up, or for this `duration`, and say how many came back")
	flags.Lookup("wait").NoOptDefVal = untilGivenUp
	o.addAll(cmd)
	o.addRunFlags(cmd, "the run")
	cmd.MarkFlagsMutuallyExclusive("export", "dry-run")
	return cmd
}

// replay is a run of the command.
type replay struct {
	*replayOptions
	*inspection
	*operation.Replay
	filter failed.Filter
	rate   float64
	wait   time.Duration
}

func (o *replayOptions) run(cmd *cobra.Command, args []string) error {
	rate, err := parseRate(o.rate)
	if err != nil {
		return err
	}
	s, filter, err := o.read(cmd, args)
	if err != nil {
		return err
	}
	if err := s.target.CheckTo(o.to); err != nil {
		return fmt.Errorf("--to: %w", err)
	}
	wait, err := waitsFor(s.target, o.until)
	if err != nil {
		return err
	}
	r := &replay{replayOptions: o, inspection: s, filter: filter, rate: rate, wait: wait}
	return r.saving(cmd.Context(), "--export", o.exportTo, r.run)
}

func (r *replay) run(ctx context.Context, saved *operation.Sink) error {
	if err := r.guard(ctx, true); err != nil {
		return err
	}
	r.Replay = r.guarded.NewReplay(r.to, r.rate, saved)
	look, err := r.Look(ctx, r.filter)
	if err != nil {
		return r.failed(err)
	}
	r.sayHidden(look)
	unfound, total := r.notFound(look), r.Total()
	plan := failed.Messages(total) + " to " + r.destination()
	switch {
	case total == 0 && len(r.Skipped) > 0:
		r.saySkipped()
		return cli.RuntimeError{Err: errors.New("no message can be replayed")}
	case total == 0:
		return errors.Join(r.sayNone(look.Result), unfound)
	case r.dryRun:
		r.terminal.say("would replay %s", plan)
		r.sayLost()
		r.saySkipped()
		return unfound
	}
	r.sayLost()
	first := ""
	if saved != nil {
		first = " (saved to " + r.exportTo + " first)"
	}
	if err := r.terminal.ask(ctx, "Replay "+plan+r.pace(total)+first+"?"); err != nil {
		return err
	}
	if saved != nil {
		if err := saved.Keep(); err != nil {
			return cli.RuntimeError{Err: err}
		}
	}
	record := operation.Record{Command: "replay", To: r.to, Filter: r.filter, ReplayID: r.ID}
	if err := r.recordBegin(record, total); err != nil {
		return err
	}
	began := time.Now()
	r.Progress = r.progress(func(p transfer.Progress) string { return progressLine(p, total, time.Since(began)) })
	result, err := r.Publish(ctx)
	r.report(result)
	again, unseen := r.waitAndCount(ctx, result)
	ended := r.recordEnd(record, r.Counts(result, again), result, errors.Join(err, unseen), r.Unfinished(result, again))
	return cmp.Or(ended, unfound)
}

// sayLost names the facts that messages lose by --to.
func (r *replay) sayLost() {
	if r.to != "" && r.exportTo == "" {
		r.terminal.say("With --to the messages lose the queue that they failed in, reason, error and history: --export FILE keeps them.")
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
func (r *replay) pace(total int) string {
	if r.rate == 0 {
		return ""
	}
	return fmt.Sprintf(" at %s, about %s", r.replayOptions.rate, (time.Duration(float64(total)/r.rate) * time.Second).Round(time.Second))
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
