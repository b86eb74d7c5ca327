package session

import (
	"errors"
	"slices"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/metrics"
)

const (
	// lastConfirms is how long a session that ends waits for the confirms that are on their way.
	lastConfirms = 1500 * time.Millisecond
	// ackGrace is for the broker to pass the last acknowledgements on to the inbox. It drops those that its
	// channel still holds for a quorum queue when the channel closes, and delivers the messages again.
	ackGrace = 500 * time.Millisecond
)

// settleLast acknowledges what the broker confirms in the moment before a session ends on an error:
// the next session would publish it once more. What was nacked or returned is left to that one.
func (s *Session) settleLast() {
	s.watch.Enter(metrics.Connected)
	deadline := time.After(time.Until(earlier(time.Now().Add(lastConfirms), s.drainedBy)))
	for s.publishers.outstanding() > 0 {
		var done bool
		select {
		case a := <-s.answers:
			done = s.settleOne(a)
		case <-s.ended: // nothing can be acknowledged then
			done = true
		case <-deadline:
			done = true
		}
		if done {
			break
		}
	}
	for _, p := range s.publishers.all {
		if s.settleAccepted(p) != nil {
			break
		}
	}
	if !s.inbox.channel.IsClosed() {
		time.Sleep(ackGrace)
	}
}

// settleOne reports whether nothing else can be settled, because the inbox's channel is closed.
func (s *Session) settleOne(a answer) (done bool) {
	p := a.publisher
	if a.late() {
		return false
	}
	if !a.ok {
		err := s.settleAccepted(p)
		p.outstanding = nil
		return err != nil
	}
	m := p.confirmed(a.DeliveryTag)
	return m != nil && m.accepted() && !p.took(m) && s.finish(m) != nil
}

// settleAccepted acknowledges what the broker is known to keep, although the library has not said so: it
// holds confirms back until all earlier messages have theirs. Nothing can be settled in order after that.
func (s *Session) settleAccepted(p *publisher) error {
	var accepted, rest []*message
	for _, m := range p.outstanding {
		// One that was not published for want of a channel has the confirmation of the time before.
		if m.publishTag != 0 && m.accepted() {
			accepted = append(accepted, m)
		} else {
			rest = append(rest, m)
		}
	}
	p.drainReturns() // now, since a return comes before its confirm
	for i, m := range accepted {
		if p.returned[m.publishID] {
			rest = append(rest, m)
			continue
		}
		if err := s.finish(m); err != nil {
			p.outstanding = slices.Concat(rest, accepted[i:])
			return err
		}
	}
	p.outstanding = rest
	return nil
}

// DefaultAckPatience is how long a session that stops waits for acknowledgements that are on their way still.
const DefaultAckPatience = 5 * time.Second

var errAcksLate = errors.New("the inbox counts more consumers than before: acknowledgements are late, or another worker has just come")

// acks knows whether the inbox has all acknowledgements of a session that stops.
type acks struct {
	// count asks how many consumers there are.
	count func() (int, error)
	// arrived gets the outcome of [amqpconn.AwaitAcks].
	arrived chan error
}

// cancel ends the consumers.
func (s *Session) cancel() {
	channel, tags, own := s.inbox.channel, s.inbox.tags(), s.inbox.consumers()
	go func() {
		s.acks.arrived <- amqpconn.AwaitAcks(own, s.acks.count, func() { cancelAll(channel, tags) })
	}()
}

// awaitAcks waits until the inbox has the acknowledgements of all that was delivered.
func (s *Session) awaitAcks() {
	time.Sleep(ackGrace)
	if s.inbox.inFlight > 0 || !s.inbox.cancelled() {
		return // those consumers stay
	}
	err := errAcksLate
	select {
	case err = <-s.acks.arrived:
	case <-time.After(time.Until(earlier(time.Now().Add(s.AckPatience), s.drainedBy))):
	}
	if err != nil {
		s.Log.Info("the inbox may not have the last acknowledgements: their messages may be delivered again", "reason", err)
	}
}

// What the log says of messages that are kept unacknowledged until they can be published.
const (
	deferredUnbound = "publish deferred, message kept unacknowledged: " +
		"the exchange has no queue; run terraform apply"
	deferredMissingLast = "publish deferred, messages kept unacknowledged: " +
		"the failed or unrouted exchange, or its queue, is missing; run terraform apply"
	deferredMissing = "publish deferred, messages kept unacknowledged: " +
		"the exchange is missing; run terraform apply"
	deferredForbidden = "publish deferred, messages kept unacknowledged: " +
		"this user may not write to the exchange; grant it the permission"
	deferredRefused = "publish deferred, message kept unacknowledged: " +
		"the broker refused it"
	deferredFull = "publish deferred, messages kept unacknowledged: " +
		"the broker refuses them; is the queue full, or without a majority of its members?"
	deferredNoDelay = "publish deferred, messages kept unacknowledged: " +
		"no delay of the configuration is bound to the retry exchange; run terraform apply, or give the worker the configuration that was applied"
	parkedNoDelay = "messages are parked, or sent back at once if the schedule has a delay of 0s: " +
		"still no delay of the configuration is bound to the retry exchange; run terraform apply"
	setAside = "messages go to the refused queue, from where the broker delivers them: a queue behind the exchange refuses them, " +
		"or does not answer; is it full, or without a majority of its members?"
	unroutedAlone = "a queue beside the unrouted queue refuses messages, or does not answer, and is passed over: " +
		"is it full, or without a majority of its members?"
	detourMissing = "failed messages go to the pipeline's failed queue: " +
		"the exchange that leads to those of the work queues is missing; run terraform apply"
	detourForbidden = "failed messages go to the pipeline's failed queue: " +
		"this user may not write to the exchange that leads to those of the work queues; grant it the permission"
	// unreadableAfter leads to a consumer with a mistake.
	unreadableAfter = "the retry-after-ms of a message is not a number of milliseconds, and is ignored: the message waits as the schedule says"
	// parkedForbidden is the one that need not wait.
	parkedForbidden = "messages whose work queue has lost its binding are parked: " +
		"this user may not write to amq.default; grant it the permission"
)

// detourText is by why failed messages take a detour.
var detourText = map[deadletter.Detour]string{
	deadletter.DetourMissing: detourMissing, deadletter.DetourForbidden: detourForbidden,
}
