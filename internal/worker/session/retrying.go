package session

import (
	"log/slog"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/metrics"
)

// Retrying is the flow of a pipeline. It takes detours around queues that accept nothing.
type Retrying struct {
	common[*deadletter.Pipeline]
	// Decide decides about a message, and Build builds the message to publish. Tests put faults in.
	Decide func(*deadletter.Pipeline, *amqp.Delivery, time.Time) deadletter.Verdict
	Build  func(*deadletter.Pipeline, deadletter.Verdict, *amqp.Delivery, deadletter.Stamp) (amqp.Publishing, error)

	parking obstacle
	detours detours
	unbound unbound
}

// NewRetrying returns the flow of a pipeline. The timeout is how long messages are kept while no delay is bound.
func NewRetrying(
	p *deadletter.Pipeline, unboundTimeout time.Duration, watch *metrics.Flow, log *slog.Logger,
) *Retrying {
	return &Retrying{
		common: newCommon(p, watch, log),
		Decide: func(p *deadletter.Pipeline, d *amqp.Delivery, now time.Time) deadletter.Verdict {
			return p.Decide(p.Read(d), now)
		},
		Build:   (*deadletter.Pipeline).Publishing,
		unbound: unbound{timeout: unboundTimeout, log: log},
		detours: detours{avoided: map[time.Duration]time.Time{}, refusedSince: map[time.Duration]time.Time{}, log: log},
	}
}

// Configure implements [Flow].
func (f *Retrying) Configure(c Config) {
	f.common.Configure(c)
	f.detours.reconfigure(f.config)
	f.unbound.reset()
}

func (f *Retrying) judge(d *amqp.Delivery, now time.Time) verdict {
	v := f.Decide(f.config, d, now)
	if v.Letter.AfterUnreadable {
		f.log.Debug(unreadableAfter, "work_queue", v.Letter.Queue, "message_id", d.MessageId)
	}
	return f.decided(v)
}

func (f *Retrying) unjudged(d *amqp.Delivery) verdict { return f.decided(deadletter.Unjudged(d)) }

func (f *Retrying) undeliverable(d *amqp.Delivery, why string) verdict {
	return f.decided(f.config.Undeliverable(d, why))
}

// setsAside reports true for the exchanges of parked messages.
func (f *Retrying) setsAside(exchange string) bool {
	return exchange == f.config.Names.FailedExchange() || exchange == f.config.Names.FailedRouteExchange()
}

// shut reports true for a forbidden default exchange: messages that cannot go straight to their work queue are parked.
func (f *Retrying) shut(exchange string, reason *amqp.Error) (forgo bool) {
	if exchange == f.config.Names.FailedRouteExchange() {
		f.parking.shut(reason, time.Now())
	}
	return exchange == "" && reason.Code == amqp.AccessRefused
}

func (f *Retrying) observe(ls lanes, a alarm, now time.Time) (silent []*lane) {
	f.parked.observe(now)
	f.detours.avoidRefusing(f.config, a, now)
	return f.detours.avoidSilent(f.config, ls, a, now)
}

// retried is the verdict on a message of a pipeline.
type retried struct {
	*Retrying
	deadletter.Verdict
	// sent is the verdict that the message was published by. It differs from Verdict during a detour.
	sent deadletter.Verdict
}

func (f *Retrying) decided(v deadletter.Verdict) *retried { return &retried{Retrying: f, Verdict: v} }

func (v *retried) aim(m *message, a alarm, now time.Time) (route deadletter.Route, kept bool) {
	v.detour(a, now)
	if v.unbound.holds(m, v.Verdict, now) {
		return route, true
	}
	v.sent = v.detours.around(v.config, v.Verdict, now)
	return v.config.Route(v.sent), false
}

func (v *retried) build(d *amqp.Delivery, stamp deadletter.Stamp) (amqp.Publishing, error) {
	return v.Build(v.config, v.sent, d, stamp)
}

func (v *retried) unbuilt() (again bool) {
	v.Verdict, again = v.Unbuilt()
	return again
}

