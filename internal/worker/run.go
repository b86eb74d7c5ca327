package worker

import (
	"context"
	"fmt"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/metrics"
)

const (
	// DefaultDrainTimeout bounds how long a stopping session finishes what is in flight. It leaves a
	// moment to close connections before orchestrators kill, after 30 s.
	DefaultDrainTimeout = 25 * time.Second
	// tick is how often a session looks whether the broker has stalled.
	tick = time.Second
)

// drain stops the deliveries. A consumer's channel closes when the broker has answered and what
// it had already sent is taken.
func (s *session) drain() {
	s.draining = true
	s.watch.Enter(metrics.Connected)
	time.AfterFunc(s.drainTimeout, func() {
		s.completions <- func() error {
			s.late = true
			return nil
		}
	})
	if !s.ramp.underway { // the library takes one call of a channel at a time
		s.cancelConsumers()
	}
}

func (s *session) cancelConsumers() {
	go func() {
		for _, tag := range []string{firstTag, restTag} {
			// An error says that the channel is closed, and then so are the deliveries.
			_ = s.inbox.Cancel(tag, false)
		}
	}()
}

// closeWhenStuck closes the connections of a session that has not stopped long after it should have:
// its loop hangs in a write, because the broker does not read. The function that it returns calls it
// off.
func (s *session) closeWhenStuck(ctx context.Context) (callOff func()) {
	done := make(chan struct{})
	forget := context.AfterFunc(ctx, func() {
		select {
		case <-time.After(s.drainTimeout + time.Second):
			s.close()
		case <-done:
		}
	})
	return func() {
		forget()
		close(done)
	}
}

// run works until the context is done and what is in flight is finished, or until an error ends the
// session.
func (s *session) run(ctx context.Context) error {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	defer s.heldTimer.Stop()
	stop := ctx.Done()
	defer s.closeWhenStuck(ctx)()
	s.watch.Enter(metrics.Consuming)
	defer func() { s.watch.Left(s.inFlight) }()

	for !s.finished() {
		s.widenIfDue(ctx)
		var err error
		select {
		case d, ok := <-s.unlessBlocked(s.first):
			err = s.receive(&s.first, d, ok)
		case d, ok := <-s.unlessBlocked(s.rest):
			err = s.receive(&s.rest, d, ok)
		case c, ok := <-s.retry.confirms:
			err = s.confirm(ctx, s.retry, c, ok)
		case c, ok := <-s.back.confirms:
			err = s.confirm(ctx, s.back, c, ok)
		case c, ok := <-s.failed.confirms:
			err = s.confirm(ctx, s.failed, c, ok)
		case c, ok := <-s.rescue.confirms:
			err = s.confirm(ctx, s.rescue, c, ok)
		case complete := <-s.completions:
			err = complete()
		case <-s.heldTimer.C:
			err = s.publishHeld()
		case b, ok := <-s.blockings:
			err = s.block(b, ok)
		case now := <-ticker.C:
			s.report()
			err = s.stalled(now)
		case p := <-s.changes:
			s.reconfigure(p)
		case <-stop:
			stop = nil
			s.drain()
		}
		if err != nil {
			s.settleLast()
			return err
		}
	}
	time.Sleep(settleTime)
	return s.overdue()
}

// finished tells whether a draining session has nothing left to do, or no time. What a broker that
// blocks has delivered and nobody has taken yet, it delivers again.
func (s *session) finished() bool {
	cancelled := s.first == nil && s.rest == nil && !s.ramp.underway
	return s.late || s.draining && s.inFlight == 0 && (cancelled || s.blocked)
}

// overdue is an error when a draining session has not finished what is in flight in time.
func (s *session) overdue() error {
	if s.inFlight == 0 {
		return nil
	}
	return fmt.Errorf("%d message(s) were still in flight after %s: they will be delivered again", s.inFlight, s.drainTimeout)
}
