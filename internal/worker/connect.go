package worker

import (
	"context"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
)

const (
	heartbeat = 10 * time.Second
	// defaultConnectTimeout bounds the TCP connection and the TLS and AMQP handshakes together, unless
	// the URI has a connection_timeout.
	defaultConnectTimeout = 30 * time.Second
	// closeTimeout bounds the closing handshake, which flushes the last acknowledgements. With
	// [DefaultDrainTimeout] a worker has stopped before orchestrators kill, after 30 s.
	closeTimeout = 3 * time.Second
)

// connect opens a connection to the pipeline's vhost. Purpose and version are shown in the management
// UI.
func connect(ctx context.Context, uri URI, p *deadletter.Pipeline, purpose string) (*amqp.Connection, error) {
	properties := amqp.NewConnectionProperties()
	properties["product"], properties["version"] = "rabbitmq-retry", uri.client
	properties.SetClientConnectionName(connectionName(p, purpose, uri.client))
	config := amqp.Config{
		Vhost:      p.Vhost,
		Heartbeat:  heartbeat,
		Properties: properties,
	}
	return await(ctx, "connect to "+uri.String(), func() (*amqp.Connection, error) {
		return dialGuarded(uri, config)
	}, hangUp)
}

func connectionName(p *deadletter.Pipeline, purpose, version string) string {
	return fmt.Sprintf("rabbitmq-retry %s %s (%s)", p.Names, purpose, version)
}

func openChannel(ctx context.Context, conn *amqp.Connection) (*amqp.Channel, error) {
	// A late channel is closed together with its connection.
	return await(ctx, "open a channel", conn.Channel, func(*amqp.Channel) {})
}

// hangUp closes a connection. The deadline also ends a write that hangs because the broker does not
// read. An error says no more than that the connection is closed already.
func hangUp(conn *amqp.Connection) {
	_ = conn.CloseDeadline(time.Now().Add(closeTimeout))
}
