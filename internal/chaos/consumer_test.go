//go:build chaos

package chaos

import (
	"context"

	amqp "github.com/rabbitmq/amqp091-go"
)

// consume takes messages from all work queues.
func (c *chaos) consume(ctx context.Context, conn *amqp.Connection) error {
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
				c.handle(queue, d)
			}
		}()
	}
	if reason, ok := <-conn.NotifyClose(make(chan *amqp.Error, 1)); ok {
		return reason
	}
	return amqp.ErrClosed
}

// collectParked takes what is parked.
func (c *chaos) collectParked(ctx context.Context, conn *amqp.Connection) error {
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	deliveries, err := ch.Consume(c.parking(), "", true, false, false, false, nil)
	if err != nil {
		return err
	}
	for d := range deliveries {
		c.collect(d)
	}
	return amqp.ErrClosed
}
