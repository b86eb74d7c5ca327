package undeliverable

import (
	"context"
	"errors"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
)

var (
	errUnbound = errors.New("the failed or unrouted exchange has no queue; run terraform apply")
	errRefused = errors.New("the broker refused the message")
	errSilent  = errors.New("no confirm")
)

// publisher publishes copies of messages in a queue. It connects for the first copy.
type publisher struct {
	queue Queue
	conn  *amqp.Connection
	// Confirming has no channel at first, and after a message without an answer.
	amqpconn.Confirming
}

func (o *publisher) open(ctx context.Context) (err error) {
	if o.conn == nil {
		if o.conn, err = amqpconn.Connect(ctx, o.queue.URI, o.queue.Vhost, o.queue.Client); err != nil {
			return err
		}
	}
	if o.Channel != nil {
		return nil
	}
	opened, err := amqpconn.OpenConfirming(ctx, o.conn, 1)
	if err == nil {
		o.Confirming = opened
	}
	return err
}

// publish returns an error unless a queue has the message.
func (o *publisher) publish(ctx context.Context, route deadletter.Route, publishing amqp.Publishing) error {
	if err := o.open(ctx); err != nil {
		return err
	}
	const mandatory, immediate = true, false
	confirmation, err := o.PublishWithDeferredConfirm(route.Exchange, route.Key, mandatory, immediate, publishing)
	if err != nil {
		return fmt.Errorf("publish to exchange %q: %w", route.Exchange, err)
	}
	kept, err := confirmation.WaitContext(ctx)
	if err != nil {
		o.Confirming = amqpconn.Confirming{}
		return fmt.Errorf("publish to exchange %q: %w (%w)", route.Exchange, errSilent, err)
	}
	if kept && len(o.Returns) == 0 {
		return nil
	}
	if kept {
		<-o.Returns // came before the confirm
		return errUnbound
	}
	if o.IsClosed() {
		return fmt.Errorf("publish to exchange %q: the broker closed the channel (%w)", route.Exchange, <-o.Closed)
	}
	return errRefused
}

func (o *publisher) close() {
	if o.conn != nil {
		amqpconn.HangUp(o.conn)
	}
}
