package command

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/pass"
)

func (r *replay) destination() string {
	if r.to != "" {
		return r.to
	}
	queues := slices.Sorted(maps.Keys(r.meant))
	const shown = 3
	if len(queues) > shown {
		return failed.Count(len(queues), "queue")
	}
	return strings.Join(queues, ", ")
}

// report says what was done.
func (r *replay) report(p pass.Result, total int) {
	stay := max(0, total-p.Confirmed-p.Vanished)
	if p.Interrupted && stay > 0 {
		r.terminal.say("stopped: %d replayed, %d left, %s duplicated. Run the same command again to continue.", p.Confirmed, stay, duplicated(p))
	} else {
		r.terminal.say("replayed %d of %d to %s (replay-id %s)", p.Confirmed, r.total(), r.destination(), r.how.ID)
	}
	if r.saved != nil {
		r.terminal.say("As they were, they are in %s.", r.exportTo)
	}
	r.sayVanished(p)
	if p.Returned > 0 {
		r.terminal.say("%s returned, since no queue is bound for them%s", failed.Messages(p.Returned), r.missingQueue())
	}
	if p.Refused > 0 {
		r.terminal.say("%s refused by the broker: a queue is full, or has no leader", failed.Messages(p.Refused))
	}
	r.sayOversized(p)
	if p.Uncertain > 0 {
		r.terminal.say("%s unconfirmed: in %s still, and perhaps replayed, too", failed.Messages(p.Uncertain), r.place.Name)
	}
	if p.Unverified {
		r.terminal.say("up to %s duplicated: replayed, and perhaps in %s still", failed.Messages(p.MostDoubled()), r.place.Name)
	}
	r.saySkipped()
}

// duplicated is how many there are, as far as that is known.
func duplicated(p pass.Result) string {
	if p.Unverified {
		return fmt.Sprintf("up to %d", p.MostDoubled())
	}
	return "0"
}

func (r *replay) saySkipped() {
	for _, reason := range slices.Sorted(maps.Keys(r.skipped)) {
		r.terminal.say("%d skipped: %s%s", r.skipped[reason], reason, advice(reason))
	}
}

// advice is what helps.
func advice(reason string) string {
	if reason == failed.ErrNoWorkQueue.Error() {
		return "; write it with --to"
	}
	return ""
}

func (r *replay) missingQueue() string {
	switch {
	case r.to != "":
		return fmt.Sprintf(": there is no queue %q", r.to)
	case r.place.Delayed != "":
		return fmt.Sprintf(" to %s, and its alternate exchange is gone: run terraform apply, or write --to", r.place.Delayed.DeliverExchange())
	case r.place.Pipeline == "":
		return ": there is no queue " + r.destination()
	default:
		return fmt.Sprintf(" to %s: run terraform apply, or write --to", r.place.Pipeline.ReturnExchange())
	}
}
