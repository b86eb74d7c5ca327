package worker

import (
	"context"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
)

// connect opens a connection to the pipeline's vhost. Purpose and version are shown in the management
// UI.
func connect(ctx context.Context, uri amqpconn.URI, p *deadletter.Pipeline, purpose, version string) (*amqp.Connection, error) {
	return amqpconn.Connect(ctx, uri, p.Vhost, amqpconn.Client{
		Name:    fmt.Sprintf("rabbitmq-retry %s %s (%s)", p.Names, purpose, version),
		Product: "rabbitmq-retry",
		Version: version,
	})
}
