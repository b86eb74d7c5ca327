package operation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/transfer"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

const (
	// firstBatch is how many messages a replay sends before it waits for refusals.
	firstBatch = 20
	// calm is how long nothing more must come back. A message that a full queue drops was back within 140 ms, 260 ms with 2,000 of
	// them (3.10.8, 4.0.5, 4.3.6). calmAtMost bounds the wait if messages never stop to come.
	calm       = 500 * time.Millisecond
	calmAtMost = 5 * time.Second
)

// ErrUnknown says that a wait for messages that come back was cut short.
var ErrUnknown = errors.New("stopped while waiting: it is not known whether messages came back")

// Replay sends messages back to work.
type Replay struct {
	*Run
	// Meant counts the messages that the look found, by work queue, or by the exchange that messages of a delayed exchange go
	// to. Skipped counts the messages that cannot be replayed, by reason.
	Meant, Skipped map[string]int
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

	// meant counts the chosen messages by destination. ids has IDs by digest.
	meant map[string]int
	ids   map[string]string
	// began is when the replay began, with ready messages in the queue. last is when the broker last answered a publish.
	began, last time.Time
	ready       int
	// looked is how many messages had come into the queue at the last look. absent is the last result of lacking.
	looked, absent int
	rate           float64
	how            failed.Replay
	saved          *Sink
	chosen         Chosen
}

