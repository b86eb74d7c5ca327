package pass

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
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
	queue  Queue
	in     *intake
	ledger *ledger
	// atMost is how many messages are looked at: more may come while it lasts.
	atMost, seen, held int
	// largest is the size of the largest message.
	largest int
	// surveyed says that what was delivered before is known.
	surveyed bool

	began time.Time
	// dropped are to be acknowledged once they are kept.
	dropped []selected
	// acked is when a message was acknowledged last.
	acked time.Time
	// blocked is why the broker accepts no messages.
	blocked string
	// lost says that the broker has ended the round.
	lost bool

	counts   chan Count
	counting bool
	last     time.Time // when a message came
	// zeros is how many answers in a row said that the queue has no ready messages.
	zeros     int
	empty     bool
	consumers int
}

// begin opens a connection, and consumes what is there: fewer if scan is not 0.
func begin(
	ctx context.Context, q Queue, l *ledger, expected, scan int, prefetch func(ready int) int, wait goesOn,
) (*round, Count, error) {
	conn, err := q.Open(ctx, "consume")
	if err != nil {
		return nil, Count{}, err
	}
	conn.Limit(unread)
	r, count, err := beginOn(ctx, q, conn, l, expected, scan, prefetch, wait)
	if err != nil || r == nil {
		amqpconn.HangUp(conn.Connection)
	}
	return r, count, err
}

func beginOn(
	ctx context.Context, q Queue, conn amqpconn.Raw, l *ledger, expected, scan int, prefetch func(ready int) int, wait goesOn,
) (*round, Count, error) {
	count, err := q.settled(ctx, conn, expected, wait)
	if err != nil {
		return nil, count, err
	}
	l.shared = l.shared || count.Consumers > 0
	if count.Ready == 0 {
		return nil, count, nil
	}
	atMost := count.Ready
	if scan > 0 {
		atMost = min(atMost, scan)
	}
	in, err := openIntake(ctx, q, conn, prefetch(atMost))
	if err != nil {
		return nil, count, err
	}
	now := time.Now()
	return &round{queue: q, in: in, ledger: l, atMost: atMost, counts: make(chan Count, 1), last: now, began: now}, count, nil
}

// over says that there is nothing more to look at.
func (r *round) over() bool { return r.seen >= r.atMost || r.empty }

// note counts a message.
func (r *round) note(a arrival, id string) {
	r.ledger.saw(id, a.Redelivered, r.surveyed)
	r.in.conn.Release(a.size())
	r.last, r.empty, r.zeros = time.Now(), false, 0
	r.largest = max(r.largest, a.size())
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
		count, err := count(ctx, lanes, r.queue)
		if err != nil {
			count.Ready = -1
		}
		r.counts <- count
	}()
}

// counted notes whether others consume, and whether the queue is empty.
func (r *round) counted(c Count) {
	r.counting = false
	if c.Ready < 0 {
		return
	}
	if others := c.Consumers - r.in.consumers(); others > 0 && !r.in.widening {
		r.ledger.shared, r.consumers = true, max(r.consumers, others)
	}
	// A quorum queue without a leader says that it has nothing, not even consumers.
	if r.zeros++; c.Ready > 0 || c.Consumers == 0 {
		r.zeros = 0
	}
	r.empty = r.zeros >= dry && time.Since(r.last) > dryAfter
}

// brokenBy explains why the deliveries ended.
func (r *round) brokenBy(err error) error {
	r.lost = true
	r.ledger.missed = r.ledger.missed || !errors.Is(err, errCancelled)
	return fmt.Errorf("queue %q: %w", r.queue.Name, err)
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
func (r *round) end(ctx context.Context) error {
	defer amqpconn.HangUp(r.in.conn.Connection)
	err := r.in.putBack(ctx, func(a arrival) {
		r.ledger.saw(failed.Digest(a.Message), a.Redelivered, r.surveyed)
		r.held++
	})
	if err != nil {
		r.ledger.missed = true
	}
	return err
}

// abandon ends a round that the broker has ended.
func (r *round) abandon() {
	close(r.in.quit)
	amqpconn.HangUp(r.in.conn.Connection)
}
