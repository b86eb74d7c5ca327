package session

import (
	"errors"
	"fmt"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/metrics"
)

// address is an exchange and the target behind it, as deadletter.Route names both.
type address struct{ exchange, target string }

// lane publishes to one address on a channel of its own. So a target that takes nothing, or does not answer, holds up no other. Only
// the session's loop must use a lane.
type lane struct {
	address
	watch *metrics.Exchange
	// setsAside says that a message goes to the refused queue if a queue behind the exchange refuses it.
	setsAside bool

	channelState
	confirmChannel
	// closures counts the channels since the broker last judged a message.
	closures int
	// renewed is when the last new channel was requested because a queue refused a message.
	renewed time.Time

	// outstanding are the messages without a confirm. The library hands out confirms in publishing order, so the first message is
	// always confirmed next.
	outstanding []*message
	// waiting are the messages to publish next, in this order.
	waiting []*message

	condition
	// nextProbe is when one message can try the target again. It is zero if all messages can.
	nextProbe time.Time
	isolation isolation
	silence   silence
}

// channelState says whether a lane's channel takes messages.
type channelState int

const (
	// opening: the lane waits for a new channel.
	opening channelState = iota
	// forbidden: the same, and messages do not wait for it, since the user must not publish to the exchange.
	forbidden
	open
	// stale: another channel is opened as soon as no confirm is outstanding.
	stale
)

// closed reports whether the lane has no channel.
func (s channelState) closed() bool { return s == opening || s == forbidden }

// condition says what the last answers tell about a target. Until it is available again, the log does not repeat it.
type condition int

const (
	available condition = iota
	// unboundExchange: the exchange has no queue for messages that can go nowhere else.
	unboundExchange
	// full: the only queue of the exchange refuses messages.
	full
)

// confirmChannel is a channel and its answers.
type confirmChannel struct {
	amqpconn.Confirming
	confirms chan amqp.Confirmation
	returned *returned
	// published and confirmed are the delivery tags of the latest message and of the latest confirm.
	published, confirmed uint64
}

// returned knows which messages of a channel the broker returned. The goroutine that reads the channel's answers notes them.
type returned struct {
	// idHeader names the header with each message's publish id.
	idHeader string
	// looks takes a value after all returns that came before are noted. noMore is closed after the last one.
	looks, noMore chan struct{}

	mutex sync.Mutex
	ids   map[string]bool
	// unidentified says that a return did not identify its message.
	unidentified bool
}

func newReturned(idHeader string) *returned {
	return &returned{idHeader: idHeader, looks: make(chan struct{}), noMore: make(chan struct{}), ids: map[string]bool{}}
}

func (r *returned) note(message amqp.Return) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if id, ok := message.Headers[r.idHeader].(string); ok {
		r.ids[id] = true
	} else {
		r.unidentified = true
	}
}

// look waits until all returns that came before are noted.
func (r *returned) look() {
	select {
	case r.looks <- struct{}{}:
	case <-r.noMore:
	}
}

// identify notes that all outstanding messages count as returned, if a return did not say which one it was.
func (r *returned) identify(outstanding []*message) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if !r.unidentified {
		return
	}
	for _, m := range outstanding {
		r.ids[m.sent.id] = true
	}
	r.unidentified = false
}

// take reports whether a message was returned, and forgets it.
func (r *returned) take(id string) bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	defer delete(r.ids, id)
	return r.ids[id]
}

// free reports whether a lane can serve another address. A channel that owes a confirm would hold back later ones.
func (l *lane) free() bool {
	return l.channelState == open && l.condition == available && l.confirmed == l.published && len(l.waiting) == 0 && l.isolation.left == 0
}

// ready reports whether the message can be published now.
func (l *lane) ready(m *message, now time.Time) bool {
	return l.channelState == open && !l.crowded(now) && (len(l.outstanding) == 0 || l.isolation.left == 0 && !m.goesAlone())
}

// outdate asks for another channel.
func (l *lane) outdate() {
	if l.channelState == open {
		l.channelState = stale
	}
}

// outdateRarely asks for another channel because a queue has refused a message. A channel that was open during the election of the
// queue's leader can refuse messages until the old leader's node is back, and a new one is served at once.
func (l *lane) outdateRarely(now time.Time) {
	if now.Sub(l.renewed) > renewEvery {
		l.renewed = now
		l.outdate()
	}
}

