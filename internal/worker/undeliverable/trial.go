package undeliverable

import (
	"context"
	"slices"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
)

// trial finds undeliverable messages with which AMQP 1.0 shows nothing wrong. If a client has copied the deaths that the
// broker noted on a message, RabbitMQ 4 hides the copy behind deaths of its own, and fails to translate it.
type trial struct {
	*link
	queue Queue
	park  park
	// conn and channel are nil until the broker has to deliver over AMQP 0-9-1.
	conn    *amqp.Connection
	channel *amqp.Channel
}

// run tries each held message that has deaths, and replaces those that the broker fails on. All else is held again.
func (t *trial) run(ctx context.Context) (taken int, err error) {
	for i, suspect := range t.held {
		if !suspect.dead || err != nil || ctx.Err() != nil {
			continue
		}
		parked := false
		t.held[i], parked, err = t.try(ctx, suspect)
		if parked {
			taken++
		}
	}
	t.held = slices.DeleteFunc(t.held, func(h held) bool { return h.Message == nil })
	return taken, err
}

// try gives a message back, has the broker deliver it over AMQP 0-9-1, and takes it again. Another consumer can come in
// between: then this takes another message, or none.
func (t *trial) try(ctx context.Context, suspect held) (again held, parked bool, err error) {
	if err := t.receiver.ReleaseMessage(ctx, suspect.Message); err != nil {
		return held{}, false, err
	}
	if err := t.drain(ctx); err != nil {
		return held{}, false, err
	}
	failed, err := t.failsToDeliver(ctx)
	if err != nil {
		return held{}, false, err
	}
	message, err := t.next(ctx, 1)
	if err != nil || message == nil {
		return held{}, false, err
	}
	if !failed {
		suspect = held{}
	}
	return t.handle(ctx, message, t.park, suspect)
}

// failsToDeliver reports whether the broker closes the connection over the message at the head of the queue. It gives
// the message back.
func (t *trial) failsToDeliver(ctx context.Context) (fails bool, err error) {
	if err := t.connect(ctx); err != nil {
		return false, err
	}
	d, some, err := t.channel.Get(t.queue.Name, false)
	if amqpconn.IsCode(err, amqp.InternalError) {
		t.close()
		return true, nil
	}
	if err != nil || !some {
		return false, err
	}
	if err := d.Nack(false, true); err != nil {
		return false, err
	}
	_, err = t.channel.QueueDeclarePassive(t.queue.Name, false, false, false, false, nil) // follows the nack to the queue
	return false, err
}

func (t *trial) connect(ctx context.Context) (err error) {
	if t.conn != nil {
		return nil
	}
	if t.conn, err = amqpconn.Connect(ctx, t.queue.URI, t.queue.Vhost, t.queue.Client); err != nil {
		t.conn = nil
		return err
	}
	t.channel, err = amqpconn.OpenChannel(ctx, t.conn)
	return err
}

func (t *trial) close() {
	if t.conn != nil {
		amqpconn.HangUp(t.conn)
		t.conn = nil
	}
}
