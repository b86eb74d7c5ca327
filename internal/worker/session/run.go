package session

import (
	"context"
	"fmt"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/metrics"
)

// tick is how often a session checks whether the broker has stalled.
const tick = time.Second

// ending is how a session stops.
type ending struct {
	draining bool
	// drainedBy is the deadline for the messages in flight.
	drainedBy time.Time
	late      bool // the deadline for the messages in flight has passed
	// consumers asks how many consumers the inbox has. acked gets the result of [amqpconn.AwaitAcks], which tells whether
	// the inbox has all acknowledgements.
	consumers func() (int, error)
	acked     chan error
}

// drain stops the deliveries, to finish the messages in flight.
func (s *Session) drain() {
	s.draining, s.drainedBy = true, time.Now().Add(s.DrainTimeout)
	s.watch.Enter(metrics.Connected)
	time.AfterFunc(s.DrainTimeout, func() {
		s.complete(func() error {
			s.late = true
			return nil
		})
	})
	if !s.inbox.calling {
		s.cancel()
	}
}

// closeWhenStuck closes the connections of a session that is long overdue to stop: its loop hangs in a write, because
// the broker does not read. The returned function cancels this.
func (s *Session) closeWhenStuck(ctx context.Context) (callOff func()) {
	done := make(chan struct{})
	forget := context.AfterFunc(ctx, func() {
		select {
		case <-time.After(s.DrainTimeout + time.Second):
			s.Close()
		case <-done:
		}
	})
	return func() {
		forget()
		close(done)
	}
}

// Run works until the context is done and the messages in flight are finished. It returns the error that ended the
// session earlier, or an error that says how many messages were still in flight.
func (s *Session) Run(ctx context.Context) error {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	defer s.backlog.timer.Stop()
	defer s.lanes.sweep.Stop()
	stop := ctx.Done()
	defer s.closeWhenStuck(ctx)()
	s.watch.Enter(metrics.Consuming)
	defer func() {
		s.watch.Redelivered(s.inbox.inFlight)
		s.watch.Enter(metrics.Disconnected)
	}()

	for !s.finished() {
		s.widenIfDue(ctx)
		s.narrowIfCrowded()
		if s.draining {
			stop = nil
		}
		if err := s.next(stop, ticker.C); err != nil {
			s.settleLast()
			return err
		}
	}
	if s.late {
		s.settleLast()
	} else {
		time.Sleep(ackGrace)
	}
	s.awaitAcks()
	if s.inbox.inFlight == 0 {
		return nil
	}
	return fmt.Errorf("%d message(s) were still in flight after %s: the broker delivers them again",
		s.inbox.inFlight, s.DrainTimeout)
}

// next handles the next event.
func (s *Session) next(stop <-chan struct{}, ticks <-chan time.Time) (err error) {
	first, others := s.inbox.first, s.inbox.others
	if s.alarm.active {
		first, others = nil, nil // never ready
	}
	select {
	case d, ok := <-first:
		err = s.receive(&s.inbox.first, d, ok)
	case d, ok := <-others:
		err = s.receive(&s.inbox.others, d, ok)
	case a := <-s.lanes.answers:
		err = s.confirm(a)
	case complete := <-s.completions:
		err = complete()
	case <-s.backlog.timer.C:
		err = s.publishBacklog()
	case now := <-s.lanes.sweep.C:
		err = s.sweep(now)
	case b, ok := <-s.alarm.notices:
		err = s.alarmChanged(b, ok)
	case now := <-ticks:
		s.report()
		err = s.stalled(now)
	case c := <-s.Changes:
		s.reconfigure(c)
	case <-stop:
		s.drain()
	}
	return err
}

// finished reports whether a draining session has nothing left to do, or no time. During an alarm, the session receives
// no further deliveries, and the broker delivers those messages again.
func (s *Session) finished() bool {
	return s.late || s.draining && s.inbox.inFlight == 0 && (s.inbox.cancelled() || s.alarm.active)
}

// Unfinished returns the error that ended a stopping session. If no messages are in flight, it returns nil.
func (s *Session) Unfinished(err error) error {
	if s.inbox.inFlight == 0 {
		return nil
	}
	return err
}
