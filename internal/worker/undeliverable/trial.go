package undeliverable

import (
	"context"
	"slices"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
)

// hidden describes the change of a message that AMQP 1.0 shows to be in order.
const hidden = "the broker's annotations, which a client copied, left out, and headers that are arrays or tables"

// trial finds undeliverable messages that look right over AMQP 1.0. If a client has copied the deaths that the
// broker noted on a message, RabbitMQ 4 hides the copy behind deaths of its own, and fails to translate it.
type trial struct {
	*link
	queue Queue
	// taken is how many messages the trial has parked.
	taken int
	// conn and channel are nil until the first trial.
	conn    *amqp.Connection
	channel *amqp.Channel
}

// run tries each held message that has deaths, and parks those that the broker fails on. All else is held again.
func (t *trial) run(ctx context.Context) (err error) {
	for i, suspect := range t.held {
		if !suspect.dead || err != nil || ctx.Err() != nil {
			continue
		}
		var again held
		again, err = t.judge(ctx, suspect)
		t.held[i] = again // after the call, which can move the held messages
	}
	t.held = slices.DeleteFunc(t.held, func(h held) bool { return h.Message == nil })
	return err
}

// judge parks a message if the broker fails on it twice, and does not fail while the message is held. Otherwise a message
// that another connection gave back can be the cause.
func (t *trial) judge(ctx context.Context, suspect held) (again held, err error) {
	again, failed, err := t.try(ctx, suspect, false)
	if err != nil || !failed {
		return again, err
	}
	next, failed, err := t.try(ctx, held{}, false)
	if next.Message != nil {
		t.held = append(t.held, next)
	}
	if err != nil || failed {
		return again, err
	}
	again, _, err = t.try(ctx, again, true)
	return again, err
}

// try gives a message back, or none, has the broker deliver the head of the queue over AMQP 0-9-1, and takes that. It
// reports whether the broker failed on this very message. If it is the last trial, it parks the message then. Another
// consumer can come in between: then this takes another message, or none.
func (t *trial) try(ctx context.Context, suspect held, last bool) (again held, failed bool, err error) {
	if suspect.Message != nil {
		if err := t.receiver.ReleaseMessage(ctx, suspect.Message); err != nil {
			return held{}, false, err
		}
	}
	if err := t.drain(ctx); err != nil {
		return held{}, false, err
	}
	delivered, failed, err := t.deliver(ctx)
	if err != nil || !delivered && !failed {
		return held{}, false, err
	}
	message, err := t.next(ctx, 1)
	if err != nil || message == nil {
		return held{}, failed, err
	}
	guilty := held{}
	if failed && last {
		guilty = suspect
	}
	again, parked, err := t.handle(ctx, message, guilty)
	if parked {
		t.taken++
	}
	return again, failed && (suspect.Message == nil || again.content == suspect.content), err
}

// deliver has the broker deliver the message at the head of the queue, and gives it back. It reports whether the broker closed
// the connection over it.
func (t *trial) deliver(ctx context.Context) (delivered, failed bool, err error) {
	if t.conn == nil {
		if t.conn, err = amqpconn.Connect(ctx, t.queue.URI, t.queue.Vhost, t.queue.Client); err != nil {
			return false, false, err
		}
		if t.channel, err = amqpconn.OpenChannel(ctx, t.conn); err != nil {
			return false, false, err
		}
	}
	d, delivered, err := t.channel.Get(t.queue.Name, false)
	if amqpconn.IsCode(err, amqp.InternalError) {
		t.close()
		return false, true, nil
	}
	if err != nil || !delivered {
		return false, false, err
	}
	if err := d.Nack(false, true); err != nil {
		return true, false, err
	}
	_, err = t.channel.QueueDeclarePassive(t.queue.Name, false, false, false, false, nil) // follows the nack to the queue
	return true, false, err
}

func (t *trial) close() {
	if t.conn != nil {
		amqpconn.HangUp(t.conn)
		t.conn = nil
	}
}
