package session

import (
	"fmt"
	"math/bits"
	"runtime/debug"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/metrics"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/workerconfig"
)

// Config is what is configured of a flow.
type Config interface {
	ID() workerconfig.ID
	// Inbox is the queue that is consumed.
	Inbox() string
	// Exchanges are those of its own that messages are published to.
	Exchanges() []string
	// Last is where the broker puts what the worker cannot publish: the exchange, and its queue.
	Last() (exchange, queue string)
	// PublishIDHeader names the header that tells one publish from another.
	PublishIDHeader() string
}

// Flow is what differs between a pipeline and a delayed exchange. It outlives sessions. While one lives, only its loop must use the flow.
type Flow interface {
	// Config is the configuration in force. Configure puts another one of its kind in its place, and forgets what was about the
	// configuration or the session before.
	Config() Config
	Configure(c Config)
	// Watch is what it counts in.
	Watch() *metrics.Flow
	// Park builds what takes the place of a message that the broker cannot deliver, and why says the reason. It is for the time
	// between sessions.
	Park(d *amqp.Delivery, why string, stamp deadletter.Stamp) (Parked, error)

	// judge decides what happens to a delivery. It can panic: unjudged decides then.
	judge(d *amqp.Delivery, now time.Time) verdict
	unjudged(d *amqp.Delivery) verdict
	// undeliverable decides what happens to a delivery that is not what the broker has, and why says the reason.
	undeliverable(d *amqp.Delivery, why string) verdict
	// diedAt is when the broker dead-lettered a delivery, zero if that is not known.
	diedAt(d *amqp.Delivery) time.Time
	// setsAside reports whether what a queue behind an exchange does not take goes to the refused queue.
	setsAside(exchange string) bool

	// shut is told that the broker closed the channel to an exchange. It reports whether what waits for that counts as returned.
	shut(exchange string, reason *amqp.Error) (forgo bool)
}

// observer is a flow that has to know that time passes.
type observer interface {
	// observe is an error if the session has to be renewed.
	observe(ps publishers, a alarm, now time.Time) error
}

// verdict is what a flow has decided about one message. It knows how the message is built, and what comes next if the broker does not
// take it.
type verdict interface {
	// aim returns where the message goes now, and whether it is kept for a while. It can change the verdict.
	aim(m *message, a alarm, now time.Time) (route deadletter.Route, kept bool)
	// build builds what is published now, and says where. It can panic. Then unbuilt reports whether something else can be built.
	build(d *amqp.Delivery, stamp deadletter.Stamp) (deadletter.Route, amqp.Publishing, error)
	unbuilt() (again bool)
	// delay is how long the message waits by what was built.
	delay() time.Duration

	// returned and nacked are told that the broker did not take the message, and change the verdict to what comes next.
	returned(m *message) step
	nacked(m *message) step
	// accepted is told that the message is acknowledged, and whether the log takes a line for each. left is told that the message is
	// left to the broker.
	accepted(m *message, verbose bool)
	left(m *message, reason error)
}

// step is what a session does with a message that the broker did not take.
type step int

const (
	// stepPublish publishes it by its new verdict.
	stepPublish step = iota
	// stepSetAside does so after a queue refused it that is not the only one behind the exchange.
	stepSetAside
	// stepKeep keeps it for a while, and stepRejudge judges it again.
	stepKeep
	stepRejudge
	// stepUnrouted keeps it because the exchange has no queue for it. With stepProbe, one message at a time then tries the exchange.
	stepUnrouted
	stepProbe
	// stepImpede keeps it because the only queue of the exchange refused it.
	stepImpede
	// stepRefused keeps it because a queue of ours refused it, which can be the channel's fault.
	stepRefused
)

// proceed takes the next step with a message that the broker did not take.
func (s *Session) proceed(p *publisher, m *message, next step) error {
	now := time.Now()
	switch next {
	case stepPublish:
		return s.publish(m)
	case stepSetAside:
		p.refusedOne(now)
		m.refused = true
		return s.publish(m)
	case stepRejudge:
		m.verdict = s.judge(m)
	case stepProbe:
		p.obstruct(now)
		s.unrouted(p, m)
	case stepUnrouted:
		s.unrouted(p, m)
	case stepImpede:
		s.impede(p)
	case stepRefused:
		p.refused(now)
	case stepKeep:
	}
	s.keep(m)
	return nil
}