// returned chooses the next best way after the broker had no queue for a message.
func (v *retried) returned(m *message) step {
	if v.Refused {
		v.Refused = m.staysRefused()
		return stepUnrouted
	}
	if v.Action == deadletter.Retry && v.sent.Delay != v.Delay {
		return stepKeep // its own delay can be bound by now, and accept the message again
	}
	next, ok := v.config.Returned(v.Verdict)
	if !ok {
		return stepUnrouted
	}
	if v.Waits() && !next.Waits() && v.unbound.returned(m, time.Now()) {
		return stepRejudge
	}
	v.Verdict = next
	return stepPublish
}

// nacked keeps a message that the broker refused, unless it has another way.
func (v *retried) nacked(m *message) step {
	if next, ok := v.config.Nacked(v.Verdict); ok {
		v.Verdict = next
		return stepPublish
	}
	if v.Action == deadletter.Fail && !v.Refused {
		if v.ToOwnFailedQueue() { // the exchange has taken the message, and one of its queues has not
			v.parking.accepted(v.log)
		}
		refused := v.config.Names.RefusedQueue()
		v.refusals.refused(time.Now(), m.route.Exchange, v.Letter.Queue, setAside, "refused_queue", refused)
		v.Verdict = v.SetAside() // other queues can have the message, so it does not go to them again
		return stepSetAside
	}
	v.log.Debug(deferredRefused, "work_queue", v.Letter.Queue, "message_id", m.delivery.MessageId)
	switch {
	case v.Refused:
		return stepImpede
	case v.ToWorkQueue(): // a work queue can well be full
		return stepKeep
	}
	v.detours.refused(v.sent, time.Now())
	return stepRefused
}

// accepted counts and logs. The log gets a line for each parked message, and no line for the thousands a second that are
// sent back.
func (v *retried) accepted(m *message, verbose bool) {
	queue, sent := v.Letter.Queue, v.sent
	v.detours.accepted(v.config, sent)
	v.unbound.accepted(sent)
	switch sent.Action {
	case deadletter.Fail:
		if sent.ToOwnFailedQueue() {
			v.parking.accepted(v.log)
		}
		if !sent.Refused {
			v.refusals.accepted(time.Now(), m.route.Exchange, queue)
		}
		details := v.details(m, slog.String("reason", sent.Reason))
		if sent.Detour != "" {
			v.watch.Detoured(queue, sent.Detour)
			details = append(details, "detour", string(sent.Detour))
		}
		v.countParked(sent, &m.delivery, details...)
		return
	case deadletter.Rescue:
		v.watch.Rescued(queue)
	case deadletter.Retry:
		v.watch.Retried(queue, sent.Delay)
	}
	if verbose { // else the line would be built for nothing
		v.log.Debug("message sent back", v.details(m, slog.Duration("delay", sent.Delay))...)
	}
}

// countParked counts and logs a message that is in a failed queue or in the refused queue now.
func (f *Retrying) countParked(v deadletter.Verdict, d *amqp.Delivery, details ...any) {
	f.watch.Failed(v.Letter.Queue, v.Reason)
	if v.Refused {
		f.watch.SetAside()
	}
	f.parked.add(time.Now(), parkedAs{messageParked, v.Reason, v.Letter.Queue}, d, details...)
}

func (v *retried) left(m *message) {
	v.watch.Failed(v.Letter.Queue, deadletter.ReasonMalformed)
	v.parked.add(time.Now(), parkedAs{messageLeft, deadletter.ReasonMalformed, v.Letter.Queue}, &m.delivery,
		v.details(m, slog.Any("reason", m.unpublishable))...)
}

func (v *retried) details(m *message, first slog.Attr) []any {
	return details(&m.delivery, first, "work_queue", v.Letter.Queue, "attempts", v.Letter.Count)
}

// Park implements [Flow].
func (f *Retrying) Park(d *amqp.Delivery, why string, stamp deadletter.Stamp) (first, second Parked, err error) {
	v := f.config.Undeliverable(d, why)
	if first, err = f.replacement(v, d, stamp); err == nil {
		second, err = f.replacement(v.SetAside(), d, stamp)
	}
	return first, second, err
}

func (f *Retrying) replacement(v deadletter.Verdict, d *amqp.Delivery, stamp deadletter.Stamp) (Parked, error) {
	publishing, err := f.config.Publishing(v, d, stamp)
	return Parked{Route: f.config.Route(v), Publishing: publishing, Done: func() {
		f.watch.Received()
		f.countParked(v, d, details(d, "reason", v.Reason, "work_queue", v.Letter.Queue, "attempts", v.Letter.Count)...)
	}}, err
}
