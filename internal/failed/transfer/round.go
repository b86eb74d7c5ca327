package transfer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
)

const (
	// unread limits how many bytes wait to be read.
	unread = 8 << 20
	// idle is how long no message comes before the run asks the queue for its count.
	idle = 200 * time.Millisecond
	// dry is how many answers in a row must say that no messages are ready before the run ends. dryAfter is how long no message
	// must have come then. One answer is not enough, since it can overtake a message.
	dry      = 3
	dryAfter = time.Second
	// stuck is how long the run waits while messages are ready and none comes.
	stuck = 30 * time.Second
)

// errStuck tells that another consumer takes precedence: it is the single active consumer, or has a higher priority.
var errStuck = errors.New("messages are ready, but did not come for 30 s: another consumer can have precedence")

// UnreadableError says that the broker closed the connection because it cannot deliver a message.
type UnreadableError struct {
	// Seen is how many messages came before that message. It can be too low.
	Seen int
	Err  error
}

// Error includes the broker's text.
func (e *UnreadableError) Error() string {
	return fmt.Sprintf("after %d messages, the broker closed the connection over a message that was published over AMQP 1.0 "+
		"and that AMQP 0-9-1 cannot carry (%v)", e.Seen, e.Err)
}

// round consumes the queue once, over one connection.
type round struct {
	in *receiver
	// atMost is how many messages the round reads. New messages can arrive during the round.
	atMost, seen int

	began time.Time
	// older is how many messages were in the queue at the beginning, without those that had arrived. asked is what seen was at the
	// last question for the count.
	older, asked int
	// again says that another round follows.
	again bool
	// lost is the broker's error that ended the round.
	lost error

	counts   chan Count
	counting bool
	last     time.Time // when the last message came
	// zeros is how many answers in a row said that no messages are ready.
	zeros int
	empty bool
}

// begin opens a connection and starts to consume. The round is nil if the queue has no ready messages.
func (r *run) begin(ctx context.Context) (err error) {
	r.round = nil
	conn, err := r.queue.Open(ctx, "consume")
	if err != nil {
		return err
	}
	defer func() {
		if r.round == nil {
			amqpconn.HangUp(conn.Connection)
		}
	}()
	count, err := r.queue.settled(ctx, conn)
	if r.result.Uncounted = errors.Is(err, amqpconn.ErrNeedsConfigure); r.result.Uncounted {
		count, err = Count{Ready: mostHeld}, nil
	} else {
		r.result.Ready, r.result.Consumers = max(r.result.Ready, count.Ready), max(r.result.Consumers, count.Consumers)
	}
	if err != nil || count.Ready == 0 {
		return err
	}
	in, err := openReceiver(ctx, r.queue, conn, r.job.prefetch(count.Ready), r.job.OneFirst)
	if err != nil {
		return err
	}
	in.uncounted = r.result.Uncounted
	atMost, now := min(count.Ready, cmp.Or(r.job.Scan, count.Ready)), time.Now()
	r.round = &round{in: in, atMost: atMost, older: count.Ready - r.result.Arrived, counts: make(chan Count, 1), last: now, began: now}
	return nil
}

// count asks the broker for the queue's count in the background, since the answer can come behind many messages.
func (r *round) count(ctx context.Context) {
	if r.counting {
		return
	}
	r.counting, r.asked = true, r.seen
	lanes := slices.Clone(r.in.lanes)
	go func() {
		count, err := count(ctx, lanes, r.in.queue)
		if err != nil {
			count.Ready = -1
		}
		r.counts <- count
	}()
}

// counted notes whether others consume, and whether the queue is empty.
func (r *run) counted(c Count) {
	r.counting = false
	if c.Ready < 0 {
		return
	}
	r.result.Arrived = max(r.result.Arrived, r.asked+c.Ready-r.older)
	if !r.in.widening {
		r.result.Consumers = max(r.result.Consumers, c.Consumers-len(r.in.lanes))
	}
	// A quorum queue without a leader reports 0 messages and 0 consumers.
	if r.zeros++; c.Ready > 0 || c.Consumers == 0 {
		r.zeros = 0
	}
	r.empty = r.zeros >= dry && time.Since(r.last) > dryAfter
}

// explain finds out whether the broker closed the connection because it cannot deliver a message. All pending requests fail
// then, and any of their errors can come first.
func (r *round) explain(err error) error {
	if err == nil || !r.in.conn.IsClosed() {
		return err
	}
	const soon = time.Second
	select {
	case reason := <-r.in.hungUp:
		if reason != nil && reason.Code == amqp.InternalError {
			return &UnreadableError{Seen: r.seen, Err: reason}
		}
	case <-time.After(soon):
	}
	return err
}

// end puts back the messages that it holds and closes the connection. It cuts the connection if no acknowledgement can be lost:
// that keeps the order, and does not wait for messages that are on their way.
func (r *run) end(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, closing)
	defer cancel()
	defer amqpconn.HangUp(r.in.conn.Connection)
	defer close(r.in.quit)
	if r.lost != nil || r.seen == 0 && r.in.held.Load() == 0 {
		return r.lost
	}
	cuts, stays := !r.job.Nacks, r.seen < r.atMost
	if err := r.in.whileTaking(ctx, func() error {
		if !r.job.acts() {
			return r.in.assigned(ctx)
		}
		cuts = stays && r.in.refilled() && cuts // a consumer that ends at once gives back first what is on its way
		return nil
	}); err != nil {
		return err
	}
	others := 0
	if r.job.acts() && stays && r.job.Takes == 0 {
		var free func()
		others, free = r.takeRest(ctx)
		defer free()
	}
	if r.result.Uncounted {
		return r.endUncounted(ctx, cuts)
	}
	var left Count
	var err error
	if cuts {
		r.in.conn.Cut()
		left, err = r.queue.back(ctx, int(r.in.held.Load()))
	} else {
		err = r.in.whileTaking(ctx, func() (err error) {
			left, err = r.in.requeued(ctx)
			return err
		})
	}
	if err == nil && left.Consumers == others {
		r.result.NotBack = max(0, int(r.in.held.Load())-left.Ready)
	}
	return err
}

// endUncounted puts back the messages. In place of the counts that tell whether the queue has them and all acknowledgements, it waits.
func (r *run) endUncounted(ctx context.Context, cuts bool) error {
	if cuts {
		r.in.conn.Cut()
		return nil
	}
	return r.in.whileTaking(ctx, func() error {
		defer time.Sleep(settling)
		return r.in.requeue()
	})
}

// takeRest has another connection take the messages that the run has not read, until it is cut. Otherwise they would come
// before the messages that the run puts back. An error costs no more than the order.
func (r *run) takeRest(ctx context.Context) (consumers int, cut func()) {
	conn, err := r.queue.Open(ctx, "take the rest")
	if err != nil {
		return 0, func() {}
	}
	count := Count{Ready: mostHeld}
	if !r.result.Uncounted {
		count, err = r.queue.CountOver(ctx, conn)
	}
	if err == nil && count.Ready > 0 {
		if rest, err := openReceiver(ctx, r.queue, conn, count.Ready, false); err == nil {
			rest.uncounted = r.result.Uncounted
			_ = rest.whileTaking(ctx, func() error { return rest.assigned(ctx) })
			close(rest.quit)
			consumers = rest.lanes[0].consumers
		}
	}
	return consumers, conn.Cut
}
