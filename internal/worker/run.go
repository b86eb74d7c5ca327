package worker

import (
	"context"
	"fmt"
	"time"
)

const (
	// DefaultDrainTimeout bounds how long a stopping session finishes what is in flight. Orchestrators
	// kill after 30 s.
	DefaultDrainTimeout = 25 * time.Second
	// tick is how often a session looks whether the broker has stalled.
	tick = time.Second
)

// drain stops the deliveries. The channel of deliveries closes when the broker has answered and what
// it had already sent is taken.
func (s *session) drain() {
	s.draining = true
	go func() {
		// An error says that the channel is closed, and then so are the deliveries.
		_ = s.inbox.Cancel(consumerTag, false)
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
	var deadline <-chan time.Time
	defer s.closeWhenStuck(ctx)()

	for !s.finished() {
		var err error
		select {
		case d, ok := <-s.unlessBlocked():
			err = s.receive(d, ok)
		case c, ok := <-s.retry.confirms:
			err = s.confirm(ctx, s.retry, c, ok)
		case c, ok := <-s.back.confirms:
			err = s.confirm(ctx, s.back, c, ok)
		case c, ok := <-s.failed.confirms:
			err = s.confirm(ctx, s.failed, c, ok)
		case c, ok := <-s.rescue.confirms:
			err = s.confirm(ctx, s.rescue, c, ok)
		case o := <-s.openings:
			err = s.reopened(o)
		case <-s.heldTimer.C:
			err = s.publishHeld()
		case b, ok := <-s.blockings:
			err = s.block(b, ok)
		case now := <-ticker.C:
			err = s.stalled(now)
		case p := <-s.changes:
			s.reconfigure(p)
		case <-stop:
			stop, deadline = nil, time.After(s.drainTimeout)
			s.drain()
		case <-deadline:
			return s.overdue()
		}
		if err != nil {
			s.settleLast()
			return err
		}
	}
	time.Sleep(settleTime)
	return nil
}

// finished tells whether a draining session has nothing left to do. What a broker that blocks has
// delivered and nobody has taken yet, it delivers again.
func (s *session) finished() bool {
	return s.draining && s.inFlight == 0 && (s.deliveries == nil || s.blocked)
}

// overdue is an error when a draining session has not finished what is in flight in time.
func (s *session) overdue() error {
	if s.inFlight == 0 {
		return nil
	}
	return fmt.Errorf("%d message(s) were still in flight after %s: they will be delivered again", s.inFlight, s.drainTimeout)
}
