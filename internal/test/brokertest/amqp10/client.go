package amqp10

import (
	"context"
	"errors"
	"net"
	"net/url"
	"testing"
	"time"

	amqp "github.com/Azure/go-amqp"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

const (
	// timeout is long enough for a busy machine.
	timeout = time.Minute
	// endTimeout is longer than any broker takes to confirm the end of a session.
	endTimeout = 15 * time.Second
)

// Client is connected to a virtual host over AMQP 1.0.
type Client struct {
	sending *amqp.Session
	// uri and vhost are for a connection of its own whenever messages are received. RabbitMQ 4.0 sometimes does not answer
	// to the second session of a connection.
	uri   amqpconn.URI
	vhost string
	// queues begins the address of a queue.
	queues string
	// plugin says that RabbitMQ 3 speaks AMQP 1.0 by a plugin.
	plugin bool
}

// Dial connects to a broker that speaks AMQP 1.0. The connections are closed when the test ends.
func Dial(t testing.TB, b *brokertest.Broker) *Client {
	t.Helper()
	u, err := url.Parse(b.URI)
	require.NoError(t, err)
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", u.Host)
	require.NoError(t, err)
	sending, err := amqp.NewConn(t.Context(), unwrapping{conn}, &amqp.ConnOptions{
		HostName: "vhost:" + b.Vhost, SASLType: amqp.SASLTypePlain(b.Username, b.Password),
	})
	require.NoError(t, err)
	uri, err := amqpconn.ParseURI(b.URI)
	require.NoError(t, err)
	t.Cleanup(func() { _ = sending.Close() }) // can be closed already
	queues, plugin := "/queues/", !b.VersionAtLeast("4.0")
	if plugin {
		queues = "/amq/queue/"
	}
	return &Client{sending: begin(t, sending), uri: uri, vhost: b.Vhost, queues: queues, plugin: plugin}
}

// Queue is the address of a queue.
func (c *Client) Queue(name string) string { return c.queues + url.PathEscape(name) }

func begin(t testing.TB, conn *amqp.Conn) *amqp.Session {
	t.Helper()
	session, err := conn.NewSession(t.Context(), nil)
	require.NoError(t, err)
	return session
}

// Sender sends to an address.
type Sender struct{ link *amqp.Sender }

// To makes a sender to an address, such as /queues/orders or /exchanges/shop/key.
func (c *Client) To(t testing.TB, address string) Sender {
	t.Helper()
	link, err := c.sending.NewSender(t.Context(), address, nil)
	require.NoErrorf(t, err, "send to %s", address)
	return Sender{link}
}

// Send publishes an encoded message, and waits until the broker has accepted it.
func (s Sender) Send(t testing.TB, raw []byte) {
	t.Helper()
	require.NoError(t, s.Try(t, raw))
}

// Try is [Sender.Send] for a message that the broker can refuse. It returns the refusal.
func (s Sender) Try(t testing.TB, raw []byte) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	return s.link.Send(ctx, amqp.NewMessage(raw), nil)
}

// Handle receives a number of messages from a queue and settles each.
func (c *Client) Handle(t testing.TB, queue string, messages int, settle func(context.Context, *amqp.Receiver, *amqp.Message) error) {
	t.Helper()
	conn, err := amqpconn.ConnectAMQP10(t.Context(), c.uri, c.vhost, amqpconn.Client{Name: t.Name()})
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	session := begin(t, conn)
	link, err := session.NewReceiver(t.Context(), c.Queue(queue), &amqp.ReceiverOptions{Credit: -1})
	require.NoErrorf(t, err, "receive from %s", queue)
	for i := range messages {
		if err := handleNext(t, link, settle); err != nil {
			t.Fatalf("receive message %d of %d from %s: %v", i+1, messages, queue, err)
		}
	}
	c.end(t, session)
}

func handleNext(t testing.TB, link *amqp.Receiver, settle func(context.Context, *amqp.Receiver, *amqp.Message) error) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	if err := link.IssueCredit(1); err != nil {
		return err
	}
	m, err := link.Receive(ctx, nil)
	if err != nil {
		return err
	}
	return settle(ctx, link, m)
}

// end waits until the broker has handled all settlements. A busy RabbitMQ 3 sometimes ends a session without an answer, but
// only after it has handled all earlier frames.
func (c *Client) end(t testing.TB, session *amqp.Session) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), endTimeout)
	defer cancel()
	if err := session.Close(ctx); err != nil && (!c.plugin || !errors.Is(err, context.DeadlineExceeded)) {
		t.Fatal(err)
	}
}

// Reject rejects a number of messages of a queue, so that the broker dead-letters them.
func (c *Client) Reject(t testing.TB, queue string, messages int) {
	t.Helper()
	c.Handle(t, queue, messages, func(ctx context.Context, link *amqp.Receiver, m *amqp.Message) error {
		return link.RejectMessage(ctx, m, nil)
	})
}

var errFrame = errors.New("a test sends a transfer of an unexpected form")

// Spoil sends messages that RabbitMQ 4 cannot deliver over AMQP 0-9-1, and does not show why over AMQP 1.0. Each is a copy
// that a consumer makes of a message, with the annotations of its first death. The queue must dead-letter to the other one, which
// must be empty, and has the copies at the end.
func (c *Client) Spoil(t testing.TB, queue, other string, messages ...Message) {
	t.Helper()
	sender := c.To(t, c.Queue(queue))
	for _, m := range messages {
		sender.Send(t, m.Encode())
	}
	c.Reject(t, queue, len(messages))
	var copies [][]byte
	c.Handle(t, other, len(messages), func(ctx context.Context, link *amqp.Receiver, m *amqp.Message) error {
		var received amqp.Message
		require.NoError(t, received.UnmarshalBinary(m.GetData()))
		encoded, err := received.MarshalBinary()
		require.NoError(t, err)
		copies = append(copies, encoded)
		return link.AcceptMessage(ctx, m)
	})
	for _, encoded := range copies {
		sender.Send(t, encoded)
	}
	c.Reject(t, queue, len(messages))
}
