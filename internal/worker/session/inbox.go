package session

import (
	"context"
	"fmt"
	"strconv"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
)

const (
	// rampAfter is how many messages a session usually finishes one by one before it takes the whole window.
	rampAfter = 30
	// rampSlow is how long one message may keep the others waiting.
	rampSlow = 2 * time.Second

	firstTag = "rabbitmq-retry-first"
	// restTag begins the tag of the second consumer.
	restTag = "rabbitmq-retry"
)

// inbox is what consumes the inbox. It begins with one message in flight at a time: a message that ends the
// session, or the process, again and again then takes no other along. Each time counts against the
// delivery limit of all that is in flight, and may duplicate it.
//
// A prefetch is for new consumers only, so the rest of the window belongs to a second one. That one ends if the
// messages turn out to be much larger than those before, and the session takes one at a time again.
type inbox struct {
	queue string
	// inflow is what the connection has read.
	inflow inflow
	window
	// ramp is how many messages are finished one by one before the whole window is taken.
	ramp    int
	channel *amqp.Channel
	closed  chan *amqp.Error
	// first and others are the two consumers, nil when they have ended. There are no others until the
	// window is widened.
	first, others <-chan amqp.Delivery
	// widenings is how many second consumers there were. Each has a tag of its own: RabbitMQ 3.10 closes the channel with
	// 541 over one that was cancelled while it had messages in flight, and comes again.
	widenings int

	finished   int
	receivedAt time.Time // of the latest delivery
	unheard    int       // how many messages are acknowledged since, so that nothing shows whether the broker has read it
	slow       bool      // a message is kept, or takes long: it does no harm, but the others wait
	widened    bool
	widening   bool // the second consumer is on its way
	narrowing  bool // it is about to end
	cancelling bool // the broker has not answered to that
}

// inflow is bounded by what is not released.
type inflow interface {
	Release(bytes int)
	Full() bool
}

func openInbox(ctx context.Context, conn amqpconn.Bounded, queue string, messages, ramp int) (i inbox, err error) {
	i = inbox{queue: queue, inflow: conn, window: window{messages: messages}, ramp: ramp}
	if i.channel, err = amqpconn.OpenChannel(ctx, conn.Connection); err != nil {
		return i, err
	}
	i.closed = i.channel.NotifyClose(make(chan *amqp.Error, 1))
	i.first, err = i.subscribe(ctx, firstTag, 1, false)
	return i, err
}

// subscribe begins to consume the inbox. The prefetch is that of this consumer alone. A broker may send deliveries
// before it answers to a consumer: the answer to a second one would be behind those that are not read, so it is not
// waited for. An error closes the channel.
func (i *inbox) subscribe(ctx context.Context, tag string, prefetch int, noWait bool) (<-chan amqp.Delivery, error) {
	return amqpconn.Await(ctx, "consume "+i.queue, func() (<-chan amqp.Delivery, error) {
		if err := i.channel.Qos(prefetch, 0, false); err != nil {
			return nil, err
		}
		return i.channel.Consume(i.queue, tag, false, false, false, noWait, nil)
	}, func(<-chan amqp.Delivery) {})
}

// due reports whether it is time to take the whole window.
func (i *inbox) due() bool {
	return (i.slow || i.sampled >= i.ramp) && !i.widened && i.messages > 1
}

// received counts a delivery.
func (i *inbox) received(d amqp.Delivery, now time.Time) {
	i.window.received(d)
	i.receivedAt, i.unheard = now, 0
}

// settled counts a message that is acknowledged or rejected.
func (i *inbox) settled(d amqp.Delivery) {
	i.window.settled(d)
	i.inflow.Release(len(d.Body))
}

// full reports whether what was asked for does not fit, and is not read.
func (i *inbox) full() bool { return i.widened && i.inflow.Full() }

// observe notes when what is in flight takes long.
func (i *inbox) observe(now time.Time) {
	if i.inFlight > 0 && now.Sub(i.receivedAt) > rampSlow {
		i.slow = true
	}
}

// restTag is the tag of the second consumer.
func (i *inbox) restTag() string { return restTag + "-" + strconv.Itoa(i.widenings) }

// acknowledge finishes a message that the broker has accepted again.
func (i *inbox) acknowledge(d amqp.Delivery) error {
	if err := d.Ack(false); err != nil {
		return fmt.Errorf("acknowledge: %w", err)
	}
	i.settled(d)
	i.finished++
	i.unheard++
	return nil
}

// reject finishes a message that the broker moves to the failed queue itself.
func (i *inbox) reject(d amqp.Delivery) error {
	if err := d.Reject(false); err != nil {
		return fmt.Errorf("reject: %w", err)
	}
	i.settled(d)
	i.finished++
	i.unheard++
	return nil
}

// lost is an error if the inbox's channel is closed: nothing can be acknowledged any more.
func (i *inbox) lost() error {
	select {
	case reason := <-i.closed:
		return closedError("consuming", reason)
	default:
		return nil
	}
}

