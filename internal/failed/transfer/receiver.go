package transfer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
)

const (
	// mostPerLane is a little less than AMQP's largest prefetch. Without a prefetch, a quorum queue would use 2,000.
	mostPerLane = 65_000
	// closing is how long putting back can take.
	closing = 2 * time.Minute
)

var errAcksLate = fmt.Errorf("within %s, the queue did not confirm all acknowledgements and all messages that were put back", closing)

// errCancelled tells that the broker cancelled the consumer and then ignores acknowledgements. The queue was deleted, or
// messages were held for longer than consumer_timeout.
var errCancelled = errors.New("the broker has cancelled the consumer: the queue was deleted, " +
	"or messages were held for longer than the broker's consumer_timeout")

// arrival is a message that the run holds.
type arrival struct {
	failed.Message
	lane *lane
	tag  uint64
}

func (a arrival) size() int { return len(a.Properties) + len(a.Body) }

// acknowledge returns no error, since it would only say that the channel is closed, which is reported elsewhere.
func (a arrival) acknowledge() { _ = a.lane.channel.Ack(a.tag, false) }

// receiver consumes the queue with as many consumers as it needs to hold all messages that stay.
type receiver struct {
	queue Queue
	conn  amqpconn.Raw
	lanes []*lane
	// prefetch is the sum of all lanes' prefetches. next is the prefetch of the second lane, 0 for as much as all lanes have.
	prefetch, next int

	arriving chan arrival
	// broken has the reason when the broker ends a lane.
	broken chan error
	// hungUp has the reason when the broker ends the connection.
	hungUp chan *amqp.Error
	// opened has the new lane.
	opened   chan *lane
	widening bool
	// held is how many messages the run holds until it puts them back.
	held atomic.Int64

	quit       chan struct{}
	forwarding sync.WaitGroup
}

// lane is a consumer on its own channel. For each acknowledgement, the broker searches all messages that the channel holds,
// so each lane holds a limited number.
type lane struct {
	channel *amqp.Channel
	// asking is locked during a request, since a channel can wait for one answer at a time.
	asking     sync.Mutex
	prefetch   int
	deliveries <-chan amqp.Delivery
	closed     chan *amqp.Error
	cancelled  chan string
}

const consumerTag = "rabbitmq-retry-failed"

// openReceiver begins to consume. Further lanes open while messages are taken, since the broker's answer can come behind more
// messages than fit the buffer.
func openReceiver(ctx context.Context, queue Queue, conn amqpconn.Raw, prefetch int, oneFirst bool) (*receiver, error) {
	i := &receiver{
		queue: queue, conn: conn,
		arriving: make(chan arrival), broken: make(chan error, 1), opened: make(chan *lane, 1), quit: make(chan struct{}),
		hungUp: conn.NotifyClose(make(chan *amqp.Error, 1)),
	}
	if oneFirst {
		i.next, prefetch = prefetch, 1
	}
	first, err := i.openLane(ctx, prefetch)
	if err != nil {
		return nil, queue.explain(err)
	}
	i.add(first)
	return i, nil
}

func (i *receiver) openLane(ctx context.Context, prefetch int) (*lane, error) {
	channel, err := amqpconn.OpenChannel(ctx, i.conn.Connection)
	if err != nil {
		return nil, err
	}
	l := &lane{
		channel: channel, prefetch: min(prefetch, mostPerLane),
		closed:    channel.NotifyClose(make(chan *amqp.Error, 1)),
		cancelled: channel.NotifyCancel(make(chan string, 1)),
	}
	l.deliveries, err = amqpconn.Await(ctx, fmt.Sprintf("consume queue %q", i.queue.Name), func() (<-chan amqp.Delivery, error) {
		if err := channel.Qos(l.prefetch, 0, false); err != nil {
			return nil, err
		}
		return channel.Consume(i.queue.Name, consumerTag, false, false, false, false, nil)
	}, func(<-chan amqp.Delivery) {})
	return l, err
}

func (i *receiver) add(l *lane) {
	i.widening = false
	i.lanes = append(i.lanes, l)
	i.prefetch += l.prefetch
	i.forwarding.Go(func() { i.forward(l) })
	go i.watch(l)
}

func (i *receiver) forward(l *lane) {
	for d := range l.deliveries {
		a := arrival{lane: l, tag: d.DeliveryTag, Message: i.queue.message(i.conn, &d)}
		select {
		case i.arriving <- a:
		case <-i.quit:
			return
		}
	}
}

// watch reports that the broker ended a lane.
func (i *receiver) watch(l *lane) {
	select {
	case <-i.quit:
	case _, ok := <-l.cancelled:
		if ok {
			i.breaks(errCancelled)
		} else {
			i.breaks(closedError(<-l.closed))
		}
	case reason := <-l.closed:
		i.breaks(closedError(reason))
	}
}

