package session

import (
	"errors"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/metrics"
)

const (
	// lastConfirms is how long a session that ends waits for confirms that are on their way.
	lastConfirms = 1500 * time.Millisecond
	// ackGrace gives the broker time to pass the last acknowledgements on to the inbox. When a channel closes, the
	// broker drops acknowledgements for a quorum queue that the channel still holds. It then delivers their messages
	// again.
	ackGrace = 500 * time.Millisecond
)

// settleLast acknowledges the messages that the broker confirms just before an error or the deadline ends the session.
// The next session would otherwise publish them once more. Nacked and returned messages are left to the next session.
func (s *Session) settleLast() {
	s.watch.Enter(metrics.Connected)
	deadline := time.After(time.Until(earlier(time.Now().Add(lastConfirms), s.drainedBy)))
	for done := false; !done && s.lanes.outstanding() > 0; {
		select {
		case a := <-s.lanes.answers:
			done = s.settleOne(a)
		case <-s.ended: // no acknowledgement is possible now
			done = true
		case <-deadline:
			done = true
		}
	}
	for _, l := range s.lanes.all {
		if s.settleAccepted(l) != nil {
			break
		}
	}
	if !s.inbox.channel.IsClosed() {
		time.Sleep(ackGrace)
	}
}

// settleOne reports whether no other message can be settled, because the inbox's channel is closed.
func (s *Session) settleOne(a answer) (done bool) {
	l := a.lane
	if a.late() {
		return false
	}
	if !a.ok {
		err := s.settleAccepted(l)
		l.outstanding = nil
		return err != nil
	}
	m := l.confirm(a.DeliveryTag)
	return m != nil && m.accepted() && !l.settled(m) && s.finish(m) != nil
}

// settleAccepted acknowledges messages that the broker has accepted but the library has not reported. After that,
// messages can no longer be settled in order.
func (s *Session) settleAccepted(l *lane) error {
	accepted := l.takeAccepted()
	for i, m := range accepted {
		if l.returned.take(m.sent.id) {
			l.outstanding = append(l.outstanding, m)
			continue
		}
		if err := s.finish(m); err != nil {
			l.outstanding = append(l.outstanding, accepted[i:]...)
			return err
		}
	}
	return nil
}

// DefaultAckPatience is how long a stopping session waits for acknowledgements that are still on their way.
const DefaultAckPatience = 5 * time.Second

// cancel ends the consumers.
func (s *Session) cancel() {
	channel, tags, own := s.inbox.channel, []string{firstTag, s.inbox.restTag()}, 1
	if s.inbox.others != nil {
		own = 2
	}
	go func() {
		s.acked <- amqpconn.AwaitAcks(own, s.consumers, func() { cancelAll(channel, tags) })
	}()
}

// awaitAcks waits until the inbox has the acknowledgements of all deliveries.
func (s *Session) awaitAcks() {
	if s.inbox.inFlight > 0 || !s.inbox.cancelled() {
		return // those consumers stay
	}
	err := errors.New("the inbox counts more consumers than before: " +
		"acknowledgements are late, or another worker has just connected")
	select {
	case err = <-s.acked:
	case <-time.After(time.Until(earlier(time.Now().Add(s.AckPatience), s.drainedBy))):
	}
	if err != nil {
		s.Log.Info("the inbox possibly lacks the last acknowledgements: the broker can deliver their messages again", "reason", err)
	}
}

// Log texts about messages that are not retried or delayed.
const (
	messageParked       = "message parked in the failed queue"
	messageUnrouted     = "message put into the unrouted queue"
	messageLeft         = "message left to the broker, which moves it unchanged to the failed queue"
	messageLeftUnrouted = "message left to the broker, which moves it unchanged to the unrouted queue"
)

// Log texts about messages that are kept unacknowledged until they can be published.
const (
	deferredUnbound = "publish deferred, message kept unacknowledged: " +
		"the exchange has no queue; run terraform apply"
	deferredMissingLast = "publish deferred, messages kept unacknowledged: " +
		"the failed or unrouted exchange, or its queue, is missing; run terraform apply"
	deferredMissing = "publish deferred, messages kept unacknowledged: " +
		"the exchange is missing; run terraform apply"
	deferredForbidden = "publish deferred, messages kept unacknowledged: " +
		"this user cannot write to the exchange; grant it the permission"
	deferredRefused = "publish deferred, message kept unacknowledged: " +
		"the broker refused it"
	deferredFull = "publish deferred, messages kept unacknowledged: " +
		"the broker refuses them; is the queue full, or without a majority of its members?"
	deferredNoDelay = "publish deferred, messages kept unacknowledged: " +
		"no delay of the configuration is bound to the retry exchange; run terraform apply, or give the worker the applied configuration"
	parkedNoDelay = "messages are parked, or sent back at once by a delay of 0s: " +
		"still no delay of the configuration is bound to the retry exchange; run terraform apply"
	setAside = "messages go to the refused queue, which delivers them later: a queue behind the exchange refuses them, " +
		"or does not answer. Is it full, or without a majority of its members?"
	unroutedAlone = "messages bypass a queue beside the unrouted queue, which refuses them, or does not answer. " +
		"Is it full, or without a majority of its members?"
	detourMissing = "failed messages go to the pipeline's failed queue: " +
		"the exchange of the work queues' own failed queues is missing; run terraform apply"
	detourForbidden = "failed messages go to the pipeline's failed queue: " +
		"this user cannot write to the exchange of the work queues' own failed queues; grant it the permission"
	// unreadableAfter points to a consumer with a mistake.
	unreadableAfter = "the retry-after-ms or retry-after of a message cannot be read: the message waits as long as the schedule says"
	// parkedForbidden is about messages that need not wait.
	parkedForbidden = "messages whose work queue has lost its binding are parked: " +
		"this user cannot write to amq.default; grant it the permission"
)

// detourText says why failed messages take a detour.
var detourText = map[deadletter.Detour]string{
	deadletter.DetourMissing: detourMissing, deadletter.DetourForbidden: detourForbidden,
}
