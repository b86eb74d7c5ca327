package session

import (
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
)

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

	// deferrals is how often in a row the publish was deferred, and dueAt when it is tried again.
	deferrals int
	dueAt     time.Time
}

// accepted reports whether the broker has confirmed that it keeps the message. What the library notifies of
// does not: where a nack overtook the confirm of an earlier message and an ack of multiple ones follows,
// it calls the nack an ack. The deferred confirmation has what the broker said.
func (m *message) accepted() bool { return m.confirmation.Acked() }
