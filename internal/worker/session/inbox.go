package session

import (
	"context"
	"fmt"
	"strconv"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn/frame"
)

const (
	// rampAfter is how many messages a session usually finishes one by one before it takes the whole window.
	rampAfter = 30
	// rampSlow is how long one message can keep the others waiting.
	rampSlow = 2 * time.Second

	firstTag = "rabbitmq-retry-first"
	// restTag is the prefix of the second consumer's tag.
	restTag = "rabbitmq-retry"
)

// inbox consumes the inbox. It begins with one message in flight. If a message ends the session or the process again
// and again, it then interrupts no other message. Each interruption counts against the delivery limit of all messages
// in flight, and can duplicate them.
//
// A prefetch applies to new consumers only, so a second consumer has the rest of the window. If the messages turn out
// to be much larger than before, the second consumer ends. The session then takes one message at a time again.
type inbox struct {
	queue string
	// inflow stops reading while too many bytes are not released.
	inflow *frame.Gate
	window
	// ramp is how many messages are finished one by one before the session takes the whole window.
	ramp    int
	channel *amqp.Channel
	closed  chan *amqp.Error
	consumers

	finished   int
	receivedAt time.Time // of the latest delivery
	unheard    int       // messages acknowledged since: nothing shows yet whether the broker has read that
	slow       bool      // a message is kept or takes long: it is harmless, but the others wait
}

// consumers are the inbox's two consumers.
type consumers struct {
	// first and others are their deliveries. Each is nil when its consumer has ended. others is nil until the window is
	// widened.
	first, others <-chan amqp.Delivery
	// widenings counts the second consumers. Each has a tag of its own. If a tag comes again after its consumer was
	// cancelled with messages in flight, RabbitMQ 3.10 closes the channel with 541.
	widenings int
	calling   bool // a call of the channel is under way: the library allows one at a time
	narrowing bool // the second consumer is ending
}

func openInbox(ctx context.Context, conn amqpconn.Bounded, queue string, messages, ramp int) (i inbox, err error) {
	i = inbox{queue: queue, inflow: conn.Gate, window: window{messages: messages}, ramp: ramp}
	if i.channel, err = amqpconn.OpenChannel(ctx, conn.Connection); err != nil {
		return i, err
	}
	i.closed = i.channel.NotifyClose(make(chan *amqp.Error, 1))
	i.first, err = i.subscribe(ctx, firstTag, 1, false)
	return i, err
}

// subscribe begins to consume the inbox. The prefetch applies to this consumer alone. A broker can send deliveries
// before it answers a basic.consume. With noWait, the session does not wait for the answer, which would be stuck behind
// unread deliveries. An error closes the channel.
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
	return (i.slow || i.sampled >= i.ramp) && !i.widened() && i.messages > 1
}

func (i *inbox) received(d amqp.Delivery, now time.Time) {
	i.window.received(d)
	i.receivedAt, i.unheard = now, 0
}

// settled counts a message that is acknowledged or rejected.
func (i *inbox) settled(d amqp.Delivery) {
	i.window.settled(d)
	i.inflow.Release(len(d.Body))
}

// full reports whether the deliveries no longer fit, so that the connection does not read them.
func (i *inbox) full() bool { return i.widened() && i.inflow.Full() }

// observe notes when the messages in flight take long.
func (i *inbox) observe(now time.Time) {
	if i.inFlight > 0 && now.Sub(i.receivedAt) > rampSlow {
		i.slow = true
	}
}

func (i *inbox) restTag() string { return restTag + "-" + strconv.Itoa(i.widenings) }

// acknowledge finishes a message that the broker has accepted again. With multiple, 35 messages at a time, the sidecar was
// 2 to 7 % faster, but a mistake would acknowledge an unconfirmed message.
func (i *inbox) acknowledge(d amqp.Delivery) error {
	return i.finish(d, "acknowledge", d.Ack(false))
}

// reject finishes a message that the broker itself moves to the failed queue.
func (i *inbox) reject(d amqp.Delivery) error {
	return i.finish(d, "reject", d.Reject(false))
}

// finish counts a message, unless the call that was to finish it has failed.
func (i *inbox) finish(d amqp.Delivery, call string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", call, err)
	}
	i.settled(d)
	i.finished++
	i.unheard++
	return nil
}

