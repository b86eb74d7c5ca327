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
	taking, holding = 700 * time.Millisecond, 900 * time.Millisecond
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
	// Cut says that the time was over before the messages had come.
	Cut bool
}

// Front passes the first messages of a quorum queue with a TTL to visit, up to [topology.LookSize], and puts them back. For this
// time it holds a lock, which is an exclusive queue. Its errors are [ErrLocked], [ErrConsumed] and others.
//
// A queue takes messages back behind those that came back before, and delivers them first. So if a look takes fewer messages
// than an earlier one, the first messages move behind others, and are late by the TTL. The order stays if each look takes the
// same number with one consumer, and ends by cutting the connection (rabbit_fifo; measured on 3.10.8, 4.0.5, 4.3.6).
//
// On RabbitMQ 4.3, a cut counts as a failed delivery, also against the limit of the quorum queue where a delayed message ends. One
// basic.nack for all does not count, and keeps the order there. If the messages do not come in time, a cut is the only quick end.
func (q Queue) Front(ctx context.Context, lock string, visit func(failed.Message)) (f Front, err error) {
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
	if err != nil {
		return f, err
	}
	if err := channel.Qos(topology.LookSize, 0, false); err != nil {
		return f, err
	}
	late, end := time.AfterFunc(holding, conn.Cut), time.Now().Add(taking)
	deliveries, err := channel.Consume(q.Name, consumerTag(0), false, false, false, false, nil)
	if err == nil {
		f.Seen, err = q.take(ctx, conn, deliveries, min(topology.LookSize, f.Ready), end, visit)
	}
	f.Cut = time.Now().After(end)
	// A cut between the two would free the lock while the queue counts no consumer and still lacks the messages.
	if release, _ := conn.Connection.Properties["version"].(string); !f.Cut && !CountsNacks(release) && late.Reset(returning) {
		giveBack(channel, q.Name)
	}
	if !late.Stop() && ctx.Err() == nil {
		err = nil // it was cut in time
	}
	return f, q.explain(err)
}

// countsNacks matches releases of RabbitMQ that count basic.nack against a delivery limit. Later releases count a cut connection instead.
var countsNacks = regexp.MustCompile(`^(3|4\.[0-2])\.`)

// CountsNacks reports whether this release of RabbitMQ counts basic.nack as a failed delivery.
func CountsNacks(release string) bool { return countsNacks.MatchString(release) }

// giveBack puts all messages back, and returns once the queue has them, or the connection is cut. Its errors say that it was cut.
func giveBack(channel *amqp.Channel, queue string) {
	const all, multiple, requeue, noWait = 0, true, true, true
	_ = channel.Cancel(consumerTag(0), noWait)
	_ = channel.Nack(all, multiple, requeue)
	_, _ = channel.QueueDeclarePassive(queue, true, false, false, false, nil)
}

// take passes messages to visit until this many have come, no more come, or the time is over.
func (q Queue) take(
	ctx context.Context, conn amqpconn.Raw, deliveries <-chan amqp.Delivery, want int, end time.Time, visit func(failed.Message),
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
			visit(m)
			seen++
			silent.Reset(min(quiet, time.Until(end)))
		case <-silent.C:
			return seen, nil
		case <-ctx.Done():
			return seen, ctx.Err()
		}
	}
	return seen, nil
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
