package transfer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn/frame"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
)

const (
	// Window is how many publishes can wait for a confirm.
	Window = 500
	// MayDouble is how many messages can be duplicated when the process or the connection dies, because their acknowledgements
	// were on their way.
	MayDouble = defaultPrefetch + Window
	// windowBytes also bounds the window, since the bodies stay in memory.
	windowBytes = 64 << 20
)

func size(p failed.Publishing) int { return len(p.Properties) + len(p.Body) }

// identity identifies a publish. The broker can return a message with its headers in another order, so a digest is compared.
// It is slow, and computed only once a message was returned.
func (s *sent) identity() string {
	if s.id == "" {
		s.id = failed.Digest(failed.Message{Exchange: s.Exchange, RoutingKey: s.RoutingKey, Properties: s.Properties, Body: s.Body})
	}
	return s.id
}

// sent is a publish that waits for its confirm. The field confirmation is set once onItsWay is closed.
type sent struct {
	failed.Publishing
	// what is the message to acknowledge after the confirm; empty if the published message does not come from a queue.
	what         selected
	id           string
	onItsWay     chan struct{}
	confirmation *amqp.DeferredConfirmation
	returned     bool
}

// publisher publishes over its own connection, since the broker stops reading from that connection during an alarm.
type publisher struct {
	// result counts the outcomes. done learns of each publish whether the message is in a queue.
	result *Result
	done   func(p failed.Publishing, confirmed bool)

	amqpconn.Confirming
	conn     amqpconn.Raw
	confirms chan amqp.Confirmation
	alarms   chan amqp.Blocking
	// blocked is why the broker accepts no messages, "" if it accepts them.
	blocked string

	// outstanding are the unconfirmed publishes, in the order of publishing and of confirms. The first ones, as many as flying
	// says, were sent.
	outstanding []*sent
	flying      int
	bytes       int
	// accepted is the size of the largest body that the broker has answered to. max is the broker's max_message_size, 0 if it is
	// not known.
	accepted, max int
	// sending leads to a separate goroutine, since a write blocks if the broker does not read.
	sending chan *sent
}

func openPublisher(ctx context.Context, queue Queue, result *Result, done func(failed.Publishing, bool)) (*publisher, error) {
	conn, err := queue.Open(ctx, "publish")
	if err != nil {
		return nil, err
	}
	if done == nil {
		done = func(failed.Publishing, bool) {}
	}
	o := &publisher{
		result: result, done: done,
		conn:    conn,
		alarms:  conn.NotifyBlocked(make(chan amqp.Blocking, 1)),
		sending: make(chan *sent, Window),
	}
	if err := o.open(ctx); err != nil {
		amqpconn.HangUp(conn.Connection)
		return nil, err
	}
	go o.send()
	return o, nil
}

// open opens a channel. No publish of an earlier channel may be on its way.
func (o *publisher) open(ctx context.Context) error {
	channel, err := amqpconn.OpenConfirming(ctx, o.conn.Connection, Window)
	if err != nil {
		return err
	}
	o.Confirming, o.confirms = channel, channel.NotifyPublish(make(chan amqp.Confirmation, Window))
	return nil
}

// full reports whether the publisher must wait before it accepts another message.
func (o *publisher) full() bool {
	return o.blocked != "" || len(o.outstanding) >= Window || o.bytes > windowBytes || o.flying < len(o.outstanding)
}

// alarm notes whether the broker accepts messages.
func (o *publisher) alarm(b amqp.Blocking, ok bool) {
	if !ok {
		o.alarms = nil // the confirms are closed, too, and tell why
		return
	}
	o.blocked = b.Reason
}

// publish returns false if the broker is known to refuse the message for its size.
func (o *publisher) publish(p failed.Publishing, what selected) bool {
	if o.max > 0 && len(p.Body) > o.max {
		o.tooLarge(p, what)
		return false
	}
	o.outstanding = append(o.outstanding, &sent{Publishing: p, what: what, onItsWay: make(chan struct{})})
	o.bytes += size(p)
	o.proceed()
	return true
}

func (o *publisher) send() {
	const mandatory, immediate = true, false
	for s := range o.sending {
		// An error means that the channel is closed, which the wait for confirms notices.
		s.confirmation, _ = o.PublishWithDeferredConfirm(s.Exchange, s.RoutingKey, mandatory, immediate,
			amqp.Publishing{Headers: frame.Headers(s.Properties), Body: s.Body})
		close(s.onItsWay)
	}
}

// confirm takes the publish that the broker has answered, counts the outcome, and reports whether the message is in a queue.
func (o *publisher) confirm(ctx context.Context, ok bool) (s *sent, confirmed bool, err error) {
	if !ok {
		s, reason := o.oversized(ctx)
		if s == nil {
			return nil, false, o.unpublished(reason)
		}
		o.tooLarge(s.Publishing, s.what)
		o.proceed()
		return s, false, nil
	}
	if len(o.outstanding) == 0 {
		return nil, false, errors.New("the broker confirmed a message that was not published")
	}
	for len(o.Returns) > 0 { // a return comes before its confirm
		o.noteReturn(<-o.Returns)
	}
	s = o.pop()
	<-s.onItsWay
	o.accepted = max(o.accepted, len(s.Body))
	o.proceed()
	switch {
	case s.confirmation == nil || !s.confirmation.Acked():
		o.result.Refused++
	case s.returned:
		o.result.Returned++
	default:
		o.result.Confirmed++
		confirmed = true
	}
	o.done(s.Publishing, confirmed)
	return s, confirmed, nil
}

