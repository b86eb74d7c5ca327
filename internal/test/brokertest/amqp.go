package brokertest

import (
	"context"
	"net/url"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
)

// VhostURI is the AMQP URI with the virtual host.
func (b *Broker) VhostURI() string { return b.URI + "/" + url.PathEscape(b.Vhost) }

// Dial opens the test's own connection to the virtual host. It is closed when the test ends.
func (b *Broker) Dial(t testing.TB) *amqp.Connection {
	t.Helper()
	conn := b.dial(t)
	t.Cleanup(func() { _ = conn.Close() }) // often closed by the test itself
	return conn
}

// Channel opens a channel on the connection that [Broker.Get] and [Broker.Publish] also use.
func (b *Broker) Channel(t testing.TB) *amqp.Channel {
	t.Helper()
	ch := b.channel(t)
	t.Cleanup(func() { _ = ch.Close() }) // the broker closes it after an error
	return ch
}

// Consume starts a consumer on its own connection, with this prefetch.
func (b *Broker) Consume(t testing.TB, queue string, prefetch int) (*amqp.Channel, <-chan amqp.Delivery) {
	t.Helper()
	ch, err := b.Dial(t).Channel()
	require.NoError(t, err)
	require.NoError(t, ch.Qos(prefetch, 0, false))
	deliveries, err := ch.Consume(queue, queue, false, false, false, false, nil)
	require.NoErrorf(t, err, "consume %q", queue)
	return ch, deliveries
}

// Get takes a message from a queue, and returns false if the queue is empty. The message is acknowledged.
func (b *Broker) Get(t testing.TB, queue string) (amqp.Delivery, bool) {
	t.Helper()
	ch := b.channel(t)
	defer func() { _ = ch.Close() }()
	delivery, ok, err := ch.Get(queue, true)
	require.NoErrorf(t, err, "get from %q", queue)
	return delivery, ok
}

// Publish publishes a message and waits for the broker's confirm. It fails the test if no queue takes the message. To publish
// such a message, use a [Broker.Channel].
func (b *Broker) Publish(t testing.TB, exchange, key string, message amqp.Publishing) {
	t.Helper()
	ch := b.channel(t)
	defer func() { _ = ch.Close() }()
	require.NoErrorf(t, ch.Confirm(false), "publish to %q", exchange)
	returned := ch.NotifyReturn(make(chan amqp.Return, 1))
	closed := ch.NotifyClose(make(chan *amqp.Error, 1))
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()

	confirm, err := ch.PublishWithDeferredConfirmWithContext(ctx, exchange, key, true, false, message)
	require.NoErrorf(t, err, "publish to %q", exchange)
	acked, err := confirm.WaitContext(ctx)
	require.NoErrorf(t, err, "publish to %q with key %q: no confirm", exchange, key)
	select {
	case r, ok := <-returned: // a return comes before its confirm
		if ok {
			t.Fatalf("publish to %q with key %q: returned: %s", exchange, key, r.ReplyText)
		}
	default:
	}
	select {
	case err := <-closed:
		t.Fatalf("publish to %q: %v", exchange, err)
	default:
		require.Truef(t, acked, "publish to %q with key %q: the broker refused the message (nack)", exchange, key)
	}
}

func (b *Broker) dial(t testing.TB) *amqp.Connection {
	t.Helper()
	properties := amqp.NewConnectionProperties()
	properties.SetClientConnectionName(t.Name())
	conn, err := amqp.DialConfig(b.URI, amqp.Config{Vhost: b.Vhost, Properties: properties})
	require.NoError(t, err, "dial")
	return conn
}

func (b *Broker) channel(t testing.TB) *amqp.Channel {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.conn != nil {
		if ch, err := b.conn.Channel(); err == nil {
			return ch
		}
		_ = b.conn.Close() // a test can have made the broker cut it
	}
	b.conn = b.dial(t)
	ch, err := b.conn.Channel()
	require.NoError(t, err, "open a channel")
	return ch
}

func (b *Broker) hangUp() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.conn != nil {
		_ = b.conn.Close() // it can be closed already
	}
}
