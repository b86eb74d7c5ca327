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
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn/raw"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
)

const (
	// Window is how many publishes wait for a confirm at most.
	Window = 500
	// MayDouble is how many messages are doubled at most when the process or the connection dies: those whose
	// acknowledgements were on their way.
	MayDouble = defaultPrefetch + Window
	// windowBytes bounds them, too, since their bodies stay in memory.
	windowBytes = 64 << 20
)

func size(p failed.Publishing) int { return len(p.Properties) + len(p.Body) }

// identity tells publications apart as the broker returns them, which may sort headers. It is asked for only when messages are
// returned: it takes longer than all else.
func (s *sent) identity() string {
	if s.id == "" {
		s.id = failed.Digest(failed.Message{Exchange: s.Exchange, RoutingKey: s.RoutingKey, Properties: s.Properties, Body: s.Body})
	}
	return s.id
}

// Outcome is the broker's answer to a publish.
type Outcome int

const (
	// Confirmed is in a queue.
	Confirmed Outcome = iota
	// Returned found no queue.
	Returned
	// Refused was nacked: the queue is full, or has no leader.
	Refused
	// TooLarge has a body larger than the broker takes.
	TooLarge
)

// sent is a publish without a confirm. Its confirmation is there once it is on its way.
type sent struct {
	failed.Publishing
	// what is acknowledged then; nothing of what comes from no queue.
	what         selected
	id           string
	onItsWay     chan struct{}
	confirmation *amqp.DeferredConfirmation
	returned     bool
}

// publisher publishes. It has a connection of its own: during an alarm, the broker stops reading from it.
type publisher struct {
	// result counts the outcomes, done is told each; nil for nobody.
	result *Result
	done   func(p failed.Publishing, o Outcome)

	amqpconn.Confirming
	conn     amqpconn.Raw
	confirms chan amqp.Confirmation
	alarms   chan amqp.Blocking
	// blocked is why the broker accepts no messages.
	blocked string

	// outstanding are in the order of publishing, which is that of confirms. The first ones are flying: sent.
	outstanding []*sent
	flying      int
	bytes       int
	// accepted is the largest body that the broker has answered to, max its max_message_size, 0 if that is not known.
	accepted, max int
	// sending goes to a goroutine of its own, since a broker that does not read blocks who writes.
	sending chan *sent
}

func openPublisher(ctx context.Context, queue Queue, result *Result, done func(failed.Publishing, Outcome)) (*publisher, error) {
	conn, err := queue.Open(ctx, "publish")
	if err != nil {
		return nil, err
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

// open opens a channel. Nothing may be on its way to the one before.
func (o *publisher) open(ctx context.Context) error {
	channel, err := amqpconn.OpenConfirming(ctx, o.conn.Connection, Window)
	if err != nil {
		return err
	}
	o.Confirming, o.confirms = channel, channel.NotifyPublish(make(chan amqp.Confirmation, Window))
	return nil
}

// full says that no more may be published now.
func (o *publisher) full() bool {
	return o.blocked != "" || len(o.outstanding) >= Window || o.bytes > windowBytes || o.flying < len(o.outstanding)
}

// alarm notes whether the broker accepts messages.
func (o *publisher) alarm(b amqp.Blocking, ok bool) {
	if !ok {
		o.alarms = nil // the confirms are closed, too, and say why
		return
	}
	o.blocked = b.Reason
}

// publish is false if it is known that the broker does not take the message.
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
		// An error says that the channel is closed, which is noticed where confirms are awaited.
		s.confirmation, _ = o.PublishWithDeferredConfirm(s.Exchange, s.RoutingKey, mandatory, immediate,
			amqp.Publishing{Headers: raw.Headers(s.Properties), Body: s.Body})
		close(s.onItsWay)
	}
}

// confirm takes the message that the broker's answer is for, and counts it.
func (o *publisher) confirm(ctx context.Context, ok bool) (*sent, Outcome, error) {
	if !ok {
		s, reason := o.oversized(ctx)
		if s == nil {
			return nil, 0, o.unpublished(reason)
		}
		o.tooLarge(s.Publishing, s.what)
		o.proceed()
		return s, TooLarge, nil
	}
	if len(o.outstanding) == 0 {
		return nil, 0, errors.New("the broker has confirmed what was not published")
	}
	for len(o.Returns) > 0 { // a return comes before its confirm
		o.noteReturn(<-o.Returns)
	}
	s := o.pop()
	<-s.onItsWay
	o.accepted = max(o.accepted, len(s.Body))
	o.proceed()
	outcome, n := Confirmed, &o.result.Confirmed
	switch {
	case s.confirmation == nil || !s.confirmation.Acked():
		outcome, n = Refused, &o.result.Refused
	case s.returned:
		outcome, n = Returned, &o.result.Returned
	}
	*n++
	o.tell(s.Publishing, outcome)
	return s, outcome, nil
}