// obstructed reports whether a message should not try the target now.
func (l *lane) obstructed(now time.Time) bool {
	return !l.nextProbe.IsZero() && (now.Before(l.nextProbe) || len(l.outstanding)+len(l.waiting) > 0)
}

// publish sends a message. After an error, the channel's state is unknown, so the session must end. A closed channel is no error here:
// confirms is closed, too, and tells the loop.
func (l *lane) publish(m *message, publishing amqp.Publishing) error {
	const mandatory, immediate = true, false
	confirmation, err := l.PublishWithDeferredConfirm(m.route.Exchange, m.route.Key, mandatory, immediate, publishing)
	switch {
	case errors.Is(err, amqp.ErrClosed):
		m.sent.tag = 0
	case err != nil:
		return fmt.Errorf("publish to exchange %q: %w", m.route.Exchange, err)
	default:
		m.sent.tag, m.sent.confirmation = confirmation.DeliveryTag, confirmation
		l.published = m.sent.tag
	}
	m.sent.at = time.Now() // writing a large message can take long
	l.outstanding = append(l.outstanding, m)
	if m.goesAlone() {
		l.isolation.left = max(1, l.isolation.left)
	}
	return nil
}

// confirm removes and returns the message that a confirm is for. It returns nil if the message is settled.
func (l *lane) confirm(tag uint64) *message {
	l.confirmed = tag
	l.returned.identify(l.outstanding)
	if len(l.outstanding) == 0 || l.outstanding[0].sent.tag != tag {
		return nil
	}
	return shift(&l.outstanding)
}

// shift removes and returns the first message.
func shift(messages *[]*message) *message {
	m := (*messages)[0]
	(*messages)[0] = nil // else the body would stay in memory
	*messages = (*messages)[1:]
	return m
}

// each handles the messages until one fails.
func each(messages []*message, handle func(*message) error) error {
	for _, m := range messages {
		if err := handle(m); err != nil {
			return err
		}
	}
	return nil
}

// takeAccepted removes and returns the outstanding messages that the broker has accepted. The library can still hold their confirms
// back, until all earlier messages have theirs.
func (l *lane) takeAccepted() []*message {
	all := l.outstanding
	accepted := l.takeOut((*message).accepted)
	if len(accepted) > 0 {
		l.returned.look()
		l.returned.identify(all)
	}
	return accepted
}

// takeOut removes and returns the outstanding messages that the condition holds for. It leaves messages that found the
// channel closed. They have no tag, and still have the confirmation of their publish before.
func (l *lane) takeOut(holds func(*message) bool) (taken []*message) {
	var rest []*message
	for _, m := range l.outstanding {
		if m.sent.tag != 0 && holds(m) {
			taken = append(taken, m)
		} else {
			rest = append(rest, m)
		}
	}
	l.outstanding = rest
	return taken
}

// settled notes that a message needs no further answer, and reports whether it was returned.
func (l *lane) settled(m *message) (returned bool) {
	returned = l.returned.take(m.sent.id)
	l.watch.Answered(time.Since(m.sent.at), m.accepted(), returned)
	l.isolation.answered()
	return returned
}

const (
	// alone is the least size of a body that goes alone. By default, RabbitMQ 4.0 and later refuses larger bodies, and a queue can hold
	// some from before an upgrade.
	alone = 16 << 20
	// mostCautious bounds, in windows, how many messages go one at a time after the broker has refused one.
	mostCautious = 64
)

// goesAlone reports whether the broker can refuse the message for its size. Such a message is published while no other is outstanding.
func (m *message) goesAlone() bool { return len(m.delivery.Body) >= alone }

// isolation finds the message that makes the broker close a channel. Messages go one at a time, so that the others are not published
// twice.
type isolation struct {
	// left is how many messages still go one at a time, the outstanding one included.
	left int
	// cautious is how many go one at a time after the latest refused one. It doubles each time.
	cautious int
}

// found makes messages go one at a time for a while after the broker has refused one, longer each time. More messages of its kind can
// follow, and each would cause another publish of the others.
func (i *isolation) found(window int) {
	i.cautious = min(max(window, 2*i.cautious), mostCautious*window)
	i.left = max(i.left, i.cautious)
}

// answered notes the answer to a message that went alone, if one did.
func (i *isolation) answered() { i.left = max(0, i.left-1) }
