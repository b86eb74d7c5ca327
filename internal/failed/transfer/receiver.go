package transfer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
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
	// mostOrdered is the largest number of consumers on one channel that give back their messages in order. The broker keeps
	// them in a map, and Erlang sorts maps of up to 32 keys.
	mostOrdered = 32
	// mostHeld is how many messages the consumers of one channel can hold, in order.
	mostHeld = mostOrdered * mostPerLane
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
func (a arrival) acknowledge() {
	a.lane.acknowledged++
	_ = a.lane.channel.Ack(a.tag, false)
}

// receiver consumes the queue with as many consumers as it needs to hold all messages that stay.
//
// A quorum queue first delivers what came back, and takes back behind what came back before. So a run that takes fewer
// messages than an earlier one moves the first ones behind others. If a connection ends, the queue takes back what one
// channel holds in the order of its consumers, and keeps the order of each (rabbit_fifo, 3.10 to 4.3). If more than 32
// messages come back by one basic.nack, RabbitMQ 3.10 shuffles them.
type receiver struct {
	queue Queue
	conn  amqpconn.Raw
	lanes []*lane
	// prefetch is the sum of all lanes' prefetches. next is the prefetch of the first lane's second consumer, 0 for none.
	prefetch, next int

	arriving chan arrival
	// broken has the reason when the broker ends a lane.
	broken chan error
	// hungUp has the reason when the broker ends the connection.
	hungUp chan *amqp.Error
	// opened has the new lane.
	opened   chan *lane
	widening bool
	// uncounted says that the broker tells no counts.
	uncounted bool
	// held is how many messages the run holds until it puts them back.
	held       atomic.Int64
	quit       chan struct{}
	forwarding sync.WaitGroup
}

// lane is a channel with one or more consumers. For each acknowledgement, the broker searches all messages that the channel
// holds, so a run that acknowledges opens several lanes.
type lane struct {
	channel *amqp.Channel
	// asking is locked during a request, since a channel can wait for one answer at a time.
	asking sync.Mutex
	// consumers is how many were started, and prefetch the sum of their prefetches.
	consumers, prefetch int
	// received is how many messages came, and acknowledged how many of them were acknowledged.
	received     atomic.Int64
	acknowledged int
	// delivered has the messages of all consumers until pumping is done.
	delivered chan amqp.Delivery
	pumping   sync.WaitGroup
	closed    chan *amqp.Error
	cancelled chan string
}

// consumerTag names the n-th consumer of a channel. RabbitMQ 3.10 takes back messages in the order of these names.
func consumerTag(n int) string { return fmt.Sprintf("rabbitmq-retry-failed-%03d", n) }

// openReceiver begins to consume. Further lanes open while messages are taken, since the broker's answer can come behind more
// messages than fit the buffer.
func openReceiver(ctx context.Context, queue Queue, conn amqpconn.Raw, prefetch int, oneFirst bool) (*receiver, error) {
	conn.Limit(unread)
	i := &receiver{
		queue: queue, conn: conn,
		arriving: make(chan arrival), broken: make(chan error, 1), opened: make(chan *lane, 1), quit: make(chan struct{}),
		hungUp: conn.NotifyClose(make(chan *amqp.Error, 1)),
	}
	if oneFirst {
		i.next, prefetch = prefetch-1, 1
	}
	first, err := i.openLane(ctx, prefetch)
	if amqpconn.IsCode(err, amqp.InternalError) { // over the first message, which came before the answer
		return nil, &UnreadableError{Err: err}
	}
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
		channel: channel, delivered: make(chan amqp.Delivery, 1),
		closed:    channel.NotifyClose(make(chan *amqp.Error, 1)),
		cancelled: channel.NotifyCancel(make(chan string, 1)),
	}
	return l, i.consume(ctx, l, prefetch)
}

// consume starts as many consumers as it takes for the prefetch, each with the same one. A quorum queue assigns messages to
// one after the other, before it delivers any.
func (i *receiver) consume(ctx context.Context, l *lane, prefetch int) error {
	n := (prefetch + mostPerLane - 1) / mostPerLane
	each := (prefetch + n - 1) / n
	_, err := amqpconn.Await(ctx, fmt.Sprintf("consume queue %q", i.queue.Name), func() (any, error) {
		l.asking.Lock()
		defer l.asking.Unlock()
		if err := l.channel.Qos(each, 0, false); err != nil {
			return nil, err
		}
		for more := range n { // only the first one's answer comes before messages
			deliveries, err := l.channel.Consume(i.queue.Name, consumerTag(l.consumers), false, false, false, more > 0, nil)
			if err != nil {
				return nil, err
			}
			l.consumers++
			l.prefetch += each
			l.pumping.Go(func() { i.pump(deliveries, l.delivered) })
		}
		return nil, nil
	}, func(any) {})
	return err
}

