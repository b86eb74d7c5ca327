// Package amqpconn opens AMQP connections to a broker. It handles addresses, credentials and TLS. It tries one broker
// after the other until one serves, and its calls end with their context.
//
// It does not know the purpose of a connection. Its connections survive messages that the client library cannot decode,
// or leave the properties of messages encoded, and bound waiting bytes (package frame). They send many small writes
// together (package coalesce). Connections that speak AMQP 1.0 hand over messages undecoded (package verbatim).
package amqpconn

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	amqp10 "github.com/Azure/go-amqp"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn/frame"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn/verbatim"
)

const (
	heartbeat = 10 * time.Second
	// DefaultConnectTimeout bounds the TCP connection and the TLS and AMQP handshakes together, unless the URI has a
	// connection_timeout.
	DefaultConnectTimeout = 30 * time.Second
	// closeTimeout bounds the closing handshake, which flushes the last acknowledgements.
	closeTimeout = 3 * time.Second
)

// Client is how a connection describes its program. The management UI shows all of it.
type Client struct {
	// Name identifies a connection within its program.
	Name    string
	Product string
	Version string
	// Heartbeat is how often both sides send a sign of life, 0 for what the URI says, or every 10 seconds. After two of them are
	// missing, the broker ends the connection.
	Heartbeat time.Duration
}

// Connect opens a connection to the vhost. It survives messages that the library cannot decode. Errors name the
// broker's address, never the credentials.
func Connect(ctx context.Context, uri URI, vhost string, client Client) (*amqp.Connection, error) {
	conn, err := connect(ctx, uri, vhost, client, frame.Guarded)
	return conn.Connection, err
}

func connect(
	ctx context.Context, uri URI, vhost string, client Client, above func(net.Conn) *frame.Conn,
) (Bounded, error) {
	if client.Heartbeat > 0 {
		uri = uri.withoutHeartbeat()
	}
	return Await(ctx, "connect to "+uri.String(), func() (Bounded, error) {
		return dialBelow(uri, client.config(vhost), above)
	}, func(b Bounded) { HangUp(b.Connection) })
}

// Bounded is a connection that can stop reading when too many bytes are not released.
//
// The bytes are those of bodies and, if the connection is [Raw], of properties.
type Bounded struct {
	*amqp.Connection
	*frame.Gate
	below  *frame.Conn
	dialed net.Conn
}

// Cut ends the TCP connection at once. The broker neither sends what waits for the connection, nor reads what is on its way.
// It logs a warning.
func (b Bounded) Cut() {
	conn := b.dialed
	if secured, is := conn.(*tls.Conn); is {
		conn = secured.NetConn()
	}
	if tcp, is := conn.(*net.TCPConn); is {
		_ = tcp.SetLinger(0) // an error says that the connection is closed
	}
	_, _ = conn.Close(), b.below.Close()
}

// ConnectBounded is [Connect] for large deliveries. While more bytes of bodies than the limit are not released, the
// connection reads nothing. A caller that waits for the broker's answer must then release some.
func ConnectBounded(ctx context.Context, uri URI, vhost string, client Client, limit int) (Bounded, error) {
	conn, err := connect(ctx, uri, vhost, client, frame.Guarded)
	if err == nil {
		conn.Limit(limit)
	}
	return conn, err
}

// HangUp is [HangUp] for a connection whose messages are no longer taken. The broker's answer can be behind them.
func (b Bounded) HangUp() {
	cut := func() { _ = b.below.Close() } // an error says that the connection is closed
	if b.Full() {
		cut()
	}
	defer time.AfterFunc(closeTimeout, cut).Stop()
	HangUp(b.Connection)
}

// Raw is a connection whose messages have encoded properties.
type Raw struct{ Bounded }

// Properties returns the encoded properties of a delivery or a return with these headers. It must be called only once
// for each.
func (r Raw) Properties(h amqp.Table) []byte { return r.below.Properties(h) }

