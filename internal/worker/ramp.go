package worker

import (
	"context"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

const (
	// rampAfter is how many messages a session finishes one by one before it takes the whole window.
	rampAfter = 30
	// rampSlow is how long one message may keep the others waiting.
	rampSlow = 2 * time.Second

	firstTag = "rabbitmq-retry-first"
	restTag  = "rabbitmq-retry"
)

// ramp is the beginning of a session, with one message in flight at a time. A message that ends the
// session, or the process, again and again then takes no other along: each time counts against the
// delivery limit of all that is in flight, and may duplicate it.
//
// A prefetch is for new consumers only, so the rest of the window belongs to a second one.
type ramp struct {
	finished   int
	receivedAt time.Time // of the latest delivery
	slow       bool      // a message is held, or takes long: it does no harm, but the others wait
	over       bool
	underway   bool // a second consumer is on its way
}

// widenIfDue takes the whole window from now on if it is time to.
func (s *session) widenIfDue(ctx context.Context) {
	due := s.ramp.slow || s.ramp.finished >= rampAfter
	if !due || s.ramp.over || s.draining || s.window == 1 {
		return
	}
	s.ramp.over, s.ramp.underway = true, true
	// A stopping session still has to know how it ends.
	ctx = context.WithoutCancel(ctx)
	go func() {
		deliveries, err := s.subscribe(ctx, restTag, s.window-1)
		s.completions <- func() error { return s.widened(deliveries, err) }
	}()
}

// widened goes on with both consumers.
func (s *session) widened(deliveries <-chan amqp.Delivery, err error) error {
	s.ramp.underway = false
	if err != nil {
		return err
	}
	s.rest = deliveries
	if s.draining {
		s.cancelConsumers()
	}
	return nil
}
