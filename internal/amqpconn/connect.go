package amqpconn

import (
	"context"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

const (
	heartbeat = 10 * time.Second
	// defaultConnectTimeout bounds the TCP connection and the TLS and AMQP handshakes together, unless
	// the URI has a connection_timeout.
	defaultConnectTimeout = 30 * time.Second
	// closeTimeout bounds the closing handshake, which flushes the last acknowledgements.
	closeTimeout = 3 * time.Second
)

// Client is what a connection says of the program that opened it. The management UI shows all of it.
type Client struct {
	// Name tells the connections of a program apart.
	Name    string
	Product string
	Version string
}

// Connect opens a connection to the vhost. Errors name the broker's address, never the credentials.
func Connect(ctx context.Context, uri URI, vhost string, client Client) (*amqp.Connection, error) {
	properties := amqp.NewConnectionProperties()
	properties["product"], properties["version"] = client.Product, client.Version
	properties.SetClientConnectionName(client.Name)
	config := amqp.Config{
		Vhost:      vhost,
		Heartbeat:  heartbeat,
		Properties: properties,
	}
	return Await(ctx, "connect to "+uri.String(), func() (*amqp.Connection, error) {
		return dialGuarded(uri, config)
	}, HangUp)
}

// OpenChannel opens a channel.
func OpenChannel(ctx context.Context, conn *amqp.Connection) (*amqp.Channel, error) {
	// A late channel is closed together with its connection.
	return Await(ctx, "open a channel", conn.Channel, func(*amqp.Channel) {})
}

// HangUp closes a connection within three seconds. The deadline also ends a write that hangs because the
// broker does not read. An error says no more than that the connection is closed already.
func HangUp(conn *amqp.Connection) {
	_ = conn.CloseDeadline(time.Now().Add(closeTimeout))
}
