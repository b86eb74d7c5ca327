package transfer

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

const (
	// taking is how long a look at a front takes messages, and holding is how long it holds them at most, read or not. A held message
	// does not expire. Together with the way to the broker, it is less than a second.
	taking, holding = 600 * time.Millisecond, 900 * time.Millisecond
	// removing is how long a look that takes messages out can hold the others, if a broker does not confirm. A cut would double messages.
	removing = lastConfirms + returning
	// quiet is how long no more messages must come before a look ends that has read some. The rest has expired.
	quiet = 200 * time.Millisecond
	// freed is how long a queue can still count the consumer of a look that has ended, or of one that the broker ends because its
	// process is frozen.
	freed = 5 * time.Second
	// relocking is how long the broker can take to delete the lock of an ended connection. The last look of this run can be one.
	relocking = time.Second
)

// FrontHeartbeat makes a broker end the connection of a frozen process after 2 to 3 seconds.
const FrontHeartbeat = time.Second

var (
	// ErrLocked says that the connection of another look holds the lock.
	ErrLocked = errors.New("somebody else looks at it now, so try again in some seconds")
	// ErrConsumed says that the queue has a consumer, which holds messages.
	ErrConsumed = errors.New("has a consumer of another program, which can make messages late by days: stop it")
)

// Front is a look at the front of a queue.
type Front struct {
	// Ready is how many messages were ready, and Seen how many of them came.
	Ready, Seen int
	// Cut says that the time was over before the messages had come. Then none is taken out.
	Cut bool
	// Taken is how many messages were taken out. Unanswered were acknowledged without an answer, and can be back in the queue.
	Taken, Unanswered int
}

// Removal takes messages out of a front.
type Removal struct {
	// Release is called while the look holds the chosen messages. It returns which of them can go, in their order.
	Release func(ctx context.Context) (goes []bool, err error)
	// Gone is called once the broker has answered after their acknowledgements.
	Gone func() error
}

// Front passes the first messages of a quorum queue with a TTL to visit, up to [topology.LookSize], and puts them back, except those
// that visit chooses for a removal, which can be nil. For this time it holds a lock, which is an exclusive queue. Its errors are
// [ErrLocked], [ErrConsumed] and others.
//
// A queue takes messages back behind those that came back before, and delivers them first. So if a look takes fewer messages
// than an earlier one, the first messages move behind others, and are late by the TTL. The order stays if each look takes the
// same number with one consumer, and ends by cutting the connection (rabbit_fifo; measured on 3.10.8, 4.0.5, 4.3.6).
//
// On RabbitMQ 4.3, a cut counts as a failed delivery, also against the limit of the quorum queue where a delayed message ends. One
// basic.nack for all does not count, and keeps the order there. Its way to the broker is free even if messages fill the other way.
func (q Queue) Front(ctx context.Context, lock string, visit func(failed.Message) (chosen bool), removal *Removal) (f Front, err error) {
	conn, err := q.Open(ctx, "look")
	if err != nil {
		return f, err
	}
	defer conn.Cut()
	if err := takeLock(ctx, conn, lock); err != nil {
		return f, err
	}
	if f.Ready, err = q.Unconsumed(ctx, conn); err != nil || f.Ready == 0 {
		return f, err
	}
	conn.Limit(unread)
	channel, err := amqpconn.OpenChannel(ctx, conn.Connection)
	if err == nil {
		err = channel.Qos(topology.LookSize, 0, false)
	}
	if err != nil {
		return f, err
	}
	late := time.AfterFunc(holding, conn.Cut)
	chosen, err := q.takeFront(ctx, conn, channel, &f, visit)
	removes := len(chosen) > 0 && err == nil && !f.Cut && late.Reset(removing)
	if removes {
		err = q.remove(ctx, channel, chosen, *removal, &f)
	}
	q.giveBack(ctx, conn, channel, f, removes, late)
	if !late.Stop() && ctx.Err() == nil && f.Unanswered == 0 {
		err = nil // it was cut in time
	}
	return f, q.explain(err)
}

// takeFront takes messages, and returns the tags of those that visit has chosen.
func (q Queue) takeFront(
	ctx context.Context, conn amqpconn.Raw, channel *amqp.Channel, f *Front, visit func(failed.Message) (chosen bool),
) (chosen []uint64, err error) {
	end := time.Now().Add(taking)
	deliveries, err := channel.Consume(q.Name, consumerTag(0), false, false, false, false, nil)
	if err != nil {
		return nil, err
	}
	f.Seen, err = q.take(ctx, conn, deliveries, min(topology.LookSize, f.Ready), end, func(m failed.Message, tag uint64) {
		if visit(m) {
			chosen = append(chosen, tag)
		}
	})
	f.Cut = time.Now().After(end)
	return chosen, err
}

// countsNacks matches releases of RabbitMQ that count basic.nack against a delivery limit. Later releases count a cut connection instead.
var countsNacks = regexp.MustCompile(`^(3|4\.[0-2])\.`)

// CountsNacks reports whether this release of RabbitMQ counts basic.nack as a failed delivery.
func CountsNacks(release string) bool { return countsNacks.MatchString(release) }

