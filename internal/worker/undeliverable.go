package worker

import (
	"context"
	"log/slog"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/worker/session"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/worker/undeliverable"
)

// maxLooks is more than several workers have in flight.
const maxLooks = 1024

// search looks for messages that the broker cannot deliver.
type search struct {
	// looks is how many others it passes before it gives up. One that was passed may be in front of the next time:
	// so the number doubles until there is a success.
	looks int
}

// take parks the messages over which the broker ended the last session, and reports whether there were any.
func (s *search) take(
	ctx context.Context, o Options, uri amqpconn.URI, flow session.Flow, log *slog.Logger,
) bool {
	inbox := undeliverable.Inbox{URI: uri, Flow: flow, Client: session.Client(flow.Config(), "undeliverable", o.Version)}
	taken, err := inbox.Take(ctx, max(1, s.looks))
	if err != nil {
		log.Warn("the broker cannot deliver the message at the head of the inbox, and it cannot be parked over AMQP 1.0: trying again",
			"queue", flow.Config().Inbox(), "error", err)
	}
	s.looks = min(max(1, s.looks)*2, maxLooks)
	if taken > 0 {
		s.looks = 1
	}
	return taken > 0
}