// ConnectRaw is [Connect] for messages that must stay unchanged. Publishes need [frame.Headers].
func ConnectRaw(ctx context.Context, uri URI, vhost string, client Client) (Raw, error) {
	conn, err := connect(ctx, uri, vhost, client, frame.Raw)
	return Raw{conn}, err
}

func (c Client) config(vhost string) amqp.Config {
	properties := amqp.NewConnectionProperties()
	properties["product"], properties["version"] = c.Product, c.Version
	properties.SetClientConnectionName(c.Name)
	return amqp.Config{Vhost: vhost, Heartbeat: cmp.Or(c.Heartbeat, heartbeat), Properties: properties}
}

// HangUp closes a connection within three seconds. The deadline also ends a write that hangs because the broker does
// not read. It ignores errors, since they only say that the connection is closed already.
func HangUp(conn *amqp.Connection) {
	_ = conn.CloseDeadline(time.Now().Add(closeTimeout))
}

// ConnectAMQP10 opens a connection to the vhost that speaks AMQP 1.0, at the same address. RabbitMQ 4.0 and later does
// so without a plugin. The data of each received message is the whole original, undecoded. Errors name the broker's
// address, never the credentials.
func ConnectAMQP10(ctx context.Context, uri URI, vhost string, client Client) (*amqp10.Conn, error) {
	options := &amqp10.ConnOptions{
		ContainerID:  client.Name,
		HostName:     "vhost:" + vhost,
		Properties:   map[string]any{"product": client.Product, "version": client.Version},
		SASLType:     uri.sasl(),
		WriteTimeout: closeTimeout,
	}
	return Await(ctx, "connect to "+uri.String()+" over AMQP 1.0", func() (*amqp10.Conn, error) {
		conn, err := uri.dial("tcp", uri.host())
		if err != nil {
			return nil, err
		}
		ctx, cancel := context.WithTimeout(ctx, uri.connectTimeout())
		defer cancel()
		opened, err := amqp10.NewConn(ctx, verbatim.New(conn), options)
		if err != nil {
			_ = conn.Close()
		}
		return opened, err
	}, func(c *amqp10.Conn) { _ = c.Close() })
}

// sasl is the login mechanism. It is the certificate if the URI names external first, and otherwise the password.
func (u URI) sasl() amqp10.SASLType {
	if first, _, _ := strings.Cut(mechanisms(u.plain.Query()), " "); first == "external" {
		return amqp10.SASLTypeExternal("")
	}
	return amqp10.SASLTypePlain(u.Username(), u.Password())
}

// OpenChannel opens a channel.
func OpenChannel(ctx context.Context, conn *amqp.Connection) (*amqp.Channel, error) {
	return Await(ctx, "open a channel", conn.Channel, func(late *amqp.Channel) { _ = late.Close() })
}

// Confirming is a channel in confirm mode. The broker closes it over a publish that it does not accept.
//
// The broker sends a basic.return before the confirm of the same message, and the library's reader keeps that order.
type Confirming struct {
	*amqp.Channel
	Returns chan amqp.Return
	Closed  chan *amqp.Error
}

// OpenConfirming opens a channel with room for the returns of this many unconfirmed messages. The library drops a
// return that it cannot hand over within five seconds. Meanwhile it holds a lock that publishing needs. Without room, a goroutine of the
// caller must always take returns.
func OpenConfirming(ctx context.Context, conn *amqp.Connection, window int) (Confirming, error) {
	channel, err := OpenChannel(ctx, conn)
	if err != nil {
		return Confirming{}, err
	}
	c := Confirming{channel, channel.NotifyReturn(make(chan amqp.Return, window)), channel.NotifyClose(make(chan *amqp.Error, 1))}
	_, err = Await(ctx, "turn publisher confirms on", func() (any, error) { return nil, channel.Confirm(false) }, func(any) {})
	if err != nil {
		go func() { _ = channel.Close() }()
	}
	return c, err
}

