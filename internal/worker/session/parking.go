package session

import (
	"fmt"
	"log/slog"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
)

const (
	// parkingPatience is how long the way to the failed queues of work queues may be closed before their messages go to the
	// pipeline's.
	parkingPatience = 5 * time.Second
	// parkingProbe passes between two messages that try whether it is open again.
	parkingProbe = 10 * time.Second
	// mostRefusing bounds how many work queues are remembered.
	mostRefusing = 4096
)

// Parking remembers which work queues' failed queues do not answer, so that their messages go to the pipeline's. What waits
// for one of them occupies the window, and would hold up the retries of all work queues. It outlives a session.
type Parking struct {
	// silent is by work queue: the worker knows none of the failed queues.
	silent map[string]*obstacle
	// closed is about the exchange that leads to all of them, nil if it is open.
	closed *obstacle
}

// NewParking remembers nothing yet.
func NewParking() *Parking { return &Parking{silent: map[string]*obstacle{}} }

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
	for _, o := range []*obstacle{p.closed, p.silent[queue]} {
		if o.blocks(a, now) {
			return o.why
		}
	}
	return ""
}

func (p *Parking) remember(queue string, o *obstacle) {
	if len(p.silent) >= mostRefusing {
		clear(p.silent)
	}
	p.silent[queue] = o
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
			p.remember(sentOf(m).Letter.Queue, &obstacle{
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
	if p.closed.begun() || p.silent[queue].begun() {
		log.Info("failed messages go to the failed queue of their work queue again", "queue", queue)
	}
	p.closed = nil
	delete(p.silent, queue)
}

// detoured sends a failed message to the pipeline's failed queue if its own takes none.
func (f *Retrying) detoured(m *message, now time.Time) {
	v := verdictOf(m)
	if !v.ToOwnFailedQueue() {
		return
	}
	queue := v.Letter.Queue
	before := f.parking.closed.begun() || f.parking.silent[queue].begun()
	why := f.parking.detour(queue, f.session.alarm, now)
	if why == "" {
		return
	}
	if !before {
		f.log.Warn(detourText[why], "queue", queue, "exchange", f.config.Names.FailedRouteExchange())
	}
	m.verdict = v.Detoured(why)
}

// detourWaiting sends on what waits for the exchange that leads to the failed queues, if it is closed for too long.
func (f *Retrying) detourWaiting() error {
	p := f.session.publishers.all[f.config.Names.FailedRouteExchange()]
	if f.parking.closed == nil || f.session.alarm.active || p == nil || !p.shut {
		return nil
	}
	waiting := p.waiting
	p.waiting = nil
	for _, m := range waiting {
		if err := f.session.publish(m); err != nil {
			return err
		}
	}
	p.suspects = min(p.suspects, len(p.waiting))
	return nil
}

// parkedNacked handles a failed message that one of the queues did not take that it was for. Others may have taken it, so it is not
// published there again.
func (f *Retrying) parkedNacked(p *publisher, m *message) error {
	now, v := time.Now(), verdictOf(m)
	f.refusals.refused(now, f.config.Names.RefusedQueue(), p.exchange, v.Letter.Queue)
	p.refusedOne(now)
	m.refused, m.verdict = true, v.SetAside()
	return f.session.publish(m)
}
