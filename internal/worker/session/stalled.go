package session

import (
	"errors"
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

// errCrowdedBroker gives back what the broker has sent and nobody reads: it may be what its alarm is about.
var errCrowdedBroker = errors.New("the broker accepts no messages, and has sent more large ones than fit: giving them back")

// stalled is an error when the session has to be renewed.
func (s *Session) stalled(now time.Time) error {
	if s.alarm.active {
		if s.intake.full() {
			return errCrowdedBroker
		}
		return s.intake.lost() // nobody looks at the deliveries meanwhile
	}
	s.intake.observe(now)
	if err := s.Flow.observe(now); err != nil {
		return err
	}
	for _, p := range s.publishers.all {
		if err := p.stalled(now, s.alarm); err != nil {
			return err
		}
	}
	return s.Flow.look()
}

// stalled is an error when the broker neither accepts messages nor says so. A session has to be
// renewed then: a channel that met the election of a queue's leader may go on refusing for as long
// as the old leader's node is down, when a new one is served at once.
func (p *publisher) stalled(now time.Time, a alarm) error {
	if !p.nackedSince.IsZero() && a.waited(p.nackedSince, now) > nackTimeout {
		return fmt.Errorf("the broker has refused every message for %s", nackTimeout)
	}
	if len(p.outstanding) > 0 && a.waited(p.outstanding[0].publishedAt, now) > confirmTimeout {
		return fmt.Errorf("the broker has not confirmed a message for %s", confirmTimeout)
	}
	return nil
}

// refused notes that the broker did not accept a message that has to go where it was going.
func (p *publisher) refused(now time.Time) {
	if p.nackedSince.IsZero() {
		p.nackedSince = now
	}
}
