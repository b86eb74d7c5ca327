package session

import (
	"log/slog"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/metrics"
)

// Retrying is the flow of a pipeline. It takes detours around what accepts nothing.
type Retrying struct {
	config *deadletter.Pipeline
	rules  Judge
	watch  *metrics.Pipeline
	log    *slog.Logger

	// avoided, parking and refusals outlive a session; detours and unbound are about one.
	avoided  AvoidedDelays
	parking  obstacle
	refusals refusals
	detours  detours
	unbound  unbound
	session  *Session
}

// NewRetrying is a pipeline's flow. The timeout is how long messages are kept because no delay is bound.
func NewRetrying(p *deadletter.Pipeline, rules Judge, unboundTimeout time.Duration, watch *metrics.Pipeline, log *slog.Logger) *Retrying {
	return &Retrying{
		config: p, rules: rules, watch: watch, log: log,
		avoided: AvoidedDelays{}, refusals: refusals{log: log}, unbound: unbound{timeout: unboundTimeout, log: log},
	}
}

// Judge decides about a pipeline's messages, and builds what is published for them.
type Judge struct {
	Decide func(*deadletter.Pipeline, *amqp.Delivery, time.Time) deadletter.Verdict
	Build  func(*deadletter.Pipeline, deadletter.Verdict, *amqp.Delivery, deadletter.Stamp) (amqp.Publishing, error)
}

// NewJudge returns the one for production. Tests put a fault in.
func NewJudge() Judge {
	return Judge{
		Decide: func(p *deadletter.Pipeline, d *amqp.Delivery, now time.Time) deadletter.Verdict {
			return p.Decide(p.Read(d), now)
		},
		Build: (*deadletter.Pipeline).Publishing,
	}
}

// verdictOf is a pipeline's verdict about a message, and sentOf the one that it was published by.
func verdictOf(m *message) deadletter.Verdict { return pipelines(m.verdict) }
func sentOf(m *message) deadletter.Verdict    { return pipelines(m.sent) }

// pipelines is a verdict as a pipeline's, which all of its messages have.
func pipelines(v verdict) deadletter.Verdict {
	own, _ := v.(deadletter.Verdict)
	return own
}

// Config implements [Flow].
func (f *Retrying) Config() Config { return f.config }

// Watch implements [Flow].
func (f *Retrying) Watch() *metrics.Flow { return f.watch.Flow }

// Configure implements [Flow].
func (f *Retrying) Configure(c Config) {
	f.config, _ = c.(*deadletter.Pipeline)
	f.detours.reconfigure(f.config)
	f.unbound.reset()
}

func (f *Retrying) begin(s *Session) {
	f.session, f.detours = s, newDetours(f.avoided, f.log)
	f.unbound.reset()
}

func (f *Retrying) judge(d *amqp.Delivery, now time.Time) verdict {
	v := f.rules.Decide(f.config, d, now)
	if v.Letter.AfterUnreadable {
		f.log.Debug(unreadableAfter, "work_queue", v.Letter.Queue, "message_id", d.MessageId)
	}
	return v
}

func (*Retrying) unjudged(d *amqp.Delivery) verdict { return deadletter.Unjudged(d) }

func (f *Retrying) undeliverable(d *amqp.Delivery, why string) verdict {
	return f.config.Undeliverable(d, why)
}

func (*Retrying) unbuilt(v verdict) (next verdict, ok bool) { return pipelines(v).Unbuilt() }

func (f *Retrying) build(v verdict, d *amqp.Delivery, stamp deadletter.Stamp) (amqp.Publishing, error) {
	return f.rules.Build(f.config, pipelines(v), d, stamp)
}

func (f *Retrying) aim(m *message, now time.Time) (route deadletter.Route, kept bool) {
	if f.unbound.holds(m, now) {
		return route, true
	}
	f.detoured(m, now)
	route = f.config.Route(verdictOf(m))
	p := f.session.publishers.all[route.Channel()]
	return route, route.Apart && p != nil && p.obstructed(now)
}

func (f *Retrying) send(m *message, now time.Time) deadletter.Route {
	sent := f.detours.around(f.config, verdictOf(m), now)
	m.sent = sent
	return f.config.Route(sent)
}

func (f *Retrying) accepted(m *message) {
	v := sentOf(m)
	f.detours.accepted(f.config, v)
	f.unbound.accepted(v)
	if v.ToOwnFailedQueue() {
		f.parking.accepted(f.log)
	}
	if v.Action == deadletter.Fail && !v.Refused {
		f.refusals.accepted(time.Now(), f.config.Route(v).Exchange, v.Letter.Queue)
	}
	f.done(m)
}