func (i *receiver) pump(deliveries <-chan amqp.Delivery, to chan<- amqp.Delivery) {
	for d := range deliveries {
		select {
		case to <- d:
		case <-i.quit:
			return
		}
	}
}

func (i *receiver) add(l *lane) {
	i.widening = false
	if !slices.Contains(i.lanes, l) {
		i.lanes = append(i.lanes, l)
		i.forwarding.Go(func() { i.forward(l) })
		go i.watch(l)
	}
	i.prefetch = 0
	for _, l := range i.lanes {
		i.prefetch += l.prefetch
	}
}

// message is a delivery with its properties as on the wire. It must be called only once for each.
func (q Queue) message(conn amqpconn.Raw, d amqp.Delivery) failed.Message {
	return failed.Message{
		Queue: q.Name, Exchange: d.Exchange, RoutingKey: d.RoutingKey, Redelivered: d.Redelivered,
		Properties: conn.Properties(d.Headers), Body: d.Body,
	}
}

// forward hands over the messages of a lane's consumers in the order of delivery.
func (i *receiver) forward(l *lane) {
	early := map[uint64]amqp.Delivery{}
	next := uint64(1)
	for {
		select {
		case d, ok := <-l.delivered:
			if !ok {
				return
			}
			early[d.DeliveryTag] = d
		case <-i.quit:
			return
		}
		for d, came := early[next]; came; d, came = early[next] {
			delete(early, next)
			next++
			l.received.Add(1)
			select {
			case i.arriving <- arrival{lane: l, tag: d.DeliveryTag, Message: i.queue.message(i.conn, d)}:
			case <-i.quit:
				return
			}
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

// widenIfFull adds a consumer if the run holds more than half of its prefetch.
func (i *receiver) widenIfFull(ctx context.Context) {
	if i.widening || int(i.held.Load())*2 <= i.prefetch {
		return
	}
	i.widening = true
	prefetch, l, oneCame := cmp.Or(i.next, i.prefetch), i.lanes[0], i.next > 0
	i.next = 0
	go func() {
		var err error
		if oneCame { // it ends first: otherwise it would keep a single active consumer from becoming active
			err = errors.Join(l.cancel(), i.consume(ctx, l, prefetch))
		} else {
			l, err = i.openLane(ctx, min(prefetch, mostPerLane))
		}
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

// whileTaking runs do, and meanwhile takes messages, which also count as held.
func (i *receiver) whileTaking(ctx context.Context, do func() error) error {
	done := make(chan error, 1)
	begin := func() { done <- do() }
	if !i.widening {
		go begin()
	}
	for {
		select {
		case l := <-i.opened:
			i.add(l)
			go begin()
		case a := <-i.arriving:
			i.held.Add(1)
			i.conn.Release(a.size())
		case err := <-i.broken:
			return err
		case <-ctx.Done():
			return errAcksLate
		case err := <-done:
			return err
		}
	}
}

// assigned returns once the queue has assigned messages to all consumers. Then the connection can end.
func (i *receiver) assigned(ctx context.Context) (err error) {
	if i.uncounted {
		time.Sleep(settling)
		return nil
	}
	if i.lanes[0].consumers > 1 { // otherwise it has, since the consumer's start was answered
		_, err = count(ctx, i.lanes, i.queue)
	}
	return err
}

// refilled reports whether the only consumer has again as many messages as it can hold. Then the queue has all
// acknowledgements, since it delivers a message for each one. It waits while messages still come.
func (i *receiver) refilled() bool {
	l, last, since := i.lanes[0], int64(0), time.Now()
	for len(i.lanes) == 1 && time.Since(since) < settling {
		switch received := l.received.Load(); {
		case int(received) == l.prefetch+l.acknowledged:
			return true
		case received > last:
			last, since = received, time.Now()
		}
		time.Sleep(settlingPoll)
	}
	return false
}

// requeued cancels the consumers and then returns the messages, since the reverse order counts twice against a delivery limit.
// It waits until the queue has these messages and all acknowledgements, and counts the rest.
func (i *receiver) requeued(ctx context.Context) (left Count, err error) {
	ended := make(chan error, 1)
	own := 0
	for _, l := range i.lanes {
		own += l.consumers
	}
	err = amqpconn.AwaitAcks(own, func() (int, error) {
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
	for n := range l.consumers {
		if err := l.channel.Cancel(consumerTag(n), false); err != nil {
			return err
		}
	}
	return nil
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
		l.pumping.Wait()
		close(l.delivered)
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
