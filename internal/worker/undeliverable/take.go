package undeliverable

import (
	"context"
	"crypto/rand"
	"log/slog"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/metrics"
)

const (
	// openTimeout bounds the wait for a link to the inbox.
	openTimeout = 10 * time.Second
	// parkTimeout bounds the wait for the confirm of a copy.
	parkTimeout = 15 * time.Second
	// withoutHeaders begins the error of a message whose headers are left out.
	withoutHeaders = "all headers left out: they do not fit a frame; "
)

// Inbox is the inbox of a pipeline on one broker.
type Inbox struct {
	URI      amqpconn.URI
	Pipeline *deadletter.Pipeline
	Client   amqpconn.Client
	Log      *slog.Logger
	Watch    *metrics.Pipeline
}

// Take parks the undeliverable messages at the head of the inbox, and returns how many there were. It ends with
// as many others as it may look at, which it leaves as they are. An error says why it could not go on; the message
// is in the inbox then.
func (i Inbox) Take(ctx context.Context, looks int) (taken int, err error) {
	out := outlet{uri: i.URI, vhost: i.Pipeline.Vhost, client: i.Client}
	defer out.close()
	const oneByOne = 1
	q := Queue{URI: i.URI, Vhost: i.Pipeline.Vhost, Name: i.Pipeline.Names.Inbox(), Client: i.Client}
	return q.take(ctx, looks, oneByOne, func(ctx context.Context, d *amqp.Delivery, why string) error {
		verdict, err := i.park(ctx, &out, d, why)
		if err != nil {
			return err
		}
		i.Watch.Received()
		i.Watch.Failed(verdict.Reason)
		i.Log.Info("message parked in the failed queue", "reason", verdict.Reason, "queue", verdict.Letter.Queue,
			"attempts", verdict.Letter.Count, "message_id", d.MessageId, "error", verdict.Error)
		return nil
	})
}

// park publishes what the delivery says to the failed exchange, and waits until the broker keeps it.
func (i Inbox) park(ctx context.Context, out *outlet, d *amqp.Delivery, why string) (deadletter.Verdict, error) {
	if err := out.open(ctx); err != nil {
		return deadletter.Verdict{}, err
	}
	p := i.Pipeline
	stamp := deadletter.Stamp{Now: time.Now(), PublishID: rand.Text(), FrameMax: out.conn.Config.FrameSize}
	verdict := p.Undeliverable(d, why)
	publishing, err := p.Publishing(verdict, d, stamp)
	if err != nil {
		d.Headers = nil
		verdict.Error = withoutHeaders + why
		publishing, err = p.Publishing(verdict, d, stamp)
	}
	if err != nil {
		return verdict, err
	}
	return verdict, out.publish(ctx, p.Route(verdict), publishing)
}
