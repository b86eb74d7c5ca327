package amqpconn

import (
	"context"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn/guard"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn/raw"
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

// Connect opens a connection to the vhost that survives messages which the library cannot decode. Errors name
// the broker's address, never the credentials.
func Connect(ctx context.Context, uri URI, vhost string, client Client) (*amqp.Connection, error) {
	return Await(ctx, "connect to "+uri.String(), func() (*amqp.Connection, error) {
		conn, _, err := dialBelow(uri, client.config(vhost), guard.New)
		return conn, err
	}, HangUp)
}

// Bounded is a connection that takes no more messages in than fit.
type Bounded struct {
	*amqp.Connection
	below *guard.Conn
}

// ConnectBounded is [Connect] for deliveries that may be large. While there are more bytes of bodies than the limit,
// and not released, nothing is read: who waits for an answer of the broker meanwhile has to release some.
func ConnectBounded(ctx context.Context, uri URI, vhost string, client Client, limit int) (Bounded, error) {
	return Await(ctx, "connect to "+uri.String(), func() (Bounded, error) {
		conn, below, err := dialBelow(uri, client.config(vhost), guard.New)
		if err == nil {
			below.Limit(limit)
		}
		return Bounded{conn, below}, err
	}, func(b Bounded) { HangUp(b.Connection) })
}

// Release says that so many bytes of bodies are done with.
func (b Bounded) Release(bytes int) { b.below.Release(bytes) }

// Full reports whether nothing more is read.
func (b Bounded) Full() bool { return b.below.Full() }

// HangUp is [HangUp] for a connection whose messages nobody takes any more: the broker's answer may be behind them.
func (b Bounded) HangUp() {
	cut := func() { _ = b.below.Close() } // an error says that it is closed
	if b.Full() {
		cut()
	}
	defer time.AfterFunc(closeTimeout, cut).Stop()
	HangUp(b.Connection)
}

// Raw is a connection whose messages have their properties encoded.
type Raw struct {
	*amqp.Connection
	below *raw.Conn
}

// Properties are the encoded properties of a delivery or a return with these headers. They may be asked for
// once.
func (r Raw) Properties(h amqp.Table) []byte { return r.below.Properties(h) }

// Limit bounds the bytes of what has come, and is not released. While there is more, nothing is read: who waits
// for an answer of the broker has to go on taking messages.
func (r Raw) Limit(bytes int) { r.below.Limit(bytes) }

// Release says that so many bytes of properties and bodies are done with.
func (r Raw) Release(bytes int) { r.below.Release(bytes) }

// Fits reports whether a message with encoded properties of this size can be published.
func (r Raw) Fits(size int) bool { return r.below.Fits(size) }

// ConnectRaw is [Connect] for messages that have to stay as they are. What is published needs [raw.Headers].
func ConnectRaw(ctx context.Context, uri URI, vhost string, client Client) (Raw, error) {
	return Await(ctx, "connect to "+uri.String(), func() (Raw, error) {
		conn, below, err := dialBelow(uri, client.config(vhost), raw.New)
		return Raw{conn, below}, err
	}, func(r Raw) { HangUp(r.Connection) })
}

func (c Client) config(vhost string) amqp.Config {
	properties := amqp.NewConnectionProperties()
	properties["product"], properties["version"] = c.Product, c.Version
	properties.SetClientConnectionName(c.Name)
	return amqp.Config{Vhost: vhost, Heartbeat: heartbeat, Properties: properties}
}

// HangUp closes a connection within three seconds. The deadline also ends a write that hangs because the
// broker does not read. An error says no more than that the connection is closed already.
func HangUp(conn *amqp.Connection) {
	_ = conn.CloseDeadline(time.Now().Add(closeTimeout))
}
