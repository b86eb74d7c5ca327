package undeliverable

import (
	"bytes"
	"context"
	"strings"

	amqp10 "github.com/Azure/go-amqp"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
)

// Queue is one with messages that the broker cannot deliver over AMQP 0-9-1.
type Queue struct {
	URI         amqpconn.URI
	Vhost, Name string
	Client      amqpconn.Client
}

// park keeps a copy of a message that AMQP 0-9-1 can carry, and why it is another.
type park func(ctx context.Context, d *amqp.Delivery, why string) error

// take parks undeliverable messages from the head of the queue on, and returns how many there were. It ends with as many
// others as it may look at, which it leaves as they are. An error says why it could not go on; the message is in the queue
// then.
func (q Queue) take(ctx context.Context, looks int, batch uint32, park park) (taken int, err error) {
	conn, err := amqpconn.ConnectAMQP10(ctx, q.URI, q.Vhost, q.Client)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close() }()
	link, err := openLink(ctx, conn, q.Name, batch)
	if err != nil {
		return 0, err
	}
	defer link.close(ctx)
	// A queue puts what comes back behind what came back before: only now, or the next one could not be reached.
	defer link.release(ctx)
	for len(link.held) < looks {
		message, err := link.next(ctx)
		if err != nil || message == nil {
			return taken, err
		}
		parked, err := link.handle(ctx, message, park)
		if err != nil {
			return taken, err
		}
		if parked {
			taken++
		}
	}
	return taken, nil
}

// handle parks a message if it is undeliverable, and holds it otherwise.
func (l *link) handle(ctx context.Context, message *amqp10.Message, park park) (parked bool, err error) {
	// What has begun is finished.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), parkTimeout)
	defer cancel()
	translated, err := l.decode(bytes.Join(message.Data, nil))
	if err != nil || !translated.Undeliverable {
		l.hold(message)
		return false, err
	}
	why := "AMQP 0-9-1 cannot carry the message as it was: " + strings.Join(translated.Changes, "; ")
	if err := park(ctx, &translated.Delivery, why); err != nil {
		l.hold(message)
		return false, err
	}
	return true, l.receiver.AcceptMessage(ctx, message)
}
