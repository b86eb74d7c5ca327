package command

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
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

// replayOptions say what is replayed, and how.
type replayOptions struct {
	options
	rate, to, exportTo string
	// until is how long to wait then, or untilGivenUp.
	until  string
	dryRun bool
}

func newReplay(caller caller) *cobra.Command {
	o := &replayOptions{options: newOptions(caller)}
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
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args) },
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
	o.addForce(cmd)
	cmd.MarkFlagsMutuallyExclusive("export", "dry-run")
	return cmd
}

// replay is a run of the command.
type replay struct {
	*replayOptions
	*inspection
	filter failed.Filter
	rate   float64
	wait   time.Duration
	how    failed.Replay
	// meant is by work queue, or by where messages of a delayed exchange go on.
	meant map[string]int
	// skipped is by reason.
	skipped map[string]int
	// saved is the file of --export, nil without, and ids are those in it.
	saved *sink
	ids   []string
	// unfound is an error if messages that were named are not there.
	unfound error
}

func (o *replayOptions) run(cmd *cobra.Command, args []string) error {
	rate, err := parseRate(o.rate)
	if err != nil {
		return err
	}
	filter, err := o.filter(cmd.InOrStdin(), time.Now())
	if err != nil {
		return err
	}
	if err := o.mustChoose(filter); err != nil {
		return err
	}
	target, err := o.findOnly(args)
	if err != nil {
		return err
	}
	if err := target.checkTarget(o.to); err != nil {
		return err
	}
	wait, err := target.waitsFor(o.until)
	if err != nil {
		return err
	}
	r := &replay{
		replayOptions: o, filter: filter, rate: rate, wait: wait, meant: map[string]int{}, skipped: map[string]int{},
		inspection: o.inspection(cmd, target),
		how:        failed.Replay{Pipeline: target.Pipeline, To: o.to, ID: newRunID()},
	}
	return r.run(cmd.Context())
}

// newRunID is short enough to be read out.
func newRunID() string {
	id := make([]byte, 4)
	_, _ = rand.Read(id) // never fails
	return hex.EncodeToString(id)
}

func (r *replay) run(ctx context.Context) error {
	return r.saving("--export", r.exportTo, func(to *sink) error { return r.replay(ctx, to) })
}

func (r *replay) replay(ctx context.Context, saved *sink) error {
	r.saved = saved
	if err := r.target.recognize(ctx); err != nil {
		return cli.RuntimeError{Err: err}
	}
	r.how.Delayed = r.target.Delayed
	before, err := r.look(ctx, r.filter, r.count)
	if err != nil {
		return err
	}
	r.sayHidden(before)
	r.unfound = r.notFound()
	total := r.total()
	if r.limit > 0 {
		total = min(total, r.limit)
	}
	plan := failed.Messages(total) + " to " + r.destination()
	switch {
	case total == 0 && len(r.skipped) > 0:
		r.saySkipped()
		return cli.RuntimeError{Err: errors.New("no message can be replayed")}
	case total == 0:
		return errors.Join(r.sayNone(before), r.unfound)
	case r.dryRun:
		r.terminal.say("would replay %s", plan)
		r.sayLost()
		r.saySkipped()
		return r.unfound
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
		if err := saved.keep(); err != nil {
			return cli.RuntimeError{Err: err}
		}
	}
	record := Record{Run: r.how.ID, Command: "replay", To: r.to, Filter: r.filter, ReplayID: r.how.ID}
	if err := r.recordBegin(record, total); err != nil {
		return err
	}
	result, err := r.publish(ctx, total)
	r.report(result, total)
	again, unseen := r.waitAndCount(ctx, result)
	return r.finish(record, result, again, total, errors.Join(err, unseen))
}

// count notes what is meant before it is done.
func (r *replay) count(e *failed.Entry) {
	switch {
	case r.to == "" && r.target.Delayed != "":
		r.meant[r.onward(e)]++
	case r.to == "" && e.WorkQueue == "":
		r.skipped[failed.ErrNoWorkQueue.Error()]++
		return
	default:
		r.meant[strings.Clone(e.WorkQueue)]++
	}
	if r.saved != nil && (r.limit == 0 || len(r.ids) < r.limit) && r.saved.write(e) {
		r.ids = append(r.ids, e.ID)
	}
}

// sayLost says what --to takes from the messages.
func (r *replay) sayLost() {
	if r.to != "" && r.saved == nil {
		r.terminal.say("With --to the messages lose the queue that they failed in, reason, error and history: --export FILE keeps them.")
	}
}

// onward is where a message of a delayed exchange goes on, and when.
func (r *replay) onward(e *failed.Entry) string {
	exchange := r.how.Exchange(e, time.Now())
	if exchange == r.target.Delayed.DeliverExchange() {
		return exchange + " (at once)"
	}
	return exchange + " (for the rest of their delay)"
}

func (r *replay) total() (n int) {
	for _, count := range r.meant {
		n += count
	}
	return n
}

func (r *replay) publish(ctx context.Context, total int) (transfer.Result, error) {
	filter := r.filter
	if r.saved != nil { // nothing else is replayed
		filter.IDs = r.ids
	}
	selector := filter.Selector()
	clear(r.skipped)
	began := time.Now()
	job := transfer.Job{
		Publishes: true, Scan: r.scan(), Limit: total, Rate: r.rate,
		Decide: func(e *failed.Entry) transfer.Verdict { return r.decide(e, selector) },
	}
	return r.goOver(ctx, job, func(p transfer.Progress) string { return progressLine(p, total, time.Since(began)) })
}

// decide leaves what this run has replayed already, and what failed again since.
func (r *replay) decide(e *failed.Entry, selector *failed.Selector) transfer.Verdict {
	if r.hasReplayed(e) || !selector.Selects(e) {
		return transfer.Verdict{}
	}
	r.how.FrameMax = r.target.frameMax
	publishing, err := r.how.Publishing(e, time.Now())
	if err != nil {
		r.skipped[err.Error()]++
		return transfer.Verdict{}
	}
	return transfer.Verdict{Publish: &publishing}
}

// finish leaves the record, and says by its error whether all is done.
func (r *replay) finish(record Record, p transfer.Result, again, total int, err error) error {
	record.Counts = map[string]int{
		"selected": p.Selected, "replayed": p.Confirmed, "returned": p.Returned, "refused": p.Refused, "too_large": len(p.Oversized),
		"unconfirmed": p.Uncertain, "duplicated": 0, "back": again,
	}
	var unfinished error
	if p.Confirmed < total || p.Unverified || again > 0 || len(r.skipped) > 0 {
		unfinished = errors.New("not all messages were replayed for good")
	}
	return cmp.Or(r.recordEnd(record, p, err, unfinished), r.unfound)
}

// parseRate reads messages a second, such as 50/s or 50.
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

// pace says how long it takes.
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
