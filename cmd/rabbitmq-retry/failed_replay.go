package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/content"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/console"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/pass"
)

const failedReplayHelp = `Sends failed messages back to the work queue they failed in. Their attempts count from 1 again. A message is
acknowledged only after the broker has confirmed its copy; SIGTERM ends a replay in good order, and the same
command goes on.

A message whose work queue has no binding to the pipeline's return exchange goes to the inbox: the worker sends
it to its queue by name, or parks it again as unknown_queue. --wait says how many came back.`

const failedReplayExample = `  # Try one message, and see whether it fails again.
  RABBITMQ_URI=amqp://operator:secret@rabbitmq:5672 \
    rabbitmq-retry failed replay orders --reason exhausted --limit 1 --wait 1m

  # Then the others, no faster than the consumers bear.
  rabbitmq-retry failed replay orders --reason exhausted --rate 50/s --yes

  # Any choice: with jq, for example.
  rabbitmq-retry failed list orders --messages -o jsonl | jq -c 'select(.body_bytes < 1000)' |
    rabbitmq-retry failed replay orders --ids - --yes`

// replayOptions say what is replayed, and how.
type replayOptions struct {
	target
	filters
	rate, to, auditLog string
	wait               time.Duration
	dryRun, yes, force bool
}

func newFailedReplayCommand(ctx context.Context, getenv func(string) string) *cobra.Command {
	o := &replayOptions{target: target{connection: connection{getenv: getenv}}}
	cmd := &cobra.Command{
		Use:     "replay [PIPELINE]",
		Aliases: []string{"redrive"},
		Short:   "Send failed messages back to their work queues",
		Long:    failedReplayHelp,
		Example: failedReplayExample,
		Args:    cobra.MaximumNArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return o.run(ctx, cmd, args) },
	}
	o.target.addFlags(cmd)
	o.filters.addFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&o.rate, "rate", "", "`messages` a second at most, such as 50/s (default: as many as possible)")
	flags.StringVar(&o.to, "to", "", "`queue` that the messages go to, in place of the one they failed in")
	flags.BoolVar(&o.dryRun, "dry-run", false, "only say what would be replayed")
	flags.BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	flags.DurationVar(&o.wait, "wait", 0, "then wait so long, and say how many came back")
	flags.StringVar(&o.auditLog, "audit-log", "", "`file` for the record of the run (default: stderr)")
	addForce(cmd, &o.force)
	return cmd
}

// replay is a run of the command.
type replay struct {
	*replayOptions
	*survey
	filter failed.Filter
	rate   float64
	how    failed.Replay
	// meant is by work queue.
	meant map[string]int
	// skipped is by reason.
	skipped map[string]int
}

func (o *replayOptions) run(ctx context.Context, cmd *cobra.Command, args []string) error {
	rate, err := parseRate(o.rate)
	if err != nil {
		return err
	}
	filter, err := o.filter(cmd.InOrStdin(), time.Now())
	if err != nil {
		return err
	}
	place, err := o.findOnly(args)
	if err != nil {
		return err
	}
	if strings.Contains(o.to, "://") {
		return errors.New("--to: the name of a queue is needed, and is a URI")
	}
	con := &console.Console{In: cmd.InOrStdin(), Err: cmd.ErrOrStderr(), Yes: o.yes}
	r := &replay{
		replayOptions: o, filter: filter, rate: rate, meant: map[string]int{}, skipped: map[string]int{},
		survey: &survey{place: place, filters: &o.filters, force: o.force, console: con},
		how:    failed.Replay{Pipeline: place.Pipeline, To: o.to, ID: newReplayID()},
	}
	return r.run(ctx)
}

// newReplayID is short enough to be read out.
func newReplayID() string {
	id := make([]byte, 4)
	_, _ = rand.Read(id) // never fails
	return hex.EncodeToString(id)
}

