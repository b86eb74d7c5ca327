package transfer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
)

const (
	// unread is how many bytes may wait to be looked at.
	unread = 8 << 20
	// idle is after which time without a message it is asked whether there are any.
	idle = 200 * time.Millisecond
	// dry is how often the queue is asked, one answer after the other, before it is believed that it has no ready messages, and
	// none on their way; and dryAfter is for how long none has come then. The first answer may overtake a message.
	dry      = 3
	dryAfter = time.Second
	// stuck is how long messages that are ready may not come.
	stuck = 30 * time.Second
)

// errStuck is for a queue with a single active consumer that is another one, or consumers of a higher priority.
var errStuck = errors.New("messages are ready, and none has come for 30 s: another consumer may have precedence")

// UnreadableError says that the broker closed the connection over a message that it cannot deliver.
type UnreadableError struct {
	// Seen is how many messages came before it, as far as is known.
	Seen int
	Err  error
}

// Error has the broker's text.
func (e *UnreadableError) Error() string {
	return fmt.Sprintf("after %d messages the broker closed the connection over one that AMQP 0-9-1 cannot carry, "+
		"published over AMQP 1.0 (%v)", e.Seen, e.Err)
}

// Unwrap is the broker's text.
func (e *UnreadableError) Unwrap() error { return e.Err }

// round consumes the queue once, from one connection.
type round struct {
	in *receiver
	// atMost is how many messages are looked at: more may come while it lasts.
	atMost, seen, held int

	began time.Time
	// dropped are to be acknowledged once they are kept.
	dropped []selected
	// again says that another round follows.
	again bool
	// lost is why the broker has ended the round.
	lost error

	counts   chan Count
	counting bool
	last     time.Time // when a message came
	// zeros is how many answers in a row said that the queue has no ready messages.
	zeros int
	empty bool
}

// begin opens a connection, and consumes what is there. The round is nil if there is nothing.
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
	conn.Limit(unread)
	count, err := r.queue.settled(ctx, conn)
	r.result.Ready, r.result.Consumers = max(r.result.Ready, count.Ready), max(r.result.Consumers, count.Consumers)
	if err != nil || count.Ready == 0 {
		return err
	}
	atMost := count.Ready
	if r.job.Scan > 0 {
		atMost = min(atMost, r.job.Scan)
	}
	in, err := openReceiver(ctx, r.queue, conn, r.job.prefetch(atMost), r.job.OneFirst)
	if err != nil {
		return err
	}
	now := time.Now()
	r.round = &round{in: in, atMost: atMost, counts: make(chan Count, 1), last: now, began: now}
	return nil
}

// note counts a message.
func (r *round) note(a arrival) {
	r.in.conn.Release(a.size())
	r.last, r.empty, r.zeros = time.Now(), false, 0
	r.seen++
}

// count asks the broker without waiting for its answer, which may come behind many messages.
func (r *round) count(ctx context.Context) {
	if r.counting {
		return
	}
	r.counting = true
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
	if !r.in.widening {
		r.result.Consumers = max(r.result.Consumers, c.Consumers-len(r.in.lanes))
	}
	// A quorum queue without a leader says that it has nothing, not even consumers.
	if r.zeros++; c.Ready > 0 || c.Consumers == 0 {
		r.zeros = 0
	}
	r.empty = r.zeros >= dry && time.Since(r.last) > dryAfter
}

// explain says whether the broker ended the round over a message that it cannot deliver. Whatever was asked of it meanwhile
// has failed then, and whose error comes first is chance.
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

// end puts back what is held and hangs up.
func (r *run) end(ctx context.Context) error {
	defer amqpconn.HangUp(r.in.conn.Connection)
	if r.lost != nil {
		close(r.in.quit)
		return r.lost
	}
	left, err := r.in.putBack(ctx, &r.held)
	if err == nil && left.Consumers == 0 {
		r.result.NotBack = max(0, r.held-left.Ready)
	}
	return err
}
