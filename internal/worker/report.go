package worker

import (
	"log/slog"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/metrics"
)

// lateAfter is how long a broker may take to confirm a message before it counts as held.
const lateAfter = 10 * time.Second

// arrived counts a delivery.
func (s *session) arrived(m *message) {
	s.watch.Received()
	m.diedAt = deadletter.DiedAt(m.delivery.Headers)
	s.oldest = earlier(s.oldest, m.diedAt)
}

// done counts and logs a message that was acknowledged: a line for each that is parked, none for
// those that are sent back, of which there may be thousands a second.
func (s *session) done(m *message) {
	v := m.sent
	switch v.Action {
	case deadletter.Fail:
		s.watch.Failed(v.Reason)
		s.log.Info("message parked in the failed queue", s.details(m, slog.String("reason", v.Reason))...)
		return
	case deadletter.Rescue:
		s.watch.Rescued()
	case deadletter.Retry:
		s.watch.Retried(v.Delay)
	}
	if s.verbose { // or the line would be put together in vain
		s.log.Debug("message sent back", s.details(m, slog.Duration("delay", v.Delay))...)
	}
}

// leftToBroker counts and logs a message that was rejected.
func (s *session) leftToBroker(m *message, reason error) {
	s.watch.Failed(deadletter.ReasonMalformed)
	s.log.Info("message left to the broker, which moves it to the failed queue as it is",
		s.details(m, slog.Any("reason", reason))...)
}

// details tells which message a line is about: never its body, and of its headers only the one that
// leads to its trace. What a publisher wrote there is quoted by the handler.
func (s *session) details(m *message, first slog.Attr) []any {
	attributes := []any{
		first, "queue", m.verdict.Letter.Queue, "attempts", m.verdict.Letter.Count, "message_id", m.delivery.MessageId,
	}
	if parent := traceparent(m.delivery.Headers); parent != "" {
		attributes = append(attributes, "traceparent", parent)
	}
	return attributes
}

// report tells once a second what the session is busy with.
func (s *session) report() {
	r := metrics.Report{InFlight: s.inFlight, Blocked: s.blocked, Oldest: s.oldest}
	s.oldest = time.Time{}
	now := time.Now()
	look := func(messages []*message, held func(*message) bool) {
		for _, m := range messages {
			r.Oldest = earlier(r.Oldest, m.diedAt)
			if m.holds > 0 || held(m) {
				r.Held++
			}
		}
	}
	look(s.held, func(*message) bool { return true })
	for _, p := range s.publishers() {
		look(p.outstanding, func(m *message) bool { return p.told || s.unanswered(m, now) })
		look(p.waiting, func(*message) bool { return p.told })
	}
	s.watch.Report(r)
}

// unanswered tells whether the broker takes too long to confirm a message. What waits for an alarm to
// clear is not late.
func (s *session) unanswered(m *message, now time.Time) bool {
	return !s.blocked && unblockedSince(m.publishedAt, s.unblockedAt, now) > lateAfter
}

// earlier ignores times that are not known.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