// breaks keeps the first reason.
func (i *receiver) breaks(reason error) {
	select {
	case i.broken <- reason:
	default:
	}
}

// widenIfFull opens another lane if the run holds more than half of its prefetch.
func (i *receiver) widenIfFull(ctx context.Context) {
	if i.widening || int(i.held.Load())*2 <= i.prefetch {
		return
	}
	i.widening = true
	prefetch, first := cmp.Or(i.next, i.prefetch), i.lanes[0]
	oneCame := i.next > 0
	i.next = 0
	go func() {
		if oneCame { // otherwise it would keep a single active consumer from becoming active
			_ = first.cancel() // an error means that the channel is closed
		}
		l, err := i.openLane(ctx, prefetch)
		if err != nil {
			i.breaks(err)
			return
		}
		select {
		case i.opened <- l:
		case <-i.quit:
		}
	}()
}

// putBack cancels the consumers and then returns the messages, since the reverse order counts twice against a delivery limit.
// It waits until the queue has these messages and all acknowledgements, and counts the rest. Messages that come meanwhile
// also count as held.
func (i *receiver) putBack(ctx context.Context) (Count, error) {
	ctx, cancel := context.WithTimeout(ctx, closing)
	defer cancel()
	defer close(i.quit)
	if i.widening {
		select {
		case l := <-i.opened:
			i.add(l)
		case err := <-i.broken:
			return Count{}, err
		case <-ctx.Done():
			return Count{}, ctx.Err()
		}
	}
	var left Count
	done := make(chan error, 1)
	go func() {
		var err error
		left, err = i.settle(ctx)
		done <- err
	}()
	for {
		select {
		case a := <-i.arriving:
			i.held.Add(1)
			i.conn.Release(a.size())
		case err := <-i.broken:
			return Count{}, err
		case <-ctx.Done():
			return Count{}, errAcksLate
		case err := <-done:
			return left, err
		}
	}
}

// settle is the part of putBack that runs while putBack takes messages.
func (i *receiver) settle(ctx context.Context) (left Count, err error) {
	ended := make(chan error, 1)
	err = amqpconn.AwaitAcks(len(i.lanes), func() (int, error) {
		count, err := i.known(ctx)
		return count.Consumers, err
	}, func() { ended <- i.requeue() })
	if err = errors.Join(err, <-ended); err == nil && i.held.Load() > 0 {
		left, err = i.known(ctx)
	}
	return left, err
}

// known counts the messages that are left. A quorum queue reports 0 if its leader is gone or busy for 250 ms, so known asks
// again for a while. It asks for longer if messages were put back: RabbitMQ 3.10 needs 10 s for 200,000 messages.
func (i *receiver) known(ctx context.Context) (c Count, err error) {
	for began := time.Now(); ; time.Sleep(settlingPoll) {
		c, err = count(ctx, i.lanes, i.queue)
		patience := settling
		if n := i.held.Load(); n > 0 {
			patience = returning + time.Duration(n)*returningEach
		}
		if err != nil || c != (Count{}) || time.Since(began) > patience {
			return c, err
		}
	}
}

func (l *lane) cancel() error {
	l.asking.Lock()
	defer l.asking.Unlock()
	return l.channel.Cancel(consumerTag, false)
}

// count asks for the queue's count over each lane's channel, so that the answer comes after all messages that were on their
// way.
func count(ctx context.Context, lanes []*lane, queue Queue) (c Count, err error) {
	for _, l := range lanes {
		declared, err := amqpconn.Await(ctx, fmt.Sprintf("look at queue %q", queue.Name), func() (amqp.Queue, error) {
			l.asking.Lock()
			defer l.asking.Unlock()
			return l.channel.QueueDeclarePassive(queue.Name, true, false, false, false, nil)
		}, func(amqp.Queue) {})
		if err != nil {
			return c, queue.explain(err)
		}
		c = Count{Ready: declared.Messages, Consumers: declared.Consumers}
	}
	return c, nil
}

// requeue cancels the consumers, waits until every delivery was handed over, and puts all back.
func (i *receiver) requeue() error {
	const all, multiple, requeue = 0, true, true
	for _, l := range i.lanes {
		if err := l.cancel(); err != nil {
			return fmt.Errorf("cancel: %w", err)
		}
	}
	i.forwarding.Wait()
	for _, l := range i.lanes {
		if err := l.channel.Nack(all, multiple, requeue); err != nil {
			return fmt.Errorf("put back: %w", err)
		}
	}
	return nil
}

// closedError has the broker's text.
func closedError(reason *amqp.Error) error {
	switch {
	case reason == nil:
		return errors.New("the connection is closed")
	case !reason.Server:
		return fmt.Errorf("the connection to the broker is lost: %w", reason)
	}
	return fmt.Errorf("the broker has closed the channel: %w", reason)
}
