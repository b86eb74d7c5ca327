package operation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/transfer"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
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

// Publish replays the chosen messages. It sends a first batch, and waits until what the
// destinations refuse would be back. Then it sends the rest, unless too many are back; see [Replay.StopIfBack].
func (r *Replay) Publish(ctx context.Context) (result transfer.Result, err error) {
	if err := r.Survey(ctx); err != nil {
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
	if err == nil && (came > r.looked || p.Consumers > 0 || p.Uncounted) {
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
		more, err := r.arrived(ctx, conn, p)
		if err != nil {
			return came, fmt.Errorf("count messages that came back: %w", err)
		}
		var inbox transfer.Count
		if waits { // If no consumer takes them, or the user may not look, there is no more to wait for.
			inbox, err = transfer.Queue{Name: r.Pipeline.Inbox()}.CountOver(ctx, conn)
			waits = err == nil && inbox.Consumers > 0
		}
		if more > came || inbox.Ready > 0 {
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

// arrived is how many messages came into the queue, 0 if the broker tells no counts.
func (r *Replay) arrived(ctx context.Context, conn amqpconn.Raw, p transfer.Result) (int, error) {
	count, err := r.queue().CountOver(ctx, conn)
	if errors.Is(err, amqpconn.ErrNeedsConfigure) {
		return 0, nil
	}
	return count.Ready + p.Confirmed + p.Vanished - r.ready, err
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
		case e.Reason == pipeline.ReasonMaxLength && !e.FailedAt.Before(r.began) && r.Meant[cmp.Or(r.how.To, e.WorkQueue)] > 0:
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