// giveBack puts all messages back that the look still holds, unless the connection is to be cut. It returns once the queue has them, or
// the connection was cut. A cut after a cancel would free the lock while the queue counts no consumer and still lacks the messages.
func (q Queue) giveBack(ctx context.Context, conn amqpconn.Raw, channel *amqp.Channel, f Front, removed bool, late *time.Timer) {
	release, _ := conn.Connection.Properties["version"].(string)
	nacks, patience := !CountsNacks(release), returning
	if f.Cut {
		patience = holding - taking // over a slow link, the answer comes too late
	}
	switch {
	case !nacks && !removed, !late.Reset(patience):
	case nacks: // errors say that the connection was cut
		const all, multiple, requeue, noWait = 0, true, true, true
		_ = channel.Cancel(consumerTag(0), noWait)
		_ = channel.Nack(all, multiple, requeue)
		_, _ = channel.QueueDeclarePassive(q.Name, true, false, false, false, nil)
	default:
		q.awaitReturn(ctx, conn, channel, f.Seen-f.Taken)
	}
}

// remove acknowledges the chosen messages that can go. It cancels the consumer first, since an acknowledgement brings a further message.
func (q Queue) remove(ctx context.Context, channel *amqp.Channel, chosen []uint64, r Removal, f *Front) error {
	if err := channel.Cancel(consumerTag(0), false); err != nil {
		return err
	}
	goes, err := r.Release(ctx)
	for i, tag := range chosen {
		if i < len(goes) && goes[i] {
			f.Unanswered++
			_ = channel.Ack(tag, false) // the answer below fails, too
		}
	}
	if f.Unanswered == 0 {
		return err
	}
	if _, unanswered := channel.QueueDeclarePassive(q.Name, true, false, false, false, nil); unanswered != nil {
		return errors.Join(err, unanswered)
	}
	f.Taken, f.Unanswered = f.Unanswered, 0
	return errors.Join(err, r.Gone())
}

// awaitReturn closes the channel, which has no more deliveries on their way, and waits until the queue has these messages again. If some
// have expired meanwhile, it waits for the whole time.
func (q Queue) awaitReturn(ctx context.Context, conn amqpconn.Raw, channel *amqp.Channel, held int) {
	before, err := q.CountOver(ctx, conn)
	_ = channel.Close()
	for began, count := time.Now(), before; err == nil && count.Ready < before.Ready+held && time.Since(began) < sharing; {
		time.Sleep(settlingPoll)
		count, err = q.CountOver(ctx, conn)
	}
}

// take passes messages to visit until this many have come, no more come, or the time is over.
func (q Queue) take(
	ctx context.Context, conn amqpconn.Raw, deliveries <-chan amqp.Delivery, want int, end time.Time, visit func(m failed.Message, tag uint64),
) (seen int, err error) {
	closed := conn.NotifyClose(make(chan *amqp.Error, 1))
	silent := time.NewTimer(taking)
	defer silent.Stop()
	for seen < want {
		select {
		case d, open := <-deliveries:
			if !open {
				return seen, closedError(<-closed)
			}
			m := q.message(conn, d)
			conn.Release(len(m.Properties) + len(m.Body))
			visit(m, d.DeliveryTag)
			seen++
			silent.Reset(min(quiet, time.Until(end)))
		case <-silent.C:
			return seen, ctx.Err()
		case <-ctx.Done():
			return seen, ctx.Err()
		}
	}
	return seen, ctx.Err()
}

// takeLock declares an exclusive queue. It ends with the connection.
func takeLock(ctx context.Context, conn amqpconn.Raw, name string) error {
	for began := time.Now(); ; time.Sleep(settlingPoll) {
		answer, err := ask(ctx, conn, fmt.Sprintf("declare queue %q", name), func(channel *amqp.Channel) error {
			_, err := channel.QueueDeclare(name, false, false, true, false, amqp.Table{amqp.QueueTypeArg: amqp.QueueTypeClassic})
			return err
		})
		switch {
		case err != nil:
			return err
		case amqpconn.IsCode(answer, amqp.ResourceLocked):
			if time.Since(began) > relocking {
				return fmt.Errorf("%w (%w)", ErrLocked, answer)
			}
		case amqpconn.IsCode(answer, amqp.AccessRefused):
			return fmt.Errorf("this user cannot declare the queue that locks the look; needs: configure on %q (%w)", name, answer)
		default:
			return answer
		}
	}
}

// Unconsumed waits until the queue has no consumer, and returns how many messages are ready. A quorum queue counts 0 of both
// while its leader is busy. Its errors are [ErrConsumed] and others.
func (q Queue) Unconsumed(ctx context.Context, conn amqpconn.Raw) (ready int, err error) {
	for began := time.Now(); ; time.Sleep(settlingPoll) {
		count, err := q.CountOver(ctx, conn)
		late := time.Since(began)
		switch {
		case err != nil:
			return 0, err
		case count.Consumers == 0 && (count.Ready > 0 || late > idle):
			return count.Ready, nil
		case count.Consumers > 0 && late > freed:
			return 0, fmt.Errorf("queue %q %w", q.Name, ErrConsumed)
		}
	}
}
