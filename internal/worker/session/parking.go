package session

import (
	"log/slog"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
)

const (
	// ParkingPatience is how long the way to the failed queues of work queues may be closed before their messages go to the
	// pipeline's.
	ParkingPatience = 5 * time.Second
	// parkingProbe passes between two messages that try whether it is open again.
	parkingProbe = 10 * time.Second
)

// obstacle keeps messages from the exchange that leads to the failed queues of work queues. It outlives a session.
type obstacle struct {
	// why is "" as long as there is none.
	why   deadletter.Detour
	since time.Time
	// nextProbe is when a message may try again, zero as long as all of them do.
	nextProbe time.Time
}

// detour is why a failed message has to go to the pipeline's failed queue now, "" if it has not.
func (o *obstacle) detour(a alarm, now time.Time) deadletter.Detour {
	if o.why == "" || a.waited(o.since, now) < ParkingPatience {
		return ""
	}
	probes := o.begun() && now.After(o.nextProbe)
	if probes || !o.begun() {
		o.nextProbe = now.Add(parkingProbe)
	}
	if probes {
		return ""
	}
	return o.why
}

// begun reports whether messages go elsewhere because of it.
func (o *obstacle) begun() bool { return !o.nextProbe.IsZero() }

// shut notes that the broker closed the channel to the exchange.
func (o *obstacle) shut(reason *amqp.Error, now time.Time) {
	if o.why == "" {
		o.since = now
	}
	o.why = deadletter.DetourMissing
	if reason.Code == amqp.AccessRefused {
		o.why = deadletter.DetourForbidden
	}
}

// accepted notes that a message went where it belongs.
func (o *obstacle) accepted(log *slog.Logger) {
	if o.begun() {
		log.Info("failed messages go to the failed queues of their work queues again")
	}
	*o = obstacle{}
}

// detoured sends a failed message to the pipeline's failed queue if the way to its own is closed.
func (f *Retrying) detoured(m *message, now time.Time) {
	v := verdictOf(m)
	if !v.ToOwnFailedQueue() {
		return
	}
	before := f.parking.begun()
	why := f.parking.detour(f.session.alarm, now)
	if why == "" {
		return
	}
	if !before {
		f.log.Warn(detourText[why], "work_queue", v.Letter.Queue, "exchange", f.config.Names.FailedRouteExchange())
	}
	m.verdict = v.Detoured(why)
}

// detourWaiting sends on what waits for the exchange that leads to the failed queues, if it is closed for too long.
func (f *Retrying) detourWaiting() error {
	if f.parking.why == "" || f.session.alarm.active {
		return nil
	}
	for _, p := range f.session.publishers.all {
		if p.exchange != f.config.Names.FailedRouteExchange() || !p.shut {
			continue
		}
		waiting := p.waiting
		p.waiting = nil
		for _, m := range waiting {
			if err := f.session.publish(m); err != nil {
				return err
			}
		}
		p.suspects = min(p.suspects, len(p.waiting))
	}
	return nil
}

// parkedNacked handles a failed message that one of the queues did not take that it was for. Others may have taken it, so it is not
// published there again.
func (f *Retrying) parkedNacked(p *publisher, m *message) error {
	now, v := time.Now(), verdictOf(m)
	if v.ToOwnFailedQueue() { // the exchange has taken it, and one of its queues has not
		f.parking.accepted(f.log)
	}
	f.refusals.refused(now, p.exchange, v.Letter.Queue, setAside, "refused_queue", f.config.Names.RefusedQueue())
	p.refusedOne(now)
	m.refused, m.verdict = true, v.SetAside()
	return f.session.publish(m)
}
