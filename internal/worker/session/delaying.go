package session

import (
	"log/slog"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delaying"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/metrics"
)

// Delaying is the flow of a delayed exchange. There is no other way for a message than its own, and one for what a queue did not
// take of what is delivered at once or unrouted. What the broker does not take is kept until it does, or until the configuration
// leads elsewhere.
type Delaying struct {
	config *delaying.Exchange
	watch  *metrics.DelayedExchange
	log    *slog.Logger
	// refusals outlives a session.
	refusals refusals
	session  *Session
}

// NewDelaying is a delayed exchange's flow.
func NewDelaying(e *delaying.Exchange, watch *metrics.DelayedExchange, log *slog.Logger) *Delaying {
	return &Delaying{config: e, watch: watch, log: log, refusals: refusals{log: log}}
}

// exchanges is a verdict as a delayed exchange's, which all of its messages have.
func exchanges(v verdict) delaying.Verdict {
	own, _ := v.(delaying.Verdict)
	return own
}

// Config implements [Flow].
func (f *Delaying) Config() Config { return f.config }

// Watch implements [Flow].
func (f *Delaying) Watch() *metrics.Flow { return f.watch.Flow }

// Configure implements [Flow].
func (f *Delaying) Configure(c Config) { f.config, _ = c.(*delaying.Exchange) }

func (f *Delaying) begin(s *Session) { f.session = s }

func (f *Delaying) judge(d *amqp.Delivery, _ time.Time) verdict { return f.config.Decide(d) }

func (*Delaying) unjudged(d *amqp.Delivery) verdict { return delaying.Unjudged(d) }

func (*Delaying) undeliverable(d *amqp.Delivery, why string) verdict {
	return delaying.Undeliverable(d, why)
}

func (*Delaying) unbuilt(v verdict) (next verdict, ok bool) { return exchanges(v).Unbuilt() }

func (f *Delaying) build(v verdict, d *amqp.Delivery, stamp deadletter.Stamp) (amqp.Publishing, error) {
	return f.config.Publishing(exchanges(v), d, stamp)
}

func (f *Delaying) aim(m *message, now time.Time) (route deadletter.Route, kept bool) {
	route = f.config.Route(exchanges(m.verdict))
	p := f.session.publishers.all[route.Exchange]
	return route, p != nil && p.obstructed(now)
}

func (f *Delaying) send(m *message, _ time.Time) deadletter.Route {
	m.sent = m.verdict
	return f.config.Route(exchanges(m.sent))
}

func (f *Delaying) returned(p *publisher, m *message) error {
	if v := exchanges(m.verdict); v.SetAside {
		v.SetAside = m.staysRefused()
		m.verdict = v
		f.session.unrouted(p, m)
		return nil
	}
	if next, ok := exchanges(m.verdict).Unroutable(); ok && !p.forbidden {
		m.verdict = next
		return f.session.publish(m)
	}
	if p.exchange != f.config.Names.DeliverExchange() {
		p.obstruct(time.Now())
	}
	f.session.unrouted(p, m)
	return nil
}

func (f *Delaying) nacked(p *publisher, m *message) error {
	f.log.Debug(deferredRefused, "exchange", p.exchange, "message_id", m.delivery.MessageId)
	now, v := time.Now(), exchanges(m.verdict)
	if v.Action != delaying.Delay && !v.SetAside {
		if v.Action == delaying.Refuse {
			f.refusals.refused(now, p.exchange, "", unroutedAlone)
		} else {
			f.refusals.refused(now, p.exchange, "", setAside, "refused_queue", f.config.Names.Refused())
		}
		p.refusedOne(now)
		m.refused, v.SetAside = true, true
		m.verdict = v
		return f.session.publish(m)
	}
	if !p.setsAside {
		f.session.impede(p)
	}
	f.session.keep(m)
	return nil
}

// setsAside is about what is delivered at once, or unrouted: others have queues there, each with limits of its own. All other
// exchanges lead to one queue, so that what befell one message befalls all.
func (f *Delaying) setsAside(exchange string) bool {
	return exchange == f.config.Names.DeliverExchange() || exchange == f.config.Names.UnroutedExchange()
}

// accepted counts and logs a message that was acknowledged: a line for each that is refused, none for the others, of which there
// may be thousands a second.
func (f *Delaying) accepted(m *message) {
	v := exchanges(m.sent)
	switch v.Action {
	case delaying.Refuse:
		if !v.SetAside {
			f.refusals.accepted(time.Now(), f.config.Names.UnroutedExchange(), "")
		}
		f.watch.Refused(v.Reason)
		f.log.Info("message put into the unrouted queue", details(m, "reason", v.Reason)...)
		return
	case delaying.Deliver:
		f.watch.Delivered()
		if v.SetAside {
			f.watch.SetAside()
		} else {
			f.refusals.accepted(time.Now(), f.config.Names.DeliverExchange(), "")
		}
	case delaying.Delay:
		f.watch.Delayed()
	}
	if f.session.verbose { // or the line would be put together for nothing
		f.log.Debug("message sent on", details(m, "delay", v.Delay)...)
	}
}

func (f *Delaying) left(m *message, reason error) {
	f.watch.Refused(deadletter.ReasonMalformed)
	f.log.Info("message left to the broker, which moves it to the unrouted queue as it is", details(m, "reason", reason)...)
}

// Park implements [Flow].
func (f *Delaying) Park(d *amqp.Delivery, why string, stamp deadletter.Stamp) (Parked, error) {
	v := delaying.Undeliverable(d, why)
	publishing, err := f.config.Publishing(v, d, stamp)
	parked := Parked{Route: f.config.Route(v), Publishing: publishing, Done: func() {
		f.watch.Received()
		f.watch.Refused(v.Reason)
		f.log.Info("message put into the unrouted queue", "reason", v.Reason, "message_id", d.MessageId, "error", v.Error)
	}}
	setAside := parked
	v.SetAside = true
	setAside.Route = f.config.Route(v)
	parked.SetAside = &setAside
	return parked, err
}

func (*Delaying) forgoes(*publisher) bool { return false }

// shut keeps what a queue refused if there is no refused queue yet, or it is closed to this user: the other way is open.
func (f *Delaying) shut(p *publisher, _ *amqp.Error) error { //nolint:unparam // a pipeline's has an error
	if n := f.config.Names; p.exchange != n.Refused() && p.exchange != n.OnlyUnrouted() {
		return nil
	}
	waiting := p.waiting
	p.waiting, p.suspects = nil, 0
	for _, m := range waiting {
		v := exchanges(m.verdict)
		v.SetAside = m.staysRefused()
		m.verdict = v
		f.session.keep(m)
	}
	return nil
}

// diedAt: messages come from publishers, who say nothing that could be believed of the time.
func (*Delaying) diedAt(*amqp.Delivery) time.Time { return time.Time{} }

func (*Delaying) observe(time.Time) error { return nil }

func (*Delaying) look() error { return nil }
