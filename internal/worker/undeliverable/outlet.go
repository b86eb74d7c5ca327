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
)

// outlet publishes copies. It connects when there is the first one.
type outlet struct {
	uri     amqpconn.URI
	vhost   string
	client  amqpconn.Client
	conn    *amqp.Connection
	channel *amqp.Channel
	returns chan amqp.Return
	closed  chan *amqp.Error
}

func (o *outlet) open(ctx context.Context) (err error) {
	if o.conn != nil {
		return nil
	}
	if o.conn, err = amqpconn.Connect(ctx, o.uri, o.vhost, o.client); err != nil {
		return err
	}
	if o.channel, err = amqpconn.OpenChannel(ctx, o.conn); err != nil {
		return err
	}
	o.returns = o.channel.NotifyReturn(make(chan amqp.Return, 1))
	o.closed = o.channel.NotifyClose(make(chan *amqp.Error, 1))
	_, err = amqpconn.Await(ctx, "turn publisher confirms on", func() (any, error) {
		return nil, o.channel.Confirm(false)
	}, func(any) {})
	return err
}

// publish is an error unless a queue has the message.
func (o *outlet) publish(ctx context.Context, route deadletter.Route, publishing amqp.Publishing) error {
	const mandatory, immediate = true, false
	confirmation, err := o.channel.PublishWithDeferredConfirm(route.Exchange, route.Key, mandatory, immediate, publishing)
	if err != nil {
		return fmt.Errorf("publish to exchange %q: %w", route.Exchange, err)
	}
	kept, err := confirmation.WaitContext(ctx)
	if err != nil {
		return fmt.Errorf("publish to exchange %q: no confirm: %w", route.Exchange, err)
	}
	if kept {
		return o.unlessReturned()
	}
	if o.channel.IsClosed() {
		return fmt.Errorf("publish to exchange %q: the broker closed the channel: %w", route.Exchange, <-o.closed)
	}
	return errRefused
}

// unlessReturned is an error if the message that was just confirmed came back, which it did before.
func (o *outlet) unlessReturned() error {
	select {
	case _, returned := <-o.returns:
		if returned {
			return errUnbound
		}
	default:
	}
	return nil
}

func (o *outlet) close() {
	if o.conn != nil {
		amqpconn.HangUp(o.conn)
	}
}
