package session

import (
	"log/slog"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
)

const (
	// ParkingPatience is how long the way to the failed queues of work queues can be closed. After that, their messages
	// go to the pipeline's failed queue.
	ParkingPatience = 5 * time.Second
	// parkingProbe is the time between two messages that try whether the way is open again.
	parkingProbe = 10 * time.Second
)

// obstacle keeps messages from the exchange that leads to the failed queues of work queues. It outlives a session.
type obstacle struct {
	// why is "" while there is no obstacle.
	why   deadletter.Detour
	since time.Time
	// nextProbe is when a message can try again. It is zero while all messages try.
	nextProbe time.Time
}

// detour returns why a failed message must go to the pipeline's failed queue now. It returns "" if the message need
// not.
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

// begun reports whether messages already take the detour.
func (o *obstacle) begun() bool { return !o.nextProbe.IsZero() }

func (o *obstacle) shut(reason *amqp.Error, now time.Time) {
	if o.why == "" {
		o.since = now
	}
	o.why = deadletter.DetourMissing
	if reason.Code == amqp.AccessRefused {
		o.why = deadletter.DetourForbidden
	}
}

// accepted notes that a message reached its own failed queue's exchange.
func (o *obstacle) accepted(log *slog.Logger) {
	if o.begun() {
		log.Info("failed messages go to the failed queues of their work queues again")
	}
	*o = obstacle{}
}

// detour sends a failed message to the pipeline's failed queue if the way to its own is closed.
func (v *retried) detour(a alarm, now time.Time) {
	if !v.ToOwnFailedQueue() {
		return
	}
	begun := v.parking.begun()
	why := v.parking.detour(a, now)
	if why == "" {
		return
	}
	if !begun {
		v.log.Warn(detourText[why], "work_queue", v.Letter.Queue, "exchange", v.config.Names.FailedRouteExchange())
	}
	v.Verdict = v.Detoured(why)
}