// NewReplay prepares a replay to the queue named to, or to the queues where the messages failed if that is "". The rate is in
// messages per second, 0 for no limit. The sink, if it is not nil, keeps the original messages.
func (r *Run) NewReplay(to string, rate float64, saved *Sink) *Replay {
	return &Replay{
		Run: r, Meant: map[string]int{}, Skipped: map[string]int{}, rate: rate, saved: saved, chosen: Chosen{},
		meant: map[string]int{}, ids: map[string]string{},
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
			if r.Limit > 0 {
				r.IDs, r.ids[e.Digest] = append(r.IDs, e.ID), e.ID
			}
			if r.how.To != "" || r.Delayed == "" {
				r.meant[strings.Clone(cmp.Or(r.how.To, e.WorkQueue))]++
			}
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

// Destination is a queue that a replay sends messages to.
type Destination struct {
	Queue string
	// Meant is how many messages the replay sends to it.
	Meant int
	// Count is the queue's count before the replay. Unknown is why it is not known.
	transfer.Count
	Unknown error
	// Settings are the queue's merged arguments and policies, nil if they are not known.
	Settings topology.Arguments
}

// Excess is how many messages do not fit the queue's max-length, as far as is known. Consumers can make room.
func (d Destination) Excess() int {
	limit, limited := d.Settings["max-length"].(int64)
	if !limited || d.Unknown != nil || d.Consumers > 0 {
		return 0
	}
	return max(0, min(d.Meant, d.Ready+d.Meant-int(limit)))
}

// Survey looks at the queues that the chosen messages go to.
func (r *Replay) Survey(ctx context.Context) error {
	conn, err := r.queue().Open(ctx, "count")
	if err != nil {
		return err
	}
	defer amqpconn.HangUp(conn.Connection)
	r.Destinations = nil
	for _, queue := range slices.Sorted(maps.Keys(r.meant)) {
		d := Destination{Queue: queue, Meant: r.meant[queue]}
		if r.Limits != nil {
			d.Settings = r.Limits.Queue(queue).Values()
		}
		d.Count, d.Unknown = transfer.Queue{Name: queue}.CountOver(ctx, conn)
		r.Destinations = append(r.Destinations, d)
	}
	return nil
}

// Publish replays the chosen messages, after the sink has made them durable. It sends a first batch, and waits until what the
// destinations refuse would be back. Then it sends the rest, unless too many are back; see [Replay.StopIfBack].
func (r *Replay) Publish(ctx context.Context) (result transfer.Result, err error) {
	if r.saved != nil {
		err = r.saved.Keep()
	}
	if err := cmp.Or(err, r.Survey(ctx)); err != nil {
		return result, err
	}
	r.began = time.Now().Truncate(time.Second) // as precise as the times that brokers write
	for batch := firstBatch; ; batch = math.MaxInt {
		left, halted := r.chosen.Total(), false
		result, halted, err = r.send(ctx, result, min(batch, left))
		r.ready = cmp.Or(r.ready, result.Ready)
		if err == nil && !result.Interrupted && result.Confirmed+result.Refused > 0 {
			err = r.awaitRefused(ctx, &result)
		}
		if err != nil || result.Interrupted || batch >= left && !halted {
			return result, err
		}
		if r.Stopped = r.tooMany(result); r.Stopped {
			return result, nil
		}
	}
}

// send continues the replay with this many messages. It halts once too many seem to be back.
func (r *Replay) send(ctx context.Context, before transfer.Result, most int) (result transfer.Result, halted bool, err error) {
	sending, halt := context.WithCancel(ctx)
	defer halt()
	show := r.Progress
	defer func() { r.Progress = show }()
	r.Progress = func(p transfer.Progress) {
		if before.Confirmed > 0 && r.tooMany(p.Result) {
			halt()
		}
		if show != nil {
			show(p)
		}
	}
	job := transfer.Job{Publishes: true, Rate: r.rate, Before: before, Limit: before.Confirmed + most, Done: r.done}
	result, err = r.act(sending, job, r.chosen, func(e *failed.Entry) transfer.Choice {
		publishing, err := r.how.Publishing(e, time.Now())
		if err != nil {
			r.Skipped[err.Error()]++
			return transfer.Choice{}
		}
		publishing.Of = e.Digest
		return transfer.Choice{Publish: &publishing}
	})
	halted = result.Interrupted && ctx.Err() == nil
	result.Interrupted = ctx.Err() != nil
	return result, halted, err
}

// done notes the broker's answer to a publish.
func (r *Replay) done(p failed.Publishing, confirmed bool) {
	r.last = time.Now()
	switch {
	case !confirmed:
		r.chosen[p.Of]++ // the message comes again in the next round
	case r.Limit > 0:
		r.Sent = append(r.Sent, r.ids[p.Of])
	}
}

// tooMany reports whether too many of the sent messages are back.
func (r *Replay) tooMany(p transfer.Result) bool {
	const all = 100
	return r.StopIfBack < all && all*(p.Arrived+p.Refused) > r.StopIfBack*(p.Confirmed+p.Refused)
}

// awaitRefused waits until refused messages would be back, and looks for them if more messages are in the queue than were left.
func (r *Replay) awaitRefused(ctx context.Context, p *transfer.Result) error {
	if r.Progress != nil {
		r.Progress(transfer.Progress{Result: *p, Phase: transfer.Awaiting})
	}
	came, err := r.awaitCalm(ctx, *p)
	if err == nil && (came > r.looked || p.Consumers > 0) {
		r.looked, err = came, r.Back(ctx)
	}
	if p.Interrupted = ctx.Err() != nil; p.Interrupted {
		return ErrUnknown
	}
	p.Arrived = r.Again + r.Missing()
	return err
}

// awaitCalm waits until the inbox is empty, and no more messages have come into the queue for a while. It returns how many came.
// It does not wait if the destinations have all that was sent.
func (r *Replay) awaitCalm(ctx context.Context, p transfer.Result) (came int, err error) {
	conn, err := r.queue().Open(ctx, "count")
	if err != nil {
		return 0, err
	}
	defer amqpconn.HangUp(conn.Connection)
	last, began := r.last, time.Now()
	for waits := r.Pipeline != ""; ; {
		if r.absent = r.lacking(ctx, conn, p.Confirmed); r.absent == 0 && p.Refused == 0 {
			return came, nil
		}
		count, err := r.queue().CountOver(ctx, conn)
		if err != nil {
			return came, fmt.Errorf("count messages that came back: %w", err)
		}
		var inbox transfer.Count
		if waits { // If no consumer takes them, or the user may not look, there is no more to wait for.
			inbox, err = transfer.Queue{Name: r.Pipeline.Inbox()}.CountOver(ctx, conn)
			waits = err == nil && inbox.Consumers > 0
		}
		if more := count.Ready + p.Confirmed + p.Vanished - r.ready; more > came || inbox.Ready > 0 {
			came, last = max(came, more), time.Now()
		}
		const poll = 50 * time.Millisecond // one count is not enough: a quorum queue seems empty while its leader is busy
		if waited := time.Since(began); waited > poll && time.Since(last) > calm || waited > calmAtMost {
			return came, nil
		}
		select {
		case <-time.After(poll):
		case <-ctx.Done():
			return came, ctx.Err()
		}
	}
}

// lacking is how many of the sent messages the destinations do not have. It is -1 if that is not known, such as of a queue with
// consumers, or of the queue that the replay takes from. Streams always seem empty, and so do quorum queues while their
// leader is busy (3.10.8, 4.0.5, 4.3.6).
func (r *Replay) lacking(ctx context.Context, conn amqpconn.Raw, sent int) int {
	if len(r.Destinations) == 0 {
		return -1
	}
	for _, d := range r.Destinations {
		if d.Unknown != nil || d.Consumers > 0 || d.Queue == r.queue().Name {
			return -1
		}
		now, err := transfer.Queue{Name: d.Queue}.CountOver(ctx, conn)
		if err != nil || now.Consumers > 0 || now.Ready == 0 {
			return -1
		}
		sent -= now.Ready - d.Ready
	}
	return sent
}

// Back counts, by reason, the messages of this replay that are in the queue again, and others that full queues dropped since
// it began.
func (r *Replay) Back(ctx context.Context) error {
	r.Scan, r.takes = 0, 0 // they are behind all others
	r.Again, r.Reasons = 0, map[string]int{}
	_, err := r.Run.Look(ctx, failed.Filter{}, func(e *failed.Entry) (enough bool) {
		switch {
		case e.Replays > 0 && e.ReplayID == r.ID:
			r.Again++
			r.Reasons[e.Reason]++
		case e.Reason == pipeline.ReasonMaxLength && !e.FailedAt.Before(r.began) && r.meant[cmp.Or(r.how.To, e.WorkQueue)] > 0:
			r.Again++
			r.Reasons[Displaced]++
		}
		return false
	})
	return err
}

// Displaced is a reason in [Replay.Reasons]: full queues dropped older messages to make room for this replay.
const Displaced = pipeline.ReasonMaxLength + " of other messages"

// Missing is how many of the sent messages are neither in the queue nor in their destinations.
func (r *Replay) Missing() int { return max(0, r.absent-r.Again) }

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
		return errors.New("not all messages were replayed for good")
	}
	return nil
}
