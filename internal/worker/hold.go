package worker

import (
	"slices"
	"time"
)

// heldMessages are messages whose publish did not succeed, the next one to try first.
type heldMessages []*message

// hold keeps a message for a moment.
func (h *heldMessages) hold(m *message, now time.Time) {
	m.heldUntil = now.Add(pause(m.holds))
	m.holds++
	at, _ := slices.BinarySearchFunc(*h, m, func(a, b *message) int { return a.heldUntil.Compare(b.heldUntil) })
	*h = slices.Insert(*h, at, m)
}

// due takes the next message whose moment is over, nil if there is none.
func (h *heldMessages) due(now time.Time) *message {
	if len(*h) == 0 || (*h)[0].heldUntil.After(now) {
		return nil
	}
	m := (*h)[0]
	*h = slices.Delete(*h, 0, 1)
	return m
}

// pause is a moment that doubles each time, from 100 ms to 2 s.
func pause(times int) time.Duration {
	const shortest, longest = 100 * time.Millisecond, 2 * time.Second
	if times < 5 {
		return shortest << times
	}
	return longest
}

// hold keeps a message, unacknowledged, to publish it again a little later.
func (s *session) hold(m *message) {
	s.ramp.slow = true
	now := time.Now()
	s.held.hold(m, now)
	s.heldTimer.Reset(s.held[0].heldUntil.Sub(now))
}

// publishHeld publishes the messages that were held for long enough.
func (s *session) publishHeld() error {
	if s.blocked {
		return nil
	}
	now := time.Now()
	for m := s.held.due(now); m != nil; m = s.held.due(now) {
		s.rejudged(m)
		if err := s.publish(m); err != nil {
			return err
		}
	}
	if len(s.held) > 0 {
		s.heldTimer.Reset(s.held[0].heldUntil.Sub(now))
	}
	return nil
}
