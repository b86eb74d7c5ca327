package session

import (
	"cmp"
	"fmt"
	"regexp"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn/frame"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/metrics"
)

// receive takes a delivery from a consumer of the inbox and publishes it to where it belongs.
func (s *Session) receive(consumer *<-chan amqp.Delivery, d amqp.Delivery, ok bool) error {
	if !ok {
		*consumer = nil
		return s.deliveriesEnded(consumer)
	}
	s.inbox.received(d, time.Now())
	s.watch.Received()
	m := &message{delivery: d, undecodable: frame.Undecodable(d.Headers), unreadable: frame.HasUnreadableDeath(d.Headers)}
	m.diedAt = deadletter.DiedAt(m.delivery.Headers)
	s.oldest = earlier(s.oldest, m.diedAt)
	m.verdict = s.judge(m)
	return s.publish(m)
}

// deliveriesEnded returns an error unless the session expects the end of the deliveries.
func (s *Session) deliveriesEnded(consumer *<-chan amqp.Delivery) error {
	if err := s.inbox.lost(); err != nil {
		return err
	}
	if s.inbox.narrowing && consumer == &s.inbox.others {
		s.narrowed()
		return nil
	}
	if s.draining {
		return nil
	}
	cause := "the queue or its node is gone"
	if s.inbox.inFlight > 0 {
		cause += ", or a message was unacknowledged for longer than consumer_timeout"
	}
	return fmt.Errorf("the broker cancelled the consumer of %s: %s", s.inbox.queue, cause)
}

// publish sends a message to where its verdict says, as soon as that is possible.
func (s *Session) publish(m *message) error {
	if m.undecodable != nil {
		return s.reject(m, m.undecodable)
	}
	if s.alarm.active { // a write could block the loop
		s.keep(m)
		return nil
	}
	var kept bool
	now := time.Now()
	m.route, kept = m.verdict.aim(m, s.alarm, now)
	if kept {
		s.keep(m)
		return nil
	}
	l := s.lane(m.route)
	switch {
	case l.obstructed(now):
		s.keep(m)
	case l.channelState == forbidden:
		return s.proceed(l, m, m.verdict.returned(m))
	case !l.ready(m, now) || len(l.waiting) > 0:
		l.waiting = append(l.waiting, m)
	default:
		return s.send(l, m)
	}
	return nil
}

func (s *Session) send(l *lane, m *message) error {
	m.sent.id = s.ids.next()
	stamp := deadletter.Stamp{Now: time.Now(), PublishID: m.sent.id, FrameMax: s.publishing.Config.FrameSize}
	var publishing amqp.Publishing
	var err error
	panicked := s.survive(m, func() { publishing, err = m.verdict.build(&m.delivery, stamp) })
	if panicked == nil && err == nil {
		return l.publish(m, publishing)
	}
	l.isolation.answered()
	if panicked != nil && m.verdict.unbuilt() {
		return s.publish(m)
	}
	return s.reject(m, cmp.Or(panicked, err))
}

// finish acknowledges a message that the broker has accepted.
func (s *Session) finish(m *message) error {
	if err := s.inbox.acknowledge(m.delivery); err != nil {
		return err
	}
	m.verdict.accepted(m, s.verbose)
	return nil
}

// closedError says why a channel closed.
func closedError(what string, reason *amqp.Error) error {
	if reason == nil {
		return fmt.Errorf("the channel for %s closed: %w", what, amqp.ErrClosed)
	}
	return fmt.Errorf("the broker closed the channel for %s: %w", what, reason)
}

// lateAfter is how long the broker can take to confirm a message before the message counts in the backlog.
const lateAfter = 10 * time.Second

// details returns log attributes that identify a message. They never contain its body. Of its headers, they contain
// only the traceparent, and the log handler quotes a publisher's text.
func details(d *amqp.Delivery, attributes ...any) []any {
	attributes = append(attributes, "message_id", d.MessageId)
	if parent := traceparent(d.Headers); parent != "" {
		attributes = append(attributes, "traceparent", parent)
	}
	return attributes
}

// report tells the metrics once a second how busy the session is.
func (s *Session) report() {
	r := metrics.Report{InFlight: s.inbox.inFlight, Blocked: s.alarm.active, Oldest: s.oldest}
	s.oldest = time.Time{}
	now := time.Now()
	count := func(messages []*message, kept func(*message) bool) {
		for _, m := range messages {
			r.Oldest = earlier(r.Oldest, m.diedAt)
			if m.deferrals > 0 || kept(m) {
				r.Backlog++
			}
		}
	}
	count(s.backlog.messages, func(*message) bool { return true })
	for _, l := range s.lanes.all {
		count(l.outstanding, func(m *message) bool { return s.lanes.shut[l.exchange] || s.unanswered(m, now) })
		count(l.waiting, func(*message) bool { return s.lanes.shut[l.exchange] })
	}
	s.watch.Report(r)
}

// unanswered reports whether the broker takes too long to confirm a message. A message that waits for an alarm to clear
// is not late.
func (s *Session) unanswered(m *message, now time.Time) bool {
	return !s.alarm.active && s.alarm.waited(m.sent.at, now) > lateAfter
}

// earlier returns the earlier of two times, and ignores a zero time.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// traceContext matches version 00 of W3C Trace Context. Anything else in the header can have any length, and must not
// get into the log.
var traceContext = regexp.MustCompile(`^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`)

// traceparent returns the message's trace context, or "" if its header is missing or invalid.
func traceparent(h amqp.Table) string {
	parent, _ := h["traceparent"].(string)
	return traceContext.FindString(parent)
}
