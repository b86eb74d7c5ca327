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

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/content"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delaying"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/pass"
)

// waitAndCount counts the messages of this run that are back after a while.
func (r *replay) waitAndCount(ctx context.Context, result pass.Result) (again int, err error) {
	// The broker brings back at once what a delayed exchange cannot route.
	if r.wait <= 0 && r.place.Delayed == "" || result.Interrupted || result.Confirmed == 0 {
		return 0, nil
	}
	select {
	case <-time.After(r.wait):
	case <-ctx.Done():
		return 0, errors.New("stopped while waiting: whether messages came back was not looked at")
	}
	reasons := map[string]int{}
	if _, err := r.look(ctx, failed.Filter{}, func(e *failed.Entry) {
		if replayedBy(e, r.how.ID) {
			again++
			reasons[e.Reason]++
		}
	}); err != nil {
		return 0, fmt.Errorf("look for messages that came back after %s: %w", r.wait, err)
	}
	r.console.Say("After %s: %d back in %s.%s", r.wait, again, r.place.Name, explainReasons(reasons))
	if n := r.place.Delayed; n != "" && reasons[delaying.ReasonUnroutable] > 0 {
		r.console.Say("Bind a queue to %s for the routing keys of the unroutable ones, or write --to.", n.DeliverExchange())
	}
	if n := r.place.Delayed; n != "" && reasons[failed.ReasonNoInbox] > 0 {
		r.console.Say("%s is not bound to %s: run terraform apply.", n.Inbox(), n.Exchange())
	}
	if again < result.Confirmed {
		r.sayInbox(ctx)
	}
	return again, nil
}

func explainReasons(reasons map[string]int) string {
	var text strings.Builder
	for _, reason := range slices.Sorted(maps.Keys(reasons)) {
		_, _ = fmt.Fprintf(&text, " %d %s.", reasons[reason], cmp.Or(reason, "without a reason"))
	}
	return text.String()
}

// sayInbox says whether messages may lie where nobody takes them.
func (r *replay) sayInbox(ctx context.Context) {
	if r.place.inbox() == "" || r.to != "" {
		return
	}
	inbox := pass.Queue{Name: r.place.inbox(), Open: r.place.Open}
	count, err := inbox.Count(ctx)
	if err == nil && count.Consumers == 0 {
		stays := "what has to wait"
		if r.place.Pipeline != "" {
			stays = "what has no binding to " + r.place.Pipeline.ReturnExchange()
		}
		r.console.Say("warning: no worker consumes %s, which has %s: %s stays there. Start one.",
			inbox.Name, failed.Messages(count.Ready), stays)
	}
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
