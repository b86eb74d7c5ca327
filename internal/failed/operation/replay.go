package operation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/transfer"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Replay sends messages back to work.
type Replay struct {
	*Run
	// Meant counts the chosen messages, by the queue to send them to, or by the exchange that messages of a delayed exchange go
	// to. Skipped counts the messages that cannot be replayed, by reason.
	Meant, Skipped map[string]int
	// Found is how many messages the look found that can be replayed.
	Found int
	// IDs are the ids of the chosen messages, and Sent of the replayed ones, if there is a limit.
	IDs, Sent []string
	// Limits are the queues' settings, nil if they are not known: only the management API tells them.
	Limits *topology.Lookup
	// Destinations are the queues to send the chosen messages to, after [Replay.Survey].
	Destinations []Destination
	// StopIfBack stops the replay if a greater percentage of the sent messages is back; 100 never does. Stopped says that it has.
	StopIfBack int
	Stopped    bool
	// Again are the messages that were back at the last look, by Reasons.
	Again   int
	Reasons map[string]int

	// ids has IDs by digest.
	ids map[string]string
	// began is when the replay began, with ready messages in the queue. last is when the broker last answered a publish.
	began, last time.Time
	ready       int
	// looked is how many messages had come into the queue at the last look. absent is the last result of lacking.
	looked, absent int
	rate           float64
	how            failed.Replay
	chosen         Chosen
}

// NewReplay prepares a replay to the queue named to, or to the queues where the messages failed if that is "". The rate is in
// messages per second, 0 for no limit.
func (r *Run) NewReplay(to string, rate float64) *Replay {
	return &Replay{
		Run: r, Meant: map[string]int{}, Skipped: map[string]int{}, rate: rate, chosen: Chosen{}, ids: map[string]string{},
		how: failed.Replay{Pipeline: r.Pipeline, Delayed: r.Delayed, To: to, ID: r.ID, FrameMax: r.frameMax},
	}
}

// Look chooses the messages that the filter selects.
func (r *Replay) Look(ctx context.Context, filter failed.Filter) (Look, error) {
	return r.Run.Look(ctx, filter, func(e *failed.Entry) (enough bool) {
		to := cmp.Or(r.how.To, e.WorkQueue)
		switch {
		case r.how.To == "" && r.Delayed != "":
			to = r.onward(e)
		case e.Refusal != nil:
			r.Skipped[e.Refusal.Error()]++
			return false
		case to == "":
			r.Skipped[failed.ErrNoWorkQueue.Error()]++
			return false
		}
		if r.Found++; r.Limit == 0 || r.Found <= r.Limit {
			r.choose(r.chosen, e)
			if r.Limit > 0 {
				r.IDs, r.ids[e.Digest] = append(r.IDs, e.ID), e.ID
			}
			r.Meant[strings.Clone(to)]++
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

// Total is how many messages are replayed: Found, up to the limit.
func (r *Replay) Total() int {
	if r.Limit > 0 {
		return min(r.Found, r.Limit)
	}
	return r.Found
}

// Idle is the inbox, with its number of messages, if no worker consumes it: then no message can fail again. It is "" if a
// worker consumes it, or if the user may not count the consumers.
func (r *Replay) Idle(ctx context.Context) (inbox string, ready int) {
	queue := r.queue()
	switch {
	case r.how.To == "" && r.Delayed != "":
		queue.Name = r.Delayed.Inbox()
	case r.how.To == "" && r.Pipeline != "":
		queue.Name = r.Pipeline.Inbox()
	default:
		return "", 0
	}
	count, err := queue.Count(ctx)
	if err != nil || count.Consumers > 0 {
		return "", 0
	}
	return queue.Name, count.Ready
}

// Counts are the record's counts.
func (r *Replay) Counts(p transfer.Result) map[string]int {
	return map[string]int{
		"selected": p.Selected, "replayed": p.Confirmed, "returned": p.Returned, "refused": p.Refused, "too_large": len(p.Oversized),
		"unconfirmed": p.Uncertain, "duplicated": 0, "back": r.Again, "missing": r.Missing(),
	}
}

// Unfinished is an error unless all messages were replayed for good.
func (r *Replay) Unfinished(p transfer.Result) error {
	if r.Stopped {
		return fmt.Errorf("stopped, since more than %d %% of the sent messages are back", r.StopIfBack)
	}
	if p.Confirmed < r.Total() || p.Unverified || r.Again+r.Missing() > 0 || len(r.Skipped) > 0 {
		return errors.New("not all messages were replayed for good: the lines above say why")
	}
	return nil
}
