//go:build chaos

package chaos

import (
	"context"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

const (
	// unconfirmed is how many messages of a producer may wait for their confirms.
	unconfirmed = 1000
	// lastConfirms is how long a producer that stops waits for them.
	lastConfirms = 10 * time.Second
)

type sentMessage struct {
	id      string
	confirm *amqp.DeferredConfirmation
}

// produce publishes at this rate. What is not confirmed is not published again: each id is published
// once, so that every duplicate is somebody else's.
func (c *chaos) produce(name string, perSecond int) func(context.Context, *amqp.Connection) error {
	count := 0
	return func(ctx context.Context, conn *amqp.Connection) error {
		ch, err := conn.Channel()
		if err != nil {
			return err
		}
		if err := ch.Confirm(false); err != nil {
			return err
		}
		sent := make(chan sentMessage, unconfirmed)
		done := make(chan struct{})
		go func() { defer close(done); c.settle(sent) }()
		defer func() {
			close(sent)
			select {
			case <-done:
			case <-time.After(lastConfirms):
				_ = ch.Close() // nothing is confirmed any more
				<-done
			}
		}()
		ticker := time.NewTicker(time.Second / time.Duration(perSecond))
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-ticker.C:
			}
			count++
			id := fmt.Sprintf("%s-%06d", name, count)
			exchange, key, m := c.message(id, count)
			confirm, err := ch.PublishWithDeferredConfirm(exchange, key, false, false, m)
			if err != nil {
				c.ledger.unanswered(id)
				return err
			}
			sent <- sentMessage{id, confirm}
		}
	}
}

// settle enters what the broker has taken.
func (c *chaos) settle(sent <-chan sentMessage) {
	for m := range sent {
		if m.confirm.Wait() {
			c.ledger.confirm(m.id)
		} else {
			c.ledger.unanswered(m.id)
		}
	}
}
