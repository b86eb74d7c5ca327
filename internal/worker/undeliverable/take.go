package undeliverable

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/worker/session"
)

const (
	// openTimeout bounds the wait for a link to the inbox.
	openTimeout = 10 * time.Second
	// parkTimeout bounds the wait for the confirm of a copy.
	parkTimeout = 15 * time.Second
	// withoutHeaders begins the error of a message whose headers are left out.
	withoutHeaders = "all headers left out: they do not fit a frame; "
)

// Inbox is the inbox of a flow on one broker.
type Inbox struct {
	URI    amqpconn.URI
	Flow   session.Flow
	Client amqpconn.Client
}

// Take parks the undeliverable messages at the head of the inbox, and returns how many there were. It ends with
// as many others as it may look at, which it leaves as they are. An error says why it could not go on; the message
// is in the inbox then.
func (i Inbox) Take(ctx context.Context, looks int) (taken int, err error) {
	config := i.Flow.Config()
	out := outlet{uri: i.URI, vhost: config.ID().Vhost, client: i.Client}
	defer out.close()
	const oneByOne = 1
	q := Queue{URI: i.URI, Vhost: config.ID().Vhost, Name: config.Inbox(), Client: i.Client}
	return q.take(ctx, looks, oneByOne, func(ctx context.Context, d *amqp.Delivery, why string) error {
		return i.park(ctx, &out, d, why)
	})
}

// park publishes what the delivery says to where it is parked, and waits until the broker keeps it.
func (i Inbox) park(ctx context.Context, out *outlet, d *amqp.Delivery, why string) error {
	if err := out.open(ctx); err != nil {
		return err
	}
	stamp := deadletter.Stamp{Now: time.Now(), PublishID: rand.Text(), FrameMax: out.conn.Config.FrameSize}
	parked, err := i.Flow.Park(d, why, stamp)
	if err != nil {
		d.Headers = nil
		parked, err = i.Flow.Park(d, withoutHeaders+why, stamp)
	}
	if err != nil {
		return err
	}
	err = out.publish(ctx, parked.Route, parked.Publishing)
	if errors.Is(err, errRefused) && parked.SetAside != nil {
		parked = *parked.SetAside
		err = out.publish(ctx, parked.Route, parked.Publishing)
	}
	if err != nil {
		return err
	}
	parked.Done()
	return nil
}