// ErrNeedsConfigure says that the broker shows a queue or an exchange only to users with the permission configure
// (github.com/rabbitmq/rabbitmq-server/pull/16272). Other releases show it to users with any permission for it, and refuse the others
// by the same text.
var ErrNeedsConfigure = errors.New("RabbitMQ 4.2.6 and 4.3.0 ask for the permission configure to look at a queue or an exchange: " +
	"use 4.2.7, 4.3.1 or later")

// ExplainLook adds [ErrNeedsConfigure] to the answer to a passive declaration.
func ExplainLook(conn *amqp.Connection, err error) error {
	version := conn.Properties["version"]
	if IsCode(err, amqp.AccessRefused) && (version == "4.2.6" || version == "4.3.0") {
		return fmt.Errorf("%w (%w)", ErrNeedsConfigure, err)
	}
	return err
}

// LookFor returns an error if the queue or one of the exchanges is missing. It opens a channel of its own, since the
// broker closes the channel in that case.
func LookFor(ctx context.Context, conn *amqp.Connection, queue string, exchanges ...string) (amqp.Queue, error) {
	channel, err := OpenChannel(ctx, conn)
	if err != nil {
		return amqp.Queue{}, err
	}
	return Await(ctx, "look for the queue "+queue, func() (amqp.Queue, error) {
		defer func() { _ = channel.Close() }()
		found, err := channel.QueueDeclarePassive(queue, true, false, false, false, nil)
		for _, exchange := range exchanges {
			if err == nil { // a passive declare does not compare the exchange's type
				err = channel.ExchangeDeclarePassive(exchange, amqp.ExchangeDirect, true, false, false, false, nil)
			}
		}
		return found, ExplainLook(conn, err)
	}, func(amqp.Queue) {})
}

// IsCode reports whether the broker has closed a channel or the connection with this code.
func IsCode(err error, code int) bool {
	var reason *amqp.Error
	return errors.As(err, &reason) && reason.Code == code
}

const (
	// ackPoll is how often the consumers are counted.
	ackPoll = 50 * time.Millisecond
	// countPatience is how long the first count can take before the consumers are ended.
	countPatience = time.Second
)

// AwaitAcks ends a queue's own consumers, and returns once the queue has all their acknowledgements. AMQP does not
// confirm acknowledgements, but a quorum queue continues to count an ended consumer. It does so until every delivery to
// the consumer is acknowledged or put back. A classic queue does not count it, and drops no acknowledgement. Only other
// consumers can make the count rise.
func AwaitAcks(own int, count func() (int, error), cancel func()) error {
	unanswered := time.AfterFunc(countPatience, cancel)
	last, err := count()
	if unanswered.Stop() {
		go cancel()
	}
	others := last - own
	for n := last; err == nil && n > max(0, others); n, err = count() {
		others += max(0, n-last)
		last = n
		time.Sleep(ackPoll)
	}
	return err
}

// callTimeout is longer than the 65 s after which a broker gives up on a queue that has no majority of its members
// online. The broker's answer, which says more, then comes first.
const callTimeout = 70 * time.Second

// Await runs a call that takes no context. At the end of the context or of the time limit, it returns at once, and
// later hands the call's result to discard. Errors begin with the name of the call.
func Await[T any](ctx context.Context, what string, call func() (T, error), discard func(T)) (T, error) {
	type result struct {
		value T
		err   error
	}
	ctx, cancel := context.WithTimeoutCause(ctx, callTimeout, fmt.Errorf("no answer in %s", callTimeout))
	defer cancel()
	results := make(chan result, 1)
	go func() {
		value, err := call()
		results <- result{value, err}
	}()

	select {
	case r := <-results:
		if r.err != nil {
			return r.value, fmt.Errorf("%s: %w", what, r.err)
		}
		return r.value, nil
	case <-ctx.Done():
		go func() {
			if r := <-results; r.err == nil {
				discard(r.value)
			}
		}()
		var none T
		return none, fmt.Errorf("%s: %w", what, context.Cause(ctx))
	}
}
