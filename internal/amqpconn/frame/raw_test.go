package frame_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn/frame"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

// headers returns the properties of a message that has only headers.
func headers(table string) string { return "\x20\x00" + long(table) }

// everything returns encoded properties with each property and each type of value that brokers accept. It includes
// values that the client cannot decode or express.
func everything(user string) map[string]string {
	all := map[string]string{
		"nothing":       "\x00\x00",
		"no headers":    headers(""),
		"empty strings": "\xc0\x00\x00\x00",
		"every property": "\xff\xf8\x01t\x01e" + long("\x01kV") + "\x02\x00\x01c\x01r\x059999" + "9" +
			"\x01m\x00\x00\x00\x00\x00\x00\x00\x00\x01y" + string(rune(len(user))) + user + "\x01a",
		"priority 0":   "\x08\x00\x00",
		"priority 255": "\x08\x00\xff",
		"transient":    "\x10\x00\x01",
		"deep":         headers(nested("F", 2000)),
		"many":         headers(many(9000)),
		"as large as a frame": headers("\x01kS" + long(strings.Repeat("x",
			frameMax-8-12-2-4-3-4))),
		"looks wrapped": headers("\x03rawx" + long("\x00\x00")),
		"list":          headers("\x01kA" + long("V"+"t\x01"+"S"+long("s")+"F"+long("\x01kI1234"))),
	}
	for tag, value := range map[string]string{
		"t": "\x01", "b": "\x80", "B": "\xff", "s": "\x80\x00", "u": "\xff\xff", "I": "\x80\x00\x00\x00", "i": "\xff\xff\xff\xff",
		"f": "\x7f\x7f\xff\xff", "l": "\x80\x00\x00\x00\x00\x00\x00\x00", "d": "\x3f\xf0\x00\x00\x00\x00\x00\x00",
		"T": "\x00\x00\x00\x00\x65\x00\x00\x00", "D": "\x02\x00\x00\x01\x00", "V": "", "S": long(""), "x": long("\x00\xff"),
		"F": long(""), "A": long(""),
	} {
		all["type "+tag] = headers("\x01k" + tag + value)
	}
	return all
}

func TestPropertiesStayAsTheyAre(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	config, ca := brokertest.ServerTLS(t)
	for name, uri := range map[string]string{"plain": b.URI, "tls": b.ThroughTLS(t, config, "cacertfile", ca)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b.DeclareQueue(t, name, "classic", nil) // a quorum queue adds its delivery count
			conn := connect(t, uri, b.Vhost)
			for kind, properties := range everything(b.Username) {
				for _, body := range []string{"", "body", strings.Repeat("b", 300_000)} {
					publish(t, conn, name, properties, body)
					if got, gotBody := take(t, conn, name); got != properties || gotBody != body {
						t.Errorf("%s: %.200q came back as %.200q (%d bytes of body)", kind, properties, got, len(gotBody))
					}
				}
			}
		})
	}
}

// Returned messages have their properties, too.
func TestReturns(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	conn := connect(t, b.URI, b.Vhost)
	ch := channel(t, conn)
	returns := ch.NotifyReturn(make(chan amqp.Return, 1))
	for name, properties := range everything(b.Username) {
		require.NoError(t, ch.Publish("", "nowhere", true, false, amqp.Publishing{Headers: frame.Headers([]byte(properties))}))
		r := brokertest.Receive(t, returns)
		require.Equal(t, properties, string(conn.Properties(r.Headers)), name)
	}
}

// A broker adds to headers that already have the largest size.
func TestHeadersLargerThanAFrame(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	b.DeclareQueue(t, "failed", "classic", nil)
	b.DeclareQueue(t, "work", "classic", map[string]any{
		"x-message-ttl": 1, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "failed",
	})
	conn := connect(t, b.URI, b.Vhost)
	large := headers("\x01kS" + long(strings.Repeat("x", frameMax-100)))
	publish(t, conn, "work", large, "body")
	publish(t, conn, "failed", "\x00\x00", "next")
	got := map[string]string{}
	for range 2 {
		properties, body := take(t, conn, "failed")
		got[body] = properties
	}
	if !strings.Contains(got["body"], large[6:]) || !strings.Contains(got["body"], "x-death") {
		t.Errorf("%d bytes of properties came back as %d", len(large), len(got["body"]))
	}
	require.Equal(t, "\x00\x00", got["next"])
}

func connect(t *testing.T, rawURI, vhost string) amqpconn.Raw {
	t.Helper()
	uri, err := amqpconn.ParseURI(rawURI)
	require.NoError(t, err)
	conn, err := amqpconn.ConnectRaw(t.Context(), uri, vhost, amqpconn.Client{Name: t.Name()})
	require.NoError(t, err)
	t.Cleanup(func() { amqpconn.HangUp(conn.Connection) })
	return conn
}

func channel(t *testing.T, conn amqpconn.Raw) *amqp.Channel {
	t.Helper()
	ch, err := conn.Channel()
	require.NoError(t, err)
	return ch
}

func publish(t *testing.T, conn amqpconn.Raw, queue, properties, body string) {
	t.Helper()
	ch := channel(t, conn)
	defer func() { _ = ch.Close() }()
	require.NoError(t, ch.Confirm(false))
	message := amqp.Publishing{Headers: frame.Headers([]byte(properties)), Body: []byte(body)}
	confirm, err := ch.PublishWithDeferredConfirm("", queue, true, false, message)
	require.NoError(t, err)
	if ok, err := confirm.WaitContext(t.Context()); !ok || err != nil {
		t.Fatalf("%.100q: %v", properties, err)
	}
}

func take(t *testing.T, conn amqpconn.Raw, queue string) (properties, body string) {
	t.Helper()
	ch := channel(t, conn)
	defer func() { _ = ch.Close() }()
	brokertest.Eventually(t, func() error {
		d, ok, err := ch.Get(queue, true)
		require.NoError(t, err)
		if !ok {
			return fmt.Errorf("%s is empty", queue)
		}
		properties, body = string(bytes.Clone(conn.Properties(d.Headers))), string(d.Body)
		return nil
	})
	return properties, body
}