// tooLarge counts a message that is too large for the broker.
func (o *publisher) tooLarge(p failed.Publishing, what selected) {
	o.result.Oversized = append(o.result.Oversized, Oversized{
		Size: len(p.Body), Max: o.max, Line: p.Line, ID: what.id, MessageID: strings.Clone(what.messageID), Position: what.position,
	})
	o.done(p, false)
}

// pop takes the oldest publish.
func (o *publisher) pop() *sent {
	s := o.outstanding[0]
	o.outstanding[0] = nil // otherwise the body would stay in memory
	o.outstanding = o.outstanding[1:]
	o.flying--
	o.bytes -= size(s.Publishing)
	return s
}

// noteReturn marks the returned publish. Identical publishes have the same fate. If the return matches no publish, it marks
// all, since any of them can be the returned one and must not count as confirmed.
func (o *publisher) noteReturn(r amqp.Return) {
	back := sent{Publishing: failed.Publishing{
		Exchange: r.Exchange, RoutingKey: r.RoutingKey, Properties: o.conn.Properties(r.Headers), Body: r.Body,
	}}
	id := back.identity()
	known := slices.ContainsFunc(o.outstanding, func(s *sent) bool { return s.identity() == id })
	for _, s := range o.outstanding {
		s.returned = s.returned || !known || s.identity() == id
	}
}

// close ends the publisher. Nothing may be published afterwards.
func (o *publisher) close() {
	close(o.sending)
	amqpconn.HangUp(o.conn.Connection)
}

// unpublished explains why the broker closed the channel. For a file it names the first line without an answer.
func (o *publisher) unpublished(reason error) error {
	name, unanswered := "", ""
	if len(o.outstanding) > 0 {
		name = o.outstanding[0].Exchange
		if line := o.outstanding[0].Line; line > 0 {
			unanswered = fmt.Sprintf(", without an answer to line %d", line)
		}
	}
	answers := o.result.Confirmed + o.result.Returned + o.result.Refused
	if answers == 0 && (amqpconn.IsCode(reason, amqp.AccessRefused) || amqpconn.IsCode(reason, amqp.NotFound)) {
		o.outstanding, o.flying = nil, 0 // no message can have arrived
	}
	switch {
	case amqpconn.IsCode(reason, amqp.AccessRefused):
		return fmt.Errorf("this user cannot publish; needs: write on %q (%w)", cmp.Or(name, "amq.default"), reason)
	case amqpconn.IsCode(reason, amqp.NotFound):
		return fmt.Errorf("exchange %q does not exist: run terraform apply (%w)", name, reason)
	default:
		return fmt.Errorf("publish: %w%s", reason, unanswered)
	}
}

// uncertain counts the publishes that were sent and have no answer as uncertain.
func (o *publisher) uncertain(err error) error {
	o.result.Uncertain += o.flying
	o.outstanding, o.flying, o.bytes = nil, 0, 0
	return err
}

// modest is a size in bytes. Up to this size, a body is sent together with others although the broker has not accepted such a
// body yet. Waiting for each answer takes time, and hardly any broker has a lower limit.
const modest = 128 << 10

// Oversized is a message whose body is larger than the broker's max_message_size. It stays in the queue.
type Oversized struct {
	// Size is the body's size and Max the broker's max_message_size, in bytes.
	Size, Max int
	// Line is the message's line in a file, 0 if it comes from a queue.
	Line int
	// ID, MessageID and Position describe a message of a queue. Position counts from 1, in the order of reading.
	ID, MessageID string
	Position      int
}

// untried reports whether the broker has accepted no body as large as this one yet. Such a message is sent alone: if it
// exceeds max_message_size, the broker closes the channel and does not answer earlier publishes. The broker does not tell the
// limit in advance.
func (o *publisher) untried(s *sent) bool { return len(s.Body) > max(modest, o.accepted) }

// proceed sends the publishes that can be sent now.
func (o *publisher) proceed() {
	for o.flying < len(o.outstanding) {
		next := o.outstanding[o.flying]
		if o.flying > 0 && (o.untried(next) || o.untried(o.outstanding[0])) {
			return
		}
		o.flying++
		o.sending <- next // has room for the whole window
	}
}

// oversized takes the publish that was too large, so that the broker closed the channel, and opens a new channel. If there
// was another reason, or it is not clear which publish was too large, it returns nil and the error that closed the channel.
func (o *publisher) oversized(ctx context.Context) (*sent, error) {
	reason := <-o.Closed
	if reason == nil {
		return nil, closedError(nil)
	}
	found := tooLarge.FindStringSubmatch(reason.Reason)
	if found == nil || o.flying != 1 {
		return nil, reason
	}
	limit, err := strconv.Atoi(found[1])
	if err != nil || len(o.outstanding[0].Body) <= limit {
		return nil, reason
	}
	<-o.outstanding[0].onItsWay
	if err := o.open(ctx); err != nil {
		return nil, errors.Join(reason, err)
	}
	o.max = limit
	return o.pop(), nil
}

// tooLarge matches the error that closed the channel, and finds max_message_size in it.
var tooLarge = regexp.MustCompile(`^PRECONDITION_FAILED - message size \d+ is larger than (?:configured )?max size (\d+)$`)
