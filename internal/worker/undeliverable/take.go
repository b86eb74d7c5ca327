package undeliverable

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"time"

	amqp10 "github.com/Azure/go-amqp"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/metrics"
)

const (
	// openTimeout bounds the wait for a link to the inbox.
	openTimeout = 10 * time.Second
	// parkTimeout bounds the wait for the confirm of a copy.
	parkTimeout = 15 * time.Second
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
	conn, err := amqpconn.ConnectAMQP10(ctx, i.URI, i.Pipeline.Vhost, i.Client)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close() }()
	link, err := openLink(ctx, conn, i.Pipeline.Names.Inbox())
	if err != nil {
		return 0, err
	}
	defer link.close(ctx)
	out := outlet{inbox: i}
	defer out.close()
	// A queue puts what comes back behind what came back before: only now, or the next one could not be reached.
	defer link.release(ctx)
	for len(link.held) < looks {
		message, err := link.next(ctx)
		if err != nil || message == nil {
			return taken, err
		}
		parked, err := i.handle(ctx, &link, &out, message)
		if err != nil {
			return taken, err
		}
		if parked {
			taken++
		}
	}
	return taken, nil
}

// handle parks a message if it is undeliverable, and holds it otherwise.
func (i Inbox) handle(ctx context.Context, link *link, out *outlet, message *amqp10.Message) (parked bool, err error) {
	// What has begun is finished.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), parkTimeout)
	defer cancel()
	translated, err := link.decode(bytes.Join(message.Data, nil))
	if err != nil || !translated.Undeliverable {
		link.held = append(link.held, message)
		return false, err
	}
	why := "AMQP 0-9-1 cannot carry the message as it was: " + strings.Join(translated.Changes, "; ")
	verdict, err := out.park(ctx, &translated.Delivery, why)
	if err != nil {
		link.held = append(link.held, message)
		return false, err
	}
	if err := link.receiver.AcceptMessage(ctx, message); err != nil {
		return false, err
	}
	i.Watch.Received()
	i.Watch.Failed(verdict.Reason)
	i.Log.Info("message parked in the failed queue", "reason", verdict.Reason, "queue", verdict.Letter.Queue,
		"attempts", verdict.Letter.Count, "message_id", translated.Delivery.MessageId, "error", verdict.Error)
	return true, nil
}
