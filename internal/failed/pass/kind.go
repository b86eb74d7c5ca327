package pass

import (
	"context"
	"errors"
	"fmt"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
)

// Kind is the type of a queue.
type Kind string

// Types of queues. Another one is none that deletes or keeps messages in its own way.
const (
	Quorum  Kind = "quorum"
	Stream  Kind = "stream"
	Classic Kind = "classic"
)

// Kind asks for the type of the queue. AMQP has no question for it; but to all but streams an offset in the stream is a
// wrong argument of a consumer, and the refusal names their type. Nothing is delivered by it, and the permission read
// is enough.
func (q Queue) Kind(ctx context.Context) (Kind, error) {
	conn, err := q.Open(ctx, "ask for the type")
	if err != nil {
		return "", err
	}
	defer amqpconn.HangUp(conn.Connection)
	channel, err := amqpconn.OpenChannel(ctx, conn.Connection)
	if err != nil {
		return "", err
	}
	_, err = amqpconn.Await(ctx, fmt.Sprintf("ask for the type of queue %q", q.Name), func() (any, error) {
		if err := channel.Qos(1, 0, false); err != nil {
			return nil, err
		}
		_, err := channel.Consume(q.Name, consumerTag, false, false, false, false, amqp.Table{"x-stream-offset": "next"})
		return nil, err
	}, func(any) {})
	var reason *amqp.Error
	switch {
	case err == nil:
		return Stream, nil
	case !errors.As(err, &reason) || reason.Code != amqp.PreconditionFailed:
		return "", q.explain(err)
	case strings.HasSuffix(reason.Reason, " of queue type rabbit_classic_queue"):
		return Classic, nil
	default:
		return Quorum, nil
	}
}