// Parked is what takes the place of a message that the broker cannot deliver.
type Parked struct {
	Route      deadletter.Route
	Publishing amqp.Publishing
	// SetAside is what takes its place if a queue refuses it, nil if nothing does.
	SetAside *Parked
	// Done counts and logs it.
	Done func()
}

// message is a delivery that is not acknowledged yet.
type message struct {
	delivery amqp.Delivery
	verdict  verdict
	// diedAt is when the broker dead-lettered the message, zero if that is not known.
	diedAt time.Time
	// judgedBy is the configuration that the verdict comes from.
	judgedBy Config

	// undecodable says why the headers, and with them the verdict, are not known.
	undecodable error
	// unreadable says that the broker could not dead-letter the message, and replaced, if a copy takes its place, why.
	unreadable bool
	replaced   error
	// panicked says that the worker panicked over the message, and that the log says so.
	panicked bool

	// publishID, publishTag, publishedAt and confirmation are those of the latest publish.
	publishID    string
	publishTag   uint64
	publishedAt  time.Time
	confirmation interface{ Acked() bool }
	// route is where it goes.
	route deadletter.Route

	// refused says that a queue has refused it, and that another one can have it: publishing it again can double it there.
	refused bool

	// again says that it has waited behind another one for the broker's answer, and was published once more.
	again bool

	// deferrals is how often in a row the publish was deferred, and dueAt when it is tried again.
	deferrals int
	dueAt     time.Time
}

// staysRefused reports whether a message that found no refused queue tries only that one again. To publish it to the others again
// doubles it in those that have it, so that comes each time after twice as many attempts.
func (m *message) staysRefused() bool { return bits.OnesCount(uint(m.deferrals+1)) > 1 }

// accepted reports whether the broker has confirmed that it keeps the message. What the library notifies of
// does not: where a nack overtook the confirm of an earlier message and an ack of multiple ones follows,
// it calls the nack an ack. The deferred confirmation has what the broker said.
func (m *message) accepted() bool { return m.confirmation.Acked() }

// judge decides what happens to a delivery. One that cannot be judged is parked.
func (s *Session) judge(m *message) (v verdict) {
	m.judgedBy = s.Flow.Config()
	judge := func() { v = s.Flow.judge(&m.delivery, time.Now()) }
	if m.replaced != nil {
		judge = func() { v = s.Flow.undeliverable(&m.delivery, m.replaced.Error()) }
	}
	if err := s.survive(m, judge); err != nil {
		return s.Flow.unjudged(&m.delivery)
	}
	return v
}

// build builds what is published for a message. After a [panicError], something else can perhaps be
// built.
func (s *Session) build(m *message, stamp deadletter.Stamp) (route deadletter.Route, publishing amqp.Publishing, err error) {
	if panicked := s.survive(m, func() {
		route, publishing, err = m.verdict.build(&m.delivery, stamp)
	}); panicked != nil {
		err = panicked
	}
	return route, publishing, err
}

// survive turns a panic over one message into an error: ending the process would take all that is in
// flight along, again and again.
func (s *Session) survive(m *message, handle func()) (err error) {
	defer func() {
		fault := recover()
		if fault == nil {
			return
		}
		err = panicError{fault}
		if !m.panicked {
			s.Log.Error("internal error (panic); message parked",
				"panic", fault, "message_id", m.delivery.MessageId, "stack", string(debug.Stack()))
		}
		m.panicked = true
	}()
	handle()
	return nil
}

// panicError is a panic that was survived.
type panicError struct{ fault any }

func (e panicError) Error() string { return fmt.Sprintf("panic: %v", e.fault) }

// reconfigure puts a new configuration of the session's flow in force. What was sent to the broker
// keeps its verdict. What the broker does not accept is judged again before it is published again, as it
// would be if it were delivered again.
func (s *Session) reconfigure(c Config) {
	for _, publisher := range s.publishers.all {
		// What was refused can go elsewhere now, and no answer here would end that.
		publisher.nackedSince = time.Time{}
	}
	s.Flow.Configure(c)
	s.Log.Info("configuration changed")
}

// rejudged judges a message again if the configuration has changed, and reports whether it has.
func (s *Session) rejudged(m *message) bool {
	if m.judgedBy == s.Flow.Config() {
		return false
	}
	m.verdict = s.judge(m)
	return true
}
