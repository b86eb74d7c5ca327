package worker

import (
	"fmt"
	"time"
)

const (
	// nackTimeout is how long the broker may refuse everything before the session is renewed.
	nackTimeout = 5 * time.Second
	// confirmTimeout is longer than the 65 s after which a broker gives up on a queue that has no
	// majority of its members online, so that its nack comes first.
	confirmTimeout = 75 * time.Second
)

// stalled is an error when the session has to be renewed.
func (s *session) stalled(now time.Time) error {
	if s.blocked {
		return s.inboxLost() // nobody looks at the deliveries meanwhile
	}
	if s.inFlight > 0 && now.Sub(s.ramp.receivedAt) > rampSlow {
		s.ramp.slow = true
	}
	s.avoidRefusing(now)
	if err := s.avoidSilent(now); err != nil {
		return err
	}
	for _, p := range s.publishers() {
		if err := p.stalled(now, s.unblockedAt); err != nil {
			return err
		}
	}
	return nil
}

// stalled is an error when the broker neither takes messages nor says so. A session has to be
// renewed then: a channel that met the election of a queue's leader may go on refusing for as long
// as the old leader's node is down, when a new one is served at once.
func (p *publisher) stalled(now, unblockedAt time.Time) error {
	if !p.nackedSince.IsZero() && unblockedSince(p.nackedSince, unblockedAt, now) > nackTimeout {
		return fmt.Errorf("the broker has refused every message for %s", nackTimeout)
	}
	if len(p.outstanding) > 0 && unblockedSince(p.outstanding[0].publishedAt, unblockedAt, now) > confirmTimeout {
		return fmt.Errorf("the broker has not confirmed a message for %s", confirmTimeout)
	}
	return nil
}

// unblockedSince is how long ago something was, without the time until the broker stopped blocking.
func unblockedSince(then, unblockedAt, now time.Time) time.Duration {
	if then.Before(unblockedAt) {
		then = unblockedAt
	}
	return now.Sub(then)
}

// refused notes that the broker did not take a message that has to go where it was going.
func (p *publisher) refused(now time.Time) {
	if p.nackedSince.IsZero() {
		p.nackedSince = now
	}
}