func (r *replay) run(ctx context.Context) error {
	if err := console.CanAudit(r.auditLog); err != nil {
		return err
	}
	before, err := r.lookFor(ctx, r.filter, r.count)
	if err != nil {
		return err
	}
	r.sayHidden(before)
	total := r.total()
	if r.limit > 0 {
		total = min(total, r.limit)
	}
	plan := fmt.Sprintf("%d messages to %s", total, r.destination())
	switch {
	case total == 0 && len(r.skipped) > 0:
		r.saySkipped()
		return runtimeError{errors.New("no message can be replayed")}
	case total == 0:
		r.console.Say("none of the %d messages in %s is meant", before.Seen, r.place.Name)
		return nil
	case r.dryRun:
		r.console.Say("would replay %s", plan)
		r.saySkipped()
		return nil
	}
	if err := r.console.Ask(ctx, "Replay "+plan+r.pace(total)+"?"); err != nil {
		return err
	}
	result, err := r.publish(ctx, before, total)
	r.report(result, total)
	again, unseen := r.waitAndCount(ctx, result)
	return r.finish(result, again, total, errors.Join(err, unseen))
}

// count notes what is meant before it is done.
func (r *replay) count(e *failed.Entry) {
	if r.to == "" && e.WorkQueue == "" {
		r.skipped[failed.ErrNoWorkQueue.Error()]++
		return
	}
	r.meant[strings.Clone(e.WorkQueue)]++
}

func (r *replay) total() (n int) {
	for _, count := range r.meant {
		n += count
	}
	return n
}

func (r *replay) destination() string {
	if r.to != "" {
		return r.to
	}
	queues := slices.Sorted(maps.Keys(r.meant))
	const shown = 3
	if len(queues) > shown {
		return fmt.Sprintf("%d queues", len(queues))
	}
	return strings.Join(queues, ", ")
}

// pace says how long it takes.
func (r *replay) pace(total int) string {
	if r.rate == 0 {
		return ""
	}
	return fmt.Sprintf(" at %s, about %s", r.replayOptions.rate, (time.Duration(float64(total)/r.rate) * time.Second).Round(time.Second))
}

func (r *replay) publish(ctx context.Context, before pass.Result, total int) (pass.Result, error) {
	selector := r.filter.Selector()
	clear(r.skipped)
	began := time.Now()
	job := pass.Job{
		Before: &before, Publishes: true, Scan: r.scan(), Limit: r.limit, Rate: r.rate,
		Decide: func(e *failed.Entry) pass.Verdict { return r.decide(e, selector) },
		Progress: func(p pass.Progress) {
			r.console.Line(progressLine(p, total, time.Since(began)))
		},
	}
	if r.place.Pipeline == "" {
		job.Decide = spare(r.place.Name, job.Decide)
	}
	result, err := pass.Run(ctx, r.place.Queue, job)
	r.console.Line("")
	return result, err
}

// decide leaves what this run has replayed already, and what failed again since.
func (r *replay) decide(e *failed.Entry, selector *failed.Selector) pass.Verdict {
	if replayedBy(e, r.how.ID) || !selector.Selects(e) {
		return pass.Verdict{}
	}
	r.how.FrameMax = r.place.frameMax
	publishing, err := r.how.Publishing(e, time.Now())
	if err != nil {
		r.skipped[err.Error()]++
		return pass.Verdict{}
	}
	return pass.Verdict{Publish: &publishing}
}

// replayedBy reports whether a message was replayed in this run.
func replayedBy(e *failed.Entry, id string) bool {
	if e.Replays == 0 {
		return false
	}
	properties, err := content.Parse(e.Properties)
	if err != nil {
		return false
	}
	value, _ := properties.Headers().Get(failed.HeaderReplayID)
	text, ok := value.Text()
	return ok && text == id
}

func progressLine(p pass.Progress, total int, since time.Duration) string {
	rate := float64(p.Confirmed) / max(since.Seconds(), 1)
	eta := ""
	if rate > 0 && p.Confirmed < total {
		eta = "  eta " + (time.Duration(float64(total-p.Confirmed)/rate) * time.Second).String()
	}
	if p.Phase != pass.Reading {
		eta = "  " + string(p.Phase)
	}
	return fmt.Sprintf("%d/%d  %.0f/s  %d returned%s%s", p.Confirmed, total, rate, p.Returned, eta, waiting(p))
}

