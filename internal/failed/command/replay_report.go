package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delaying"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/operation"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/transfer"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// survey looks at the queues to send to, and describes them.
func (o *replayOptions) survey(ctx context.Context) error {
	if o.managed() {
		o.list(ctx)
	}
	if err := o.Survey(ctx); err != nil {
		return o.failed(err)
	}
	for _, d := range o.Destinations {
		o.terminal.say("%s: %s", d.Queue, described(d))
	}
	return nil
}

// list lists the vhost over the management API. A user who may not do that can still replay.
func (o *replayOptions) list(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	client, err := o.connection.Management(o.endpoint)
	var live topology.Vhost
	if err == nil {
		live, err = client.List(ctx, o.target.Vhost)
	}
	if lookup := topology.NewLookup(live); err != nil {
		o.terminal.say("The limits of queues are not known: %s: %v", o.endpointBy(), err)
	} else if len(lookup.Unreadable()) == 0 {
		o.Limits = &lookup
	}
}

// described has a queue's counts and limits.
func described(d operation.Destination) string {
	if d.Unknown != nil {
		return "not known: " + d.Unknown.Error()
	}
	parts := []string{failed.Messages(d.Ready), failed.Count(d.Consumers, "consumer")}
	for _, limit := range append(slices.Clone(topology.Limits), "overflow") {
		if value, has := d.Settings[limit]; has {
			parts = append(parts, fmt.Sprintf("%s %v", limit, value))
		}
	}
	if d.Settings == nil {
		parts = append(parts, "limits unknown")
	}
	if n := d.Excess(); n > 0 {
		parts = append(parts, fmt.Sprintf("so %d of %s do not fit", n, failed.Messages(d.Meant)))
	}
	return strings.Join(parts, ", ")
}

func (o *replayOptions) destination() string {
	queues := slices.Sorted(maps.Keys(o.Meant))
	const shown = 3
	if len(queues) > shown {
		return failed.Count(len(queues), "queue")
	}
	return strings.Join(queues, ", ")
}

func (o *replayOptions) report(p transfer.Result) {
	stay, duplicated := max(0, o.Total()-p.Confirmed-p.Vanished), "0"
	if p.Unverified {
		duplicated = fmt.Sprintf("up to %d", p.MostDoubled())
	}
	switch {
	case o.Stopped:
		o.terminal.say("stopped: %d replayed, %d left (replay-id %s)", p.Confirmed, stay, o.ID)
	case p.Interrupted && stay > 0:
		o.terminal.say("stopped: %d replayed, %d left, %s duplicated. Run the same command again to continue.", p.Confirmed, stay, duplicated)
	default:
		o.terminal.say("replayed %d of %d to %s (replay-id %s)", p.Confirmed, o.Found, o.destination(), o.ID)
	}
	if o.keep != "" {
		o.terminal.say("The original messages are in %s.", o.keep)
	}
	o.sayVanished(p)
	if p.Returned > 0 {
		o.terminal.say("%s returned, since no queue is bound for them%s", failed.Messages(p.Returned), o.missingQueue())
	}
	if p.Refused > 0 {
		o.terminal.say("%s refused by the broker: a queue is full, or has no leader: add consumers or raise a limit", failed.Messages(p.Refused))
	}
	o.sayOversized(p)
	if p.Uncertain > 0 {
		o.terminal.say("%s unconfirmed: still in %s, and perhaps also replayed", failed.Messages(p.Uncertain), o.target.Name)
	}
	if p.Unverified {
		o.terminal.say("up to %s duplicated: replayed, and perhaps still in %s", failed.Messages(p.MostDoubled()), o.target.Name)
	}
	o.saySkipped()
}

func (o *replayOptions) saySkipped() {
	for _, reason := range slices.Sorted(maps.Keys(o.Skipped)) {
		advice := ""
		if reason == failed.ErrNoWorkQueue.Error() {
			advice = "; write it with --to"
		}
		o.terminal.say("%d skipped: %s%s", o.Skipped[reason], reason, advice)
	}
}

func (o *replayOptions) missingQueue() string {
	switch {
	case o.to != "":
		return fmt.Sprintf(": there is no queue %q", o.to)
	case o.target.Delayed != "":
		return fmt.Sprintf(" to %s, and its alternate exchange is gone: run terraform apply, or write --to", o.target.Delayed.DeliverExchange())
	case o.target.Pipeline == "":
		return ": there is no queue " + o.destination()
	default:
		return fmt.Sprintf(" to %s: run terraform apply, or write --to", o.target.Pipeline.ReturnExchange())
	}
}

// untilGivenUp is the value of --wait if the user gives none.
const untilGivenUp = "gives_up_after"

