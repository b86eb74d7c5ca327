package worker

import (
	"fmt"
	"slices"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
)

const (
	// detourAfter is how long a delay's queue may leave a message unanswered while the broker takes
	// later ones. Electing a leader takes less.
	detourAfter = 15 * time.Second
	// probePeriod passes between two messages that try a delay whose queue did not answer.
	probePeriod = 2 * time.Minute
)

// detours are the delays whose queues take nothing, each with the time when a message may try it again.
// A quorum queue without a majority of its members, or without any, refuses messages or leaves them
// unanswered for a minute and more. What waits for it occupies the window, and would hold up all other
// delays.
type detours map[time.Duration]time.Time

// avoids tells whether a message should not take the delay now.
func (d detours) avoids(delay time.Duration, now time.Time) bool {
	next, shut := d[delay]
	if shut && now.After(next) {
		d[delay] = now.Add(probePeriod)
		return false
	}
	return shut
}

// detour takes another delay in place of one whose queue takes nothing, as for one that is not bound. If
// no other is left but to return at once, the message waits for its own.
func (s *session) detour(v deadletter.Verdict, now time.Time) deadletter.Verdict {
	if len(s.detours) == 0 || v.Action != deadletter.Retry || v.Delay == 0 {
		return v
	}
	other := v
	for s.detours.avoids(other.Delay, now) {
		next, ok := s.pipeline.Returned(other)
		if !ok || next.Action != deadletter.Retry || next.Delay == 0 {
			return v
		}
		other = next
	}
	return other
}

// avoidRefusing begins detours around the queues that have refused everything for too long. The next
// message still tries: if the session ends over it, too, its successor's channel may be served at once.
func (s *session) avoidRefusing(now time.Time) {
	for delay, since := range s.refusedSince {
		if unblockedSince(since, s.unblockedAt, now) > nackTimeout {
			s.avoid(delay, now)
		}
	}
}

// avoidSilent begins detours around the queues that have not answered for too long while the broker took
// later messages. The session has to be renewed then: the library holds back the confirms of what
// follows an unanswered message, and what waits fills the window. If nothing is answered, the first
// message may be what the channel hangs at.
func (s *session) avoidSilent(now time.Time) error {
	silent, takenLater := false, false
	for i, m := range slices.Backward(s.retry.outstanding) {
		waits := unblockedSince(m.publishedAt, s.unblockedAt, now)
		switch {
		case m.publishTag == 0: // the channel is closed
		case m.taken():
			takenLater = true
		case takenLater && waits > detourAfter:
			silent = true
			s.avoid(m.sent.Delay, now.Add(probePeriod))
		case i == 0 && waits > confirmTimeout:
			s.avoid(m.sent.Delay, now.Add(probePeriod))
		}
	}
	if silent {
		return fmt.Errorf("the queue of a delay has not answered for %s", detourAfter)
	}
	return nil
}

// avoid begins a detour. The next message tries the delay again after the given time.
func (s *session) avoid(delay time.Duration, next time.Time) {
	if _, shut := s.detours[delay]; shut {
		return
	}
	s.detours[delay] = next
	s.log.Warn("messages take another delay: the queue of this one takes none. Has it a leader, and members on nodes that run?",
		"delay", delay, "queue", s.pipeline.Names.RetryQueue(delay))
}

// refused notes that the queue of a delay refused a message.
func (s *session) refused(v deadletter.Verdict, now time.Time) {
	if _, noted := s.refusedSince[v.Delay]; !noted && v.Action == deadletter.Retry {
		s.refusedSince[v.Delay] = now
	}
}

// taken notes that a message was taken. If that ends a detour, all others end with it: after an outage
// of the whole broker, nothing should take a much shorter delay than its own for longer than need be.
func (s *session) taken(v deadletter.Verdict) {
	if v.Action != deadletter.Retry {
		return
	}
	delete(s.refusedSince, v.Delay)
	if _, shut := s.detours[v.Delay]; shut {
		clear(s.detours)
		s.log.Info("the queue of a delay takes messages again", "delay", v.Delay, "queue", s.pipeline.Names.RetryQueue(v.Delay))
	}
}