// waitAndCount counts the messages of this run that are back after a while.
func (r *replay) waitAndCount(ctx context.Context, result pass.Result) (again int, err error) {
	if r.wait <= 0 || result.Interrupted || result.Confirmed == 0 {
		return 0, nil
	}
	select {
	case <-time.After(r.wait):
	case <-ctx.Done():
		return 0, errors.New("stopped while waiting: nobody has looked whether messages came back")
	}
	reasons := map[string]int{}
	if _, err := r.lookFor(ctx, failed.Filter{}, func(e *failed.Entry) {
		if replayedBy(e, r.how.ID) {
			again++
			reasons[e.Reason]++
		}
	}); err != nil {
		return 0, fmt.Errorf("look for messages that came back after %s: %w", r.wait, err)
	}
	r.console.Say("After %s: %d back in %s.%s", r.wait, again, r.place.Name, explainReasons(reasons))
	if again < result.Confirmed {
		r.sayInbox(ctx)
	}
	return again, nil
}

func explainReasons(reasons map[string]int) string {
	var text strings.Builder
	for _, reason := range slices.Sorted(maps.Keys(reasons)) {
		_, _ = fmt.Fprintf(&text, " %d %s.", reasons[reason], reason)
	}
	return text.String()
}

// sayInbox says whether messages may lie where nobody takes them.
func (r *replay) sayInbox(ctx context.Context) {
	if r.place.Pipeline == "" || r.to != "" {
		return
	}
	inbox := pass.Queue{Name: r.place.Pipeline.Inbox(), Open: r.place.Open}
	count, err := inbox.Count(ctx)
	if err == nil && count.Consumers == 0 {
		r.console.Say("warning: nobody consumes %s, which has %d messages: what has no binding to %s stays there. Start a worker.",
			inbox.Name, count.Ready, r.place.Pipeline.ReturnExchange())
	}
}

// report says what was done.
func (r *replay) report(p pass.Result, total int) {
	stay := max(0, total-p.Confirmed)
	if p.Interrupted && stay > 0 {
		r.console.Say("stopped: %d replayed, %d stay, %d doubled. Run the same command again to continue.", p.Confirmed, stay, p.Doubled)
	} else {
		r.console.Say("replayed %d of %d to %s (replay-id %s)", p.Confirmed, r.total(), r.destination(), r.how.ID)
	}
	if p.Returned > 0 {
		r.console.Say("%d stay: they were returned, since no queue is bound for them%s", p.Returned, r.missingQueue())
	}
	if p.Refused > 0 {
		r.console.Say("%d stay: the broker refused them; a queue is full, or has no leader", p.Refused)
	}
	if p.Uncertain > 0 {
		r.console.Say("%d stay, and may have been replayed, too: the broker did not answer", p.Uncertain)
	}
	if p.Doubled > 0 {
		r.console.Say("%d were replayed, and seem to be in %s still: others took part, or the connection was lost. Look for replay-id %s.",
			p.Doubled, r.place.Name, r.how.ID)
	}
	if p.Unverified {
		r.console.Say("up to %d were replayed, and may be in %s still", min(p.Confirmed, pass.MayDouble), r.place.Name)
	}
	r.saySkipped()
}

func (r *replay) saySkipped() {
	for _, reason := range slices.Sorted(maps.Keys(r.skipped)) {
		r.console.Say("%d skipped: %s", r.skipped[reason], reason)
	}
}

func (r *replay) missingQueue() string {
	switch {
	case r.to != "":
		return fmt.Sprintf(": there is no queue %q", r.to)
	case r.place.Pipeline == "":
		return ": there is no queue " + r.destination()
	default:
		return fmt.Sprintf(" to %s: run terraform apply, or write --to", r.place.Pipeline.ReturnExchange())
	}
}

// finish leaves the record, and says by its error whether all is done.
func (r *replay) finish(p pass.Result, again, total int, err error) error {
	record := console.Record{
		Command: "replay", To: r.to,
		Filter: r.filter, ReplayID: r.how.ID,
		Counts: map[string]int{
			"selected": p.Selected, "replayed": p.Confirmed, "returned": p.Returned, "refused": p.Refused,
			"uncertain": p.Uncertain, "doubled": p.Doubled, "acknowledged_again": p.Again, "back": again,
		},
	}
	err = r.record(record, r.auditLog, err)
	if err == nil && (p.Confirmed < total || p.Doubled > 0 || again > 0 || len(r.skipped) > 0) {
		err = errors.New("not all messages were replayed for good")
	}
	if err != nil {
		return runtimeError{r.place.unknown(err)}
	}
	return nil
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
