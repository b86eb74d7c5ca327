//go:build chaos

package chaos

import (
	"context"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
)

// consume takes messages from all work queues.
func (a *application) consume(ctx context.Context, conn *amqp.Connection) error {
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	if err := ch.Qos(50, 0, false); err != nil {
		return err
	}
	for _, queue := range workQueues {
		deliveries, err := ch.Consume(queue, "", false, false, false, false, nil)
		if err != nil {
			return err
		}
		go func() {
			for d := range deliveries {
				a.handle(queue, d)
			}
		}()
	}
	if reason, ok := <-conn.NotifyClose(make(chan *amqp.Error, 1)); ok {
		return reason
	}
	return amqp.ErrClosed
}

// handle processes or rejects a message. An error means that the connection is lost, and then the
// message comes again.
func (a *application) handle(queue string, d amqp.Delivery) {
	count, _ := d.Headers[deadletter.HeaderCount].(int64)
	if a.rejects(d.MessageId, count) {
		a.ledger.reject(d.MessageId, count, queue)
		_ = d.Reject(false)
		return
	}
	a.ledger.process(d.MessageId, count, d.Redelivered)
	_ = d.Ack(false)
}

// collectFailed takes what is parked.
func (a *application) collectFailed(ctx context.Context, conn *amqp.Connection) error {
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	deliveries, err := ch.Consume("chaos.failed", "", true, false, false, false, nil)
	if err != nil {
		return err
	}
	for d := range deliveries {
		reason, _ := d.Headers[deadletter.HeaderDeadLetterReason].(string)
		a.ledger.park(d.MessageId, reason)
	}
	return amqp.ErrClosed
}
