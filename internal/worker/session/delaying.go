package session

import (
	"log/slog"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delaying"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/metrics"
)

// Delaying is the flow of a delayed exchange. Each message has one way. If a queue refuses a message that is delivered
// at once or unrouted, the message has a second way. The flow keeps every other message that the broker refuses. It
// tries again until the broker accepts the message, or until the configuration leads elsewhere.
type Delaying struct {
	common[*delaying.Exchange]
}

// NewDelaying returns the flow of a delayed exchange.
func NewDelaying(e *delaying.Exchange, watch *metrics.Flow, log *slog.Logger) *Delaying {
	return &Delaying{newCommon(e, watch, log)}
}

func (f *Delaying) judge(d *amqp.Delivery, _ time.Time) verdict { return f.decided(f.config.Decide(d)) }

func (f *Delaying) unjudged(d *amqp.Delivery) verdict { return f.decided(delaying.Unjudged(d)) }

func (f *Delaying) undeliverable(d *amqp.Delivery, why string) verdict {
	return f.decided(delaying.Undeliverable(d, why))
}

// setsAside reports true for messages that are delivered at once or unrouted. Users have queues behind those exchanges,
// each with limits of its own. Every other exchange leads to one queue, which treats all messages alike.
func (f *Delaying) setsAside(exchange string) bool {
	return exchange == f.config.Names.DeliverExchange() || exchange == f.config.Names.UnroutedExchange()
}

// shut reports true for the exchanges of refused messages. If the refused queue is missing or forbidden, the other way
// is open.
func (f *Delaying) shut(exchange string, _ *amqp.Error) (forgo bool) {
	return exchange == f.config.Names.Refused() || exchange == f.config.Names.OnlyUnrouted()
}

//nolint:unparam // the flow of a pipeline can return lanes
func (f *Delaying) observe(_ lanes, _ alarm, now time.Time) (silent []*lane) {
	f.parked.observe(now)
	return nil
}

// Park implements [Flow].
func (f *Delaying) Park(d *amqp.Delivery, why string, stamp deadletter.Stamp) (first, second Parked, err error) {
	v := delaying.Undeliverable(d, why)
	publishing, err := f.config.Publishing(v, d, stamp)
	first = Parked{Route: f.config.Route(v), Publishing: publishing, Done: func() {
		f.watch.Received()
		f.watch.Refused(v.Reason)
		f.parked.add(time.Now(), parkedAs{text: messageUnrouted, reason: v.Reason}, d, details(d, "reason", v.Reason)...)
	}}
	second = first
	v.SetAside = true
	second.Route = f.config.Route(v)
	return first, second, err
}

// delayed is the verdict on a message of a delayed exchange.
type delayed struct {
	*Delaying
	delaying.Verdict
}

func (f *Delaying) decided(v delaying.Verdict) *delayed { return &delayed{f, v} }

func (v *delayed) aim(*message, alarm, time.Time) (route deadletter.Route, kept bool) {
	return v.config.Route(v.Verdict), false
}

func (v *delayed) build(d *amqp.Delivery, stamp deadletter.Stamp) (amqp.Publishing, error) {
	return v.config.Publishing(v.Verdict, d, stamp)
}

func (v *delayed) unbuilt() (again bool) {
	v.Verdict, again = v.Unbuilt()
	return again
}

func (v *delayed) returned(m *message) step {
	if v.SetAside {
		v.SetAside = m.staysRefused()
		return stepUnrouted
	}
	if next, ok := v.Unroutable(); ok {
		v.Verdict = next
		return stepPublish
	}
	return stepProbe
}

func (v *delayed) nacked(m *message) step {
	if v.Action == delaying.Delay || v.SetAside {
		v.log.Debug(deferredRefused, "exchange", m.route.Exchange, "message_id", m.delivery.MessageId)
		return stepImpede
	}
	if v.Action == delaying.Refuse {
		v.refusals.refused(time.Now(), m.route.Exchange, "", unroutedAlone)
	} else {
		v.refusals.refused(time.Now(), m.route.Exchange, "", setAside, "refused_queue", v.config.Names.Refused())
	}
	v.SetAside = true
	return stepSetAside
}

// accepted counts and logs. The log gets a line for each refused message, and no line for the thousands a second that
// are delivered.
func (v *delayed) accepted(m *message, verbose bool) {
	if !v.SetAside {
		v.refusals.accepted(time.Now(), m.route.Exchange, "")
	}
	switch v.Action {
	case delaying.Refuse:
		v.watch.Refused(v.Reason)
		v.parked.add(time.Now(), parkedAs{text: messageUnrouted, reason: v.Reason}, &m.delivery, details(&m.delivery, "reason", v.Reason)...)
		return
	case delaying.Deliver:
		v.watch.Delivered()
		if v.SetAside {
			v.watch.SetAside()
		}
	case delaying.Delay:
		v.watch.Delayed()
	}
	if verbose { // else the line would be built for nothing
		v.log.Debug("message sent on", details(&m.delivery, "delay", v.Delay)...)
	}
}

func (v *delayed) left(m *message) {
	v.watch.Refused(deadletter.ReasonMalformed)
	v.parked.add(time.Now(), parkedAs{text: messageLeftUnrouted, reason: deadletter.ReasonMalformed}, &m.delivery,
		details(&m.delivery, "reason", m.unpublishable)...)
}