// returned tries the next best after the broker had no queue for a message.
func (f *Retrying) returned(p *publisher, m *message) error {
	s, v := f.session, verdictOf(m)
	if v.Refused {
		v.Refused = m.staysRefused()
		m.verdict = v
		s.unrouted(p, m)
		return nil
	}
	if v.Action == deadletter.Retry && sentOf(m).Delay != v.Delay {
		s.keep(m) // its own delay may be bound, and accept it again
		return nil
	}
	next, ok := f.config.Returned(v)
	if !ok {
		s.unrouted(s.to(deadletter.Route{Exchange: f.config.Names.FailedExchange()}), m)
		return nil
	}
	if v.Waits() && !next.Waits() && f.unbound.returned(m, time.Now()) {
		m.verdict = s.judge(m)
		s.keep(m)
		return nil
	}
	m.verdict = next
	return s.publish(m)
}

// nacked tries again later what the broker refused to accept.
func (f *Retrying) nacked(p *publisher, m *message) error {
	s, v := f.session, verdictOf(m)
	if next, ok := f.config.Nacked(v); ok {
		m.verdict = next
		return s.publish(m)
	}
	if v.Action == deadletter.Fail && !v.Refused {
		return f.parkedNacked(p, m)
	}
	s.Log.Debug(deferredRefused, "work_queue", v.Letter.Queue, "message_id", m.delivery.MessageId)
	switch {
	case v.Refused:
		s.impede(p)
	case !v.ToWorkQueue():
		// A work queue may well be full. Only a fault refuses what goes to a queue of ours.
		now := time.Now()
		p.refused(now)
		f.detours.refused(sentOf(m), now)
	}
	s.keep(m)
	return nil
}

// setsAside is about what is parked.
func (f *Retrying) setsAside(exchange string) bool {
	return exchange == f.config.Names.FailedExchange() || exchange == f.config.Names.FailedRouteExchange()
}

// forgoes is about the default exchange: what cannot go straight to its work queue is parked.
func (*Retrying) forgoes(p *publisher) bool { return p.exchange == "" }

func (f *Retrying) shut(p *publisher, reason *amqp.Error) error {
	if p.exchange != f.config.Names.FailedRouteExchange() {
		return nil
	}
	f.parking.shut(reason, time.Now())
	return f.detourWaiting()
}

func (f *Retrying) observe(now time.Time) error {
	return f.detours.observe(f.config, f.session.publishers.outstandingTo(f.config.Names.RetryExchange()), f.session.alarm, now)
}

func (f *Retrying) look() error { return f.detourWaiting() }

func (*Retrying) diedAt(d *amqp.Delivery) time.Time { return deadletter.DiedAt(d.Headers) }

// done counts and logs a message that was acknowledged: a line for each that is parked, none for
// those that are sent back, of which there may be thousands a second.
func (f *Retrying) done(m *message) {
	v := sentOf(m)
	switch v.Action {
	case deadletter.Fail:
		f.watch.Failed(v.Letter.Queue, v.Reason)
		details := f.details(m, slog.String("reason", v.Reason))
		if v.Detour != "" {
			f.watch.Detoured(v.Letter.Queue, v.Detour)
			details = append(details, "detour", string(v.Detour))
		}
		if v.Refused {
			f.watch.SetAside()
		}
		f.log.Info("message parked in the failed queue", details...)
		return
	case deadletter.Rescue:
		f.watch.Rescued(v.Letter.Queue)
	case deadletter.Retry:
		f.watch.Retried(v.Letter.Queue, v.Delay)
	}
	if f.session.verbose { // or the line would be put together for nothing
		f.log.Debug("message sent back", f.details(m, slog.Duration("delay", v.Delay))...)
	}
}

func (f *Retrying) left(m *message, reason error) {
	f.watch.Failed(verdictOf(m).Letter.Queue, deadletter.ReasonMalformed)
	f.log.Info("message left to the broker, which moves it to the failed queue as it is",
		f.details(m, slog.Any("reason", reason))...)
}

func (*Retrying) details(m *message, first slog.Attr) []any {
	l := verdictOf(m).Letter
	return details(m, first, "work_queue", l.Queue, "attempts", l.Count)
}

// Park implements [Flow].
func (f *Retrying) Park(d *amqp.Delivery, why string, stamp deadletter.Stamp) (Parked, error) {
	v := f.config.Undeliverable(d, why)
	parked, err := f.parked(v, d, stamp)
	if err != nil {
		return parked, err
	}
	setAside, err := f.parked(v.SetAside(), d, stamp)
	parked.SetAside = &setAside
	return parked, err
}

func (f *Retrying) parked(v deadletter.Verdict, d *amqp.Delivery, stamp deadletter.Stamp) (Parked, error) {
	publishing, err := f.config.Publishing(v, d, stamp)
	return Parked{Route: f.config.Route(v), Publishing: publishing, Done: func() {
		f.watch.Received()
		f.watch.Failed(v.Letter.Queue, v.Reason)
		if v.Refused {
			f.watch.SetAside()
		}
		f.log.Info("message parked in the failed queue", "reason", v.Reason, "work_queue", v.Letter.Queue,
			"attempts", v.Letter.Count, "message_id", d.MessageId, "error", v.Error)
	}}, err
}
