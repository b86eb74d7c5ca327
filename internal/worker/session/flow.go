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

// Flow is what differs between a pipeline and a delayed exchange: what happens to a message, and what is tried next if the broker
// does not take it. It outlives sessions. Only the loop of the session that it began with may use it.
type Flow interface {
	// Config is the configuration in force, and Configure puts another one in its place.
	Config() Config
	Configure(c Config)
	// Watch is what it counts in.
	Watch() *metrics.Flow
	// Park builds what takes the place of a message that the broker cannot deliver, for that reason, and says what to do once the
	// broker keeps it. It is for the time between sessions.
	Park(d *amqp.Delivery, why string, stamp deadletter.Stamp) (Parked, error)

	// begin forgets what was about another session.
	begin(s *Session)

	// judge decides what happens to a delivery. It may panic, and so may build.
	judge(d *amqp.Delivery, now time.Time) verdict
	// unjudged is what happens to a delivery over which judge panicked, and unbuilt, unless it says false, to one over which build
	// did.
	unjudged(d *amqp.Delivery) verdict
	unbuilt(v verdict) (next verdict, ok bool)
	// undeliverable is what happens to a delivery that is not what the broker has, for that reason.
	undeliverable(d *amqp.Delivery, why string) verdict
	// aim returns where a message goes now, or says that it is kept for a while. It may change its verdict.
	aim(m *message, now time.Time) (route deadletter.Route, kept bool)
	// send notes by which verdict a message that was aimed is published now, and returns where.
	send(m *message, now time.Time) deadletter.Route
	// build builds what is published for a delivery.
	build(v verdict, d *amqp.Delivery, stamp deadletter.Stamp) (amqp.Publishing, error)

	// returned, nacked and accepted are told the broker's answers. The first two keep the message, or publish it elsewhere.
	returned(p *publisher, m *message) error
	nacked(p *publisher, m *message) error
	accepted(m *message)
	// left is told of a message that is left to the broker.
	left(m *message, reason error)

	// setsAside reports whether what a queue behind an exchange does not take goes to the refused queue.
	setsAside(exchange string) bool
	// forgoes reports whether messages go elsewhere if the user may not publish to an exchange.
	forgoes(p *publisher) bool
	// shut is told that the broker closed the channel to an exchange.
	shut(p *publisher, reason *amqp.Error) error
	// diedAt is when the broker dead-lettered a delivery, zero if nobody knows.
	diedAt(d *amqp.Delivery) time.Time
	// observe is an error if the session has to be renewed, and look is told that time passes.
	observe(now time.Time) error
	look() error
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

// verdict is a flow's own word for what happens to a message. The session only hands it back.
type verdict any

// message is a delivery that is not acknowledged yet.
type message struct {
	delivery amqp.Delivery
	verdict  verdict
	// sent is what it was published by: the verdict, or a detour.
	sent verdict
	// diedAt is when the broker dead-lettered the message, zero if nobody knows.
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

	// refused says that a queue has refused it, and that another one may have it: publishing it again may double it there.
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

// judge decides what happens to a delivery; one that cannot be judged is parked.
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

// build builds what is published for a message. An error that is a [panicError] says that something else
// may yet be.
func (s *Session) build(m *message, stamp deadletter.Stamp) (publishing amqp.Publishing, err error) {
	if panicked := s.survive(m, func() {
		publishing, err = s.Flow.build(m.sent, &m.delivery, stamp)
	}); panicked != nil {
		return amqp.Publishing{}, panicked
	}
	return publishing, err
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
		// What was refused may go elsewhere now, and would never be answered there.
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
