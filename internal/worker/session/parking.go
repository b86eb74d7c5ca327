package session

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
)

const (
	// parkingPatience is how long the failed queue of a work queue may refuse messages, or the way to it be closed, before
	// they go to the pipeline's. Electing a leader takes less.
	parkingPatience = 5 * time.Second
	// parkingProbe passes between two messages that try a failed queue that took none.
	parkingProbe = 10 * time.Second
	// mostRefusing bounds how many work queues are remembered.
	mostRefusing = 4096
)

// Parking remembers which work queues' failed queues take nothing, so that their messages go to the pipeline's. What waits
// for one of them occupies the window, and would hold up the retries of all work queues. It outlives a session.
type Parking struct {
	// refusing is by work queue: the worker knows none of the failed queues.
	refusing map[string]*obstacle
	// closed is about the exchange that leads to all of them, nil if it is open.
	closed *obstacle
}

// NewParking remembers nothing yet.
func NewParking() *Parking { return &Parking{refusing: map[string]*obstacle{}} }

// obstacle keeps messages from where they belong.
type obstacle struct {
	why   deadletter.Detour
	since time.Time
	// nextProbe is when a message may try again, zero as long as all of them do, and every passes between two that do.
	nextProbe time.Time
	every     time.Duration
}

// blocks reports whether a message has to go elsewhere now.
func (o *obstacle) blocks(a alarm, now time.Time) bool {
	if o == nil || a.waited(o.since, now) < parkingPatience {
		return false
	}
	probes := o.begun() && now.After(o.nextProbe)
	if probes || !o.begun() {
		o.nextProbe = now.Add(o.every)
	}
	return !probes
}

// begun reports whether messages go elsewhere because of it.
func (o *obstacle) begun() bool { return o != nil && !o.nextProbe.IsZero() }

// detour is why a failed message of a work queue has to go to the pipeline's failed queue now, "" if it has not.
func (p *Parking) detour(queue string, a alarm, now time.Time) deadletter.Detour {
	for _, o := range []*obstacle{p.closed, p.refusing[queue]} {
		if o.blocks(a, now) {
			return o.why
		}
	}
	return ""
}

// refused notes that the failed queue of a work queue did not take a message, and reports whether none waits for it any more.
func (p *Parking) refused(queue string, a alarm, now time.Time) (detours bool) {
	if p.refusing[queue] == nil {
		p.remember(queue, &obstacle{why: deadletter.DetourRefused, since: now, every: parkingProbe})
	}
	return p.refusing[queue].begun() || a.waited(p.refusing[queue].since, now) >= parkingPatience
}

func (p *Parking) remember(queue string, o *obstacle) {
	if len(p.refusing) >= mostRefusing {
		clear(p.refusing)
	}
	p.refusing[queue] = o
}

// observe begins detours around the failed queues that have not answered for too long while the broker accepted later
// messages, which is an error: the library keeps back the confirms of what follows, so the session has to be renewed.
func (p *Parking) observe(outstanding []*message, a alarm, now time.Time) error {
	lastAccepted, silent := -1, false
	for i, m := range outstanding {
		if m.publishTag != 0 && m.accepted() {
			lastAccepted = i
		}
	}
	for i, m := range outstanding {
		waits := a.waited(m.publishedAt, now)
		switch {
		case m.publishTag == 0 || m.accepted(): // the channel is closed, or its confirm is kept back
		case i < lastAccepted && waits > detourAfter, i == 0 && waits > confirmTimeout:
			silent = true
			p.remember(m.sent.Letter.Queue, &obstacle{
				why: deadletter.DetourRefused, since: m.publishedAt, nextProbe: now.Add(probePeriod), every: probePeriod,
			})
		}
	}
	if silent {
		return fmt.Errorf("the failed queue of a work queue has not answered for %s", detourAfter)
	}
	return nil
}

// shut notes that the broker closed the channel to the exchange that leads to the failed queues.
func (p *Parking) shut(reason *amqp.Error, now time.Time) {
	why := deadletter.DetourMissing
	if reason.Code == amqp.AccessRefused {
		why = deadletter.DetourForbidden
	}
	if p.closed == nil {
		p.closed = &obstacle{since: now, every: parkingProbe}
	}
	p.closed.why = why
}

// accepted notes that a message went where it belongs.
func (p *Parking) accepted(queue string, log *slog.Logger) {
	if p.closed.begun() || p.refusing[queue].begun() {
		log.Info("failed messages go to the failed queue of their work queue again", "queue", queue)
	}
	p.closed = nil
	delete(p.refusing, queue)
}

// detoured sends a failed message to the pipeline's failed queue if its own takes none.
func (s *Session) detoured(m *message, now time.Time) {
	if !m.verdict.ToOwnFailedQueue() {
		return
	}
	queue := m.verdict.Letter.Queue
	before := s.Parking.closed.begun() || s.Parking.refusing[queue].begun()
	why := s.Parking.detour(queue, s.alarm, now)
	if why == "" {
		return
	}
	if !before {
		s.Log.Warn(detourText[why], "queue", queue, "exchange", s.Pipeline.Names.FailedRouteExchange())
	}
	m.verdict = m.verdict.Detoured(why)
}

// detourWaiting sends on what waits for the exchange that leads to the failed queues, if it is closed for too long.
func (s *Session) detourWaiting() error {
	if s.Parking.closed == nil || s.alarm.active || !s.failedRoutePublisher.shut {
		return nil
	}
	p := s.failedRoutePublisher
	waiting := p.waiting
	p.waiting = nil
	for _, m := range waiting {
		if err := s.publish(m); err != nil {
			return err
		}
	}
	p.suspects = min(p.suspects, len(p.waiting))
	return nil
}

// parkedNacked handles a failed message that the failed queue of its work queue did not take: it is tried again, or goes to
// the pipeline's.
func (s *Session) parkedNacked(m *message, now time.Time) error {
	if m.refusedAt.IsZero() {
		m.refusedAt = now
	}
	late := s.alarm.waited(m.refusedAt, now) >= parkingPatience
	if s.Parking.refused(m.verdict.Letter.Queue, s.alarm, now) || late {
		s.detoured(m, now)
		if m.verdict.ToOwnFailedQueue() { // others were accepted meanwhile, or it was the one that tries again
			m.verdict = m.verdict.Detoured(deadletter.DetourRefused)
		}
		s.failedRoutePublisher.stale = true
		return s.publish(m)
	}
	s.keep(m)
	return nil
}

// renew opens a channel again whose refusals may be its own: on RabbitMQ 3.10, one that a full quorum queue has refused is refused
// even when the limit is gone. It waits for a moment in which nothing is outstanding.
func (s *Session) renew(ctx context.Context, p *publisher) {
	if !p.stale || p.shut || len(p.outstanding) > 0 {
		return
	}
	old := p.channel
	go func() { _ = old.Close() }() // what it answers changes nothing
	p.stale = false
	p.suspend()
	s.reopen(ctx, p)
}
