package worker

import (
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
)

// message is a delivery that is not acknowledged yet.
type message struct {
	delivery amqp.Delivery
	verdict  deadletter.Verdict
	// diedAt is when the broker dead-lettered the message, zero if nobody knows.
	diedAt time.Time
	// judgedBy is the configuration that the verdict comes from.
	judgedBy *deadletter.Pipeline

	// undecodable says why the headers, and with them the verdict, are not known.
	undecodable error
	// panicked tells that the worker panicked over the message, and that the log says so.
	panicked bool

	// publishID, publishTag and publishedAt are those of the latest publish.
	publishID   string
	publishTag  uint64
	publishedAt time.Time

	// holds is how often in a row the message was held, and heldUntil when it is published again.
	holds     int
	heldUntil time.Time
}
