package session

import (
	"regexp"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/metrics"
)

// lateAfter is how long a broker may take to confirm a message before it counts as kept.
const lateAfter = 10 * time.Second

// arrived counts a delivery.
func (s *Session) arrived(m *message) {
	s.watch.Received()
	m.diedAt = s.Flow.diedAt(&m.delivery)
	s.oldest = earlier(s.oldest, m.diedAt)
}

// details tells which message a line is about: never its body, and of its headers only the one that
// leads to its trace. What a publisher wrote there is quoted by the handler.
func details(m *message, attributes ...any) []any {
	attributes = append(attributes, "message_id", m.delivery.MessageId)
	if parent := traceparent(m.delivery.Headers); parent != "" {
		attributes = append(attributes, "traceparent", parent)
	}
	return attributes
}

// report tells once a second what the session is busy with.
func (s *Session) report() {
	r := metrics.Report{InFlight: s.intake.inFlight, Blocked: s.alarm.active, Oldest: s.oldest}
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
	for _, p := range s.publishers.all {
		count(p.outstanding, func(m *message) bool { return p.warned || s.unanswered(m, now) })
		count(p.waiting, func(*message) bool { return p.warned })
	}
	s.watch.Report(r)
}

// unanswered reports whether the broker takes too long to confirm a message. What waits for an alarm to
// clear is not late.
func (s *Session) unanswered(m *message, now time.Time) bool {
	return !s.alarm.active && s.alarm.waited(m.publishedAt, now) > lateAfter
}

// earlier ignores times that are not known.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// traceContext is version 00 of W3C Trace Context. Whatever else stands in the header may be anything,
// of any length, and is not for the log.
var traceContext = regexp.MustCompile(`^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`)

// traceparent is the trace that the message belongs to, "" if it does not say.
func traceparent(h amqp.Table) string {
	parent, _ := h["traceparent"].(string)
	if !traceContext.MatchString(parent) {
		return ""
	}
	return parent
}
