package undeliverable

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
)

var (
	errUnbound = errors.New("the failed exchange has no queue; run terraform apply")
	errRefused = errors.New("the broker refused the message")
)

// outlet publishes copies to the failed exchange. It connects when there is the first one.
type outlet struct {
	inbox   Inbox
	conn    *amqp.Connection
	channel *amqp.Channel
	returns chan amqp.Return
	closed  chan *amqp.Error
}

// park publishes what the delivery says to the failed exchange, and waits until the broker keeps it.
func (o *outlet) park(ctx context.Context, d *amqp.Delivery, why string) (deadletter.Verdict, error) {
	if err := o.open(ctx); err != nil {
		return deadletter.Verdict{}, err
	}
	p := o.inbox.Pipeline
	stamp := deadletter.Stamp{Now: time.Now(), PublishID: rand.Text(), FrameMax: o.conn.Config.FrameSize}
	verdict := p.Undeliverable(d, why)
	publishing, err := p.Publishing(verdict, d, stamp)
	if err != nil {
		d.Headers = nil
		verdict.Error = "all headers left out: they do not fit a frame; " + why
		publishing, err = p.Publishing(verdict, d, stamp)
	}
	if err != nil {
		return verdict, err
	}
	return verdict, o.publish(ctx, p.Route(verdict), publishing)
}

func (o *outlet) open(ctx context.Context) (err error) {
	if o.conn != nil {
		return nil
	}
	if o.conn, err = amqpconn.Connect(ctx, o.inbox.URI, o.inbox.Pipeline.Vhost, o.inbox.Client); err != nil {
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