// tooLarge notes a message that the broker does not take.
func (o *publisher) tooLarge(p failed.Publishing, what selected) {
	o.result.Oversized = append(o.result.Oversized, Oversized{
		Size: len(p.Body), Max: o.max, Line: p.Line, ID: what.id, MessageID: strings.Clone(what.messageID), Position: what.position,
	})
	o.tell(p, TooLarge)
}

func (o *publisher) tell(p failed.Publishing, outcome Outcome) {
	if o.done != nil {
		o.done(p, outcome)
	}
}

// pop takes the first one.
func (o *publisher) pop() *sent {
	s := o.outstanding[0]
	o.outstanding[0] = nil // or the body would stay in memory
	o.outstanding = o.outstanding[1:]
	o.flying--
	o.bytes -= size(s.Publishing)
	return s
}

// noteReturn finds whose a return is. An identical message has the same fate. One that is like none may be any,
// and none may be taken for kept.
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

// close may be called once nothing more is published.
func (o *publisher) close() {
	close(o.sending)
	amqpconn.HangUp(o.conn.Connection)
}

// unpublished explains why the broker has closed the channel. It says from which line of a file on nothing is known.
func (o *publisher) unpublished(reason error) error {
	o.forgetUnsent()
	name, unanswered := "", ""
	if len(o.outstanding) > 0 {
		name = o.outstanding[0].Exchange
		if line := o.outstanding[0].Line; line > 0 {
			unanswered = fmt.Sprintf(", without an answer to line %d", line)
		}
	}
	answers := o.result.Confirmed + o.result.Returned + o.result.Refused
	if answers == 0 && (isCode(reason, amqp.AccessRefused) || isCode(reason, amqp.NotFound)) {
		o.outstanding, o.flying = nil, 0 // nothing can have arrived
	}
	switch {
	case isCode(reason, amqp.AccessRefused):
		return fmt.Errorf("this user may not publish; needs: write on %q (%w)", cmp.Or(name, "amq.default"), reason)
	case isCode(reason, amqp.NotFound):
		return fmt.Errorf("exchange %q does not exist: run terraform apply (%w)", name, reason)
	default:
		return fmt.Errorf("publish: %w%s", reason, unanswered)
	}
}

// forgetUnsent leaves what may have arrived.
func (o *publisher) forgetUnsent() {
	for _, s := range o.outstanding[o.flying:] {
		o.bytes -= size(s.Publishing)
	}
	o.outstanding = o.outstanding[:o.flying]
}

// uncertain gives up what has no answer.
func (o *publisher) uncertain(err error) error {
	o.forgetUnsent()
	o.result.Uncertain += len(o.outstanding)
	o.outstanding, o.flying, o.bytes = nil, 0, 0
	return err
}

// modest is how large a body may be that is published among others, whatever the broker has taken so far: hardly a broker is
// set to take less, and to wait for each answer takes time.
const modest = 128 << 10

// Oversized is a message that the broker does not take, since its body is larger than max_message_size. It stays.
type Oversized struct {
	// Size is that of its body, Max the broker's.
	Size, Max int
	// Line is where it stands in a file, 0 if it comes from a queue.
	Line int
	// ID and MessageID are those of a message of a queue, and Position is how many were looked at before, and it.
	ID, MessageID string
	Position      int
}

// untried says that no body as large as this one was accepted yet. The broker closes the channel over one that is larger than
// its max_message_size, which it tells nobody before, and takes its answers to those before with it: so it goes alone.
func (o *publisher) untried(s *sent) bool { return len(s.Body) > max(modest, o.accepted) }

// proceed sends what may be sent now.
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

// oversized takes the message over whose size the broker has closed the channel, and opens another one. It is nil, and the
// error is why the channel is closed, if that has another reason, or it is unknown over which message.
func (o *publisher) oversized(ctx context.Context) (*sent, error) {
	reason := closedError(nil)
	if closed := <-o.Closed; closed != nil {
		reason = closed
	}
	limit, ok := maxMessageSize(reason)
	if !ok || o.flying != 1 || len(o.outstanding[0].Body) <= limit {
		return nil, reason
	}
	<-o.outstanding[0].onItsWay
	if err := o.open(ctx); err != nil {
		return nil, errors.Join(reason, err)
	}
	o.max = limit
	return o.pop(), nil
}

// maxMessageSize reads it from the reason for which a broker has closed the channel, such as "message size 16777217 is larger
// than configured max size 16777216".
func maxMessageSize(reason error) (int, bool) {
	var closed *amqp.Error
	if !errors.As(reason, &closed) || closed.Code != amqp.PreconditionFailed {
		return 0, false
	}
	found := tooLarge.FindStringSubmatch(closed.Reason)
	if found == nil {
		return 0, false
	}
	limit, err := strconv.Atoi(found[1])
	return limit, err == nil
}

var tooLarge = regexp.MustCompile(`^PRECONDITION_FAILED - message size \d+ is larger than (?:configured )?max size (\d+)$`)
