package session

import (
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