// waitsFor is how long to wait for messages to come back. Without a duration, it is the time until the pipeline gives up.
func waitsFor(t *operation.Target, text string) (time.Duration, error) {
	const late = 10 * time.Second // messages expire and are parked a little late
	switch {
	case text == "":
		return 0, nil
	case text == untilGivenUp && t.Worker != nil:
		return t.Worker.GivesUpAfter() + late, nil
	case text == untilGivenUp:
		return 0, errors.New("--wait: only the worker's configuration says how long the pipeline retries; write --config, or --wait=10m")
	}
	wait, err := time.ParseDuration(text)
	if err != nil || wait < 0 {
		return 0, fmt.Errorf("--wait=%s: must be a duration, such as 10m", text)
	}
	return wait, nil
}

// sayUnknown tells the possible fates of messages that did not come back.
func (o *replayOptions) sayUnknown(others int) {
	switch {
	case others <= 0 || o.wait == 0:
	case o.to == "" && o.target.Worker != nil && o.wait < o.target.Worker.GivesUpAfter():
		o.terminal.say("%s not back so far: the pipeline gives up after %s.", failed.Messages(others), o.target.Worker.GivesUpAfter())
	default:
		o.terminal.say("%s not back: done, or still waiting in a queue or at a consumer.", failed.Messages(others))
	}
}

// waitAndCount waits if the user wants it, and tells how many messages came back.
func (o *replayOptions) waitAndCount(ctx context.Context, result transfer.Result) error {
	if result.Interrupted || result.Confirmed+result.Refused == 0 {
		return nil
	}
	if o.Stopped {
		o.wait = 0
	}
	if o.wait > 0 {
		if o.until == untilGivenUp {
			o.terminal.say("waiting for %s, since the pipeline gives up after %s", o.wait, o.target.Worker.GivesUpAfter())
		}
		select {
		case <-time.After(o.wait):
		case <-ctx.Done():
			return operation.ErrUnknown
		}
		o.Progress = o.progress(seen)
		if err := o.Back(ctx); err != nil {
			return fmt.Errorf("look for messages that came back after %s: %w", o.wait, err)
		}
	}
	o.sayBack(result)
	o.sayUnknown(result.Confirmed - o.Again)
	if o.Again < result.Confirmed {
		return o.consumed(ctx)
	}
	return nil
}

// sayBack tells how many messages came back, and what to do about it.
func (o *replayOptions) sayBack(p transfer.Result) {
	var reasons []string
	for _, reason := range slices.Sorted(maps.Keys(o.Reasons)) {
		reasons = append(reasons, fmt.Sprintf(" %d %s.", o.Reasons[reason], cmp.Or(reason, "without a reason")))
	}
	if o.wait > 0 || o.Again > 0 {
		o.terminal.say("After %s: %d back in %s.%s", o.wait, o.Again, o.target.Name, strings.Join(reasons, ""))
	}
	missing := o.Missing()
	if missing > 0 {
		o.terminal.say("%s neither in %s nor back: dropped, expired, or taken by a client.", failed.Messages(missing), o.destination())
	}
	if n := o.target.Delayed; n != "" && o.Reasons[delaying.ReasonUnroutable] > 0 {
		o.terminal.say("Bind a queue to %s for the routing keys of the unroutable messages, or write --to.", n.DeliverExchange())
	}
	if n := o.target.Delayed; n != "" && o.Reasons[failed.ReasonNoInbox] > 0 {
		o.terminal.say("%s is not bound to %s: run terraform apply.", n.Inbox(), n.Exchange())
	}
	remedy := "Find the cause: rabbitmq-retry failed list " + o.argument(o.target) + "."
	if o.Reasons[pipeline.ReasonMaxLength]+o.Reasons[operation.Displaced]+missing+p.Refused > 0 {
		remedy = "A queue is full: start consumers, or raise its max-length."
	}
	if o.Stopped {
		o.terminal.say("%s Then run the same command again. --stop-if-back 100 sends the rest regardless.", remedy)
	}
}

// consumed warns that no worker consumes the inbox, so that no message can come back. After a wait, that is an error.
func (o *replayOptions) consumed(ctx context.Context) error {
	inbox, ready := o.Idle(ctx)
	if inbox == "" {
		return nil
	}
	stays := "must wait"
	if o.target.Pipeline != "" {
		stays = "fail again, or whose work queue is not bound to " + o.target.Pipeline.ReturnExchange() + ","
	}
	o.terminal.say("warning: no worker consumes %s, which has %s. Messages that %s stay there and cannot come back. Start a worker.",
		inbox, failed.Messages(ready), stays)
	if o.wait > 0 {
		return fmt.Errorf("no worker consumes %s, so the wait proves nothing", inbox)
	}
	return nil
}