// tags are those of the consumers.
func (i *inbox) tags() []string { return []string{firstTag, i.restTag()} }

// cancelAll stops the deliveries. A consumer's channel closes when the broker has answered and what it had already sent is
// taken.
func cancelAll(channel *amqp.Channel, tags []string) {
	for _, tag := range tags {
		// An error says that the channel is closed, and then so are the deliveries.
		_ = channel.Cancel(tag, false)
	}
}

// consumers is how many there are.
func (i *inbox) consumers() int {
	if i.others != nil {
		return 2
	}
	return 1
}

// calling reports whether a call of the channel is under way: the library takes one at a time.
func (i *inbox) calling() bool { return i.widening || i.cancelling }

// cancelled reports whether both consumers have ended.
func (i *inbox) cancelled() bool { return i.first == nil && i.others == nil && !i.widening }

// widenIfDue takes the whole window from now on if it is time to.
func (s *Session) widenIfDue(ctx context.Context) {
	if !s.inbox.due() || s.draining {
		return
	}
	s.inbox.widened, s.inbox.widening = true, true
	s.inbox.widenings++
	// A stopping session still has to know how it ends.
	ctx, tag, prefetch := context.WithoutCancel(ctx), s.inbox.restTag(), s.inbox.widen()
	go func() {
		deliveries, err := s.inbox.subscribe(ctx, tag, prefetch, true)
		s.complete(func() error { return s.widened(deliveries, err) })
	}()
}

// widened resumes with both consumers.
func (s *Session) widened(deliveries <-chan amqp.Delivery, err error) error {
	s.inbox.widening = false
	if err != nil {
		return err
	}
	s.inbox.others = deliveries
	if s.draining {
		s.cancel()
	}
	return nil
}

// narrowIfCrowded ends the second consumer if the messages are too large for its prefetch.
func (s *Session) narrowIfCrowded() {
	if s.draining || s.inbox.calling() || s.inbox.narrowing || !s.inbox.crowded() {
		return
	}
	s.Log.Info("messages are large: taking fewer at a time", "in_flight", s.inbox.inFlight, "bytes", s.inbox.held)
	s.inbox.narrowing, s.inbox.cancelling = true, true
	channel, tag := s.inbox.channel, s.inbox.restTag()
	go func() {
		// An error says that the channel is closed, and then so are the deliveries.
		_ = channel.Cancel(tag, false)
		s.complete(func() error {
			s.inbox.cancelling = false
			s.narrowed()
			if s.draining {
				s.cancel()
			}
			return nil
		})
	}()
}

// narrowed resumes with one consumer, once the other one's deliveries have all come.
func (s *Session) narrowed() {
	if s.inbox.cancelling || s.inbox.others != nil {
		return
	}
	s.inbox.widened, s.inbox.narrowing, s.inbox.slow = false, false, false
	s.inbox.narrow()
}

const (
	// bytesPerMessage is how large the messages in flight may be on average for there to be as many as the window has.
	bytesPerMessage = 32 << 10
	// mostOnTheWay is how many times the window in bytes may be on its way before fewer messages are asked for.
	mostOnTheWay = 4
)

// WindowBytes is the window in bytes of bodies. What comes when it is exceeded stays in the network, and with the
// broker, until there is room: the connection does not read it.
func WindowBytes(messages int) int { return messages * bytesPerMessage }

// window follows how much is in flight. A prefetch counts messages, and the broker keeps in memory what it has sent
// and nobody reads: so it is asked for as many as fit the window in bytes, going by the size of those before.
type window struct {
	messages int
	inFlight int
	// held are the bytes of the bodies in flight.
	held int
	// sampled is how many messages were finished since they are taken one by one, and sampledBytes their size.
	sampled, sampledBytes int
	// rest is the prefetch of the second consumer.
	rest int
}

// received counts a delivery.
func (w *window) received(d amqp.Delivery) {
	w.inFlight++
	w.held += len(d.Body)
}

// settled counts a message that is acknowledged or rejected.
func (w *window) settled(d amqp.Delivery) {
	w.inFlight--
	w.held -= len(d.Body)
	w.sampled++
	w.sampledBytes += len(d.Body)
}

// widen chooses the prefetch of the second consumer. It is one at least, since a message that is kept must not stop
// the others.
func (w *window) widen() int {
	average := (w.sampledBytes + w.held) / max(1, w.sampled+w.inFlight)
	w.rest = max(1, min(w.messages, WindowBytes(w.messages)/max(1, average))-1)
	return w.rest
}

// narrow begins a new sample.
func (w *window) narrow() { w.sampled, w.sampledBytes, w.rest = 0, 0, 0 }

// crowded reports whether there may be much more on its way than fits.
func (w *window) crowded() bool {
	limit := WindowBytes(w.messages)
	return w.rest > 1 && w.held > limit && w.held/max(1, w.inFlight)*w.rest > mostOnTheWay*limit
}