// lost returns an error if the inbox's channel is closed, since it can no longer acknowledge messages.
func (i *inbox) lost() error {
	select {
	case reason := <-i.closed:
		return closedError("consuming", reason)
	default:
		return nil
	}
}

// cancelAll stops the deliveries. The Go channel of a consumer closes after the broker's answer, once the last delivery
// is taken.
func cancelAll(channel *amqp.Channel, tags []string) {
	for _, tag := range tags {
		// An error says that the channel is closed, and then the deliveries have ended, too.
		_ = channel.Cancel(tag, false)
	}
}

// cancelled reports whether both consumers have ended.
func (i *inbox) cancelled() bool { return i.first == nil && i.others == nil && !i.calling }

// widenIfDue takes the whole window if it is time to.
func (s *Session) widenIfDue(ctx context.Context) {
	if !s.inbox.due() || s.draining {
		return
	}
	s.inbox.calling = true
	s.inbox.widenings++
	// A session that stops must still know how the call ends.
	ctx, tag, prefetch := context.WithoutCancel(ctx), s.inbox.restTag(), s.inbox.widen()
	go func() {
		deliveries, err := s.inbox.subscribe(ctx, tag, prefetch, true)
		s.complete(func() error {
			s.inbox.calling = false
			if err != nil {
				return err
			}
			s.inbox.others = deliveries
			if s.draining {
				s.cancel()
			}
			return nil
		})
	}()
}

// narrowIfCrowded ends the second consumer if the messages are too large for its prefetch.
func (s *Session) narrowIfCrowded() {
	if s.draining || s.inbox.calling || s.inbox.narrowing || !s.inbox.crowded() {
		return
	}
	s.Log.Info("messages are large: taking fewer at a time", "in_flight", s.inbox.inFlight, "bytes", s.inbox.held)
	s.inbox.narrowing, s.inbox.calling = true, true
	channel, tag := s.inbox.channel, s.inbox.restTag()
	go func() {
		cancelAll(channel, []string{tag})
		s.complete(func() error {
			s.inbox.calling = false
			s.narrowed()
			if s.draining {
				s.cancel()
			}
			return nil
		})
	}()
}

// narrowed continues with one consumer, once the second one's last delivery is taken.
func (s *Session) narrowed() {
	if s.inbox.calling || s.inbox.others != nil {
		return
	}
	s.inbox.narrowing, s.inbox.slow = false, false
	s.inbox.narrow()
}

const (
	// bytesPerMessage is the largest average body for which the window holds its full number of messages.
	bytesPerMessage = 32 << 10
	// mostOnTheWay bounds the bytes on their way, in windows. Above it, the session asks for fewer messages.
	mostOnTheWay = 4
)

// windowBytes is the window in bytes of bodies. If it is exceeded, the connection stops reading, and further messages
// stay in the network and with the broker until there is room.
func windowBytes(messages int) int { return messages * bytesPerMessage }

// window follows how much is in flight. A prefetch counts messages, and the broker keeps unread messages in memory. So
// the session asks for as many messages as fit the window in bytes, at the average size so far.
type window struct {
	messages int
	inFlight int
	// held is the number of bytes of the bodies in flight.
	held int
	// sampled is how many messages were finished since the session began to take them one by one. sampledBytes is their
	// size.
	sampled, sampledBytes int
	// rest is the prefetch of the second consumer. It is 0 while there is none.
	rest int
}

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

// widen chooses the prefetch of the second consumer. It is at least one, so that a kept message does not stop the
// others.
func (w *window) widen() int {
	average := (w.sampledBytes + w.held) / max(1, w.sampled+w.inFlight)
	w.rest = max(1, min(w.messages, windowBytes(w.messages)/max(1, average))-1)
	return w.rest
}

func (w *window) widened() bool { return w.rest > 0 }

// narrow begins a new sample.
func (w *window) narrow() { w.sampled, w.sampledBytes, w.rest = 0, 0, 0 }

// crowded reports whether much more can be on its way than fits.
func (w *window) crowded() bool {
	limit := windowBytes(w.messages)
	return w.rest > 1 && w.held > limit && w.held/max(1, w.inFlight)*w.rest > mostOnTheWay*limit
}
