package operation

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/transfer"
)

// Replay sends messages back to work.
type Replay struct {
	*Run
	// Meant counts the messages that the look found, by work queue, or by the exchange that messages of a delayed exchange go
	// to. Skipped counts the messages that cannot be replayed, by reason.
	Meant, Skipped map[string]int

	rate   float64
	how    failed.Replay
	saved  *Sink
	chosen Chosen
}

// NewReplay prepares a replay to the queue named to, or to the queues where the messages failed if that is "". The rate is in
// messages per second, 0 for no limit. The sink, if it is not nil, keeps the original messages.
func (r *Run) NewReplay(to string, rate float64, saved *Sink) *Replay {
	return &Replay{
		Run: r, Meant: map[string]int{}, Skipped: map[string]int{}, rate: rate, saved: saved, chosen: Chosen{},
		how: failed.Replay{Pipeline: r.Pipeline, Delayed: r.Delayed, To: to, ID: r.ID, FrameMax: r.frameMax},
	}
}

// Look chooses the messages that the filter selects.
func (r *Replay) Look(ctx context.Context, filter failed.Filter) (Look, error) {
	n := 0
	return r.Run.Look(ctx, filter, func(e *failed.Entry) (enough bool) {
		switch {
		case r.how.To == "" && r.Delayed != "":
			r.Meant[r.onward(e)]++
		case e.Refusal != nil:
			r.Skipped[e.Refusal.Error()]++
			return false
		case r.how.To == "" && e.WorkQueue == "":
			r.Skipped[failed.ErrNoWorkQueue.Error()]++
			return false
		default:
			r.Meant[strings.Clone(e.WorkQueue)]++
		}
		if n++; (r.Limit == 0 || n <= r.Limit) && (r.saved == nil || r.saved.Write(e)) {
			r.chosen.Add(e)
		}
		return false
	})
}

// onward tells where and when a message of a delayed exchange goes on.
func (r *Replay) onward(e *failed.Entry) string {
	exchange := r.how.Exchange(e, time.Now())
	if exchange == r.Delayed.DeliverExchange() {
		return exchange + " (at once)"
	}
	return exchange + " (for the rest of their delay)"
}

// Found is how many messages the look found that can be replayed.
func (r *Replay) Found() (n int) {
	for _, count := range r.Meant {
		n += count
	}
	return n
}

// Total is how many messages are replayed: Found, up to the limit.
func (r *Replay) Total() int {
	if r.Limit > 0 {
		return min(r.Found(), r.Limit)
	}
	return r.Found()
}

// Publish replays the chosen messages, after the sink has made them durable.
func (r *Replay) Publish(ctx context.Context) (transfer.Result, error) {
	if r.saved != nil {
		if err := r.saved.Keep(); err != nil {
			return transfer.Result{}, err
		}
	}
	job := transfer.Job{Publishes: true, Rate: r.rate, Done: func(p failed.Publishing, confirmed bool) {
		if !confirmed {
			r.chosen[p.Of]++ // the message comes again in the next round
		}
	}}
	return r.act(ctx, job, r.chosen, func(e *failed.Entry) transfer.Verdict {
		publishing, err := r.how.Publishing(e, time.Now())
		if err != nil {
			r.Skipped[err.Error()]++
			return transfer.Verdict{}
		}
		publishing.Of = e.Digest
		return transfer.Verdict{Publish: &publishing}
	})
}

// Back counts the messages of this replay that are in the queue again, by reason.
func (r *Replay) Back(ctx context.Context) (again int, reasons map[string]int, err error) {
	reasons = map[string]int{}
	_, err = r.Run.Look(ctx, failed.Filter{}, func(e *failed.Entry) (enough bool) {
		if e.Replays > 0 && e.ReplayID == r.ID {
			again++
			reasons[e.Reason]++
		}
		return false
	})
	return again, reasons, err
}

// Idle is the inbox, with its number of messages, if no worker consumes it: then no message can fail again. It is "" if a
// worker consumes it, or if the user may not count the consumers.
func (r *Replay) Idle(ctx context.Context) (inbox string, ready int) {
	queue := r.queue()
	if queue.Name = r.inbox(); queue.Name == "" || r.how.To != "" {
		return "", 0
	}
	count, err := queue.Count(ctx)
	if err != nil || count.Consumers > 0 {
		return "", 0
	}
	return queue.Name, count.Ready
}

// Counts are the record's counts.
func (r *Replay) Counts(p transfer.Result, again int) map[string]int {
	return map[string]int{
		"selected": p.Selected, "replayed": p.Confirmed, "returned": p.Returned, "refused": p.Refused, "too_large": len(p.Oversized),
		"unconfirmed": p.Uncertain, "duplicated": 0, "back": again,
	}
}

// Unfinished is an error unless all messages were replayed for good.
func (r *Replay) Unfinished(p transfer.Result, again int) error {
	if p.Confirmed < r.Total() || p.Unverified || again > 0 || len(r.Skipped) > 0 {
		return errors.New("not all messages were replayed for good")
	}
	return nil
}
