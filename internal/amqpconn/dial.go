package amqpconn

import (
	"bytes"
	"crypto/tls"
	endian "encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn/coalesce"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn/frame"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/certificates"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/product"
)

// security has the TLS settings of an amqps URI.
type security struct {
	certificates certificates.Set
	serverName   string
}

// dialBelow opens a connection, and puts the layer that above returns between it and the client.
func dialBelow(uri URI, config amqp.Config, above func(net.Conn) *frame.Conn) (Bounded, error) {
	var below *frame.Conn
	var greeting greeted
	config.Dial = func(network, address string) (net.Conn, error) {
		conn, err := uri.dial(network, address)
		if err != nil {
			return nil, err
		}
		greeting.Conn = conn
		below = above(coalesce.New(&greeting))
		return below, nil
	}
	began := time.Now()
	conn, err := amqp.DialConfig(uri.withCredentials(), config)
	if other := otherThanRabbitMQ(conn); other != nil {
		err = other
	}
	if err != nil {
		if below != nil {
			_ = below.Close()
		}
		return Bounded{}, explain(uri, greeting.causeOf(err), time.Since(began))
	}
	// Messages come only after a channel is open, so this is early enough.
	below.SetFrameMax(uint32(conn.Config.FrameSize)) //nolint:gosec // was negotiated as one
	return Bounded{conn, &below.Gate, below, greeting.Conn}, nil
}

// dial opens the connection and makes the TLS handshake. If the library made the handshake, it would put TLS above the
// guard, which would then see only ciphertext.
func (u URI) dial(network, address string) (net.Conn, error) {
	conn, err := amqp.DefaultDial(u.connectTimeout())(network, address)
	if err != nil || u.tls == nil {
		return conn, err
	}
	secured, err := u.tls.secure(conn)
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return secured, nil
}

// secure reads the files again for each connection, since certificates are renewed.
func (s security) secure(conn net.Conn) (net.Conn, error) {
	config, err := s.certificates.Config()
	if err != nil {
		return nil, err
	}
	config.ServerName = s.serverName
	secured := tls.Client(conn, config)
	return secured, secured.Handshake() //nolint:noctx // the connection has a deadline
}

// Advice about an address that does not answer as expected.
const (
	noAMQP = "the port does not speak AMQP without TLS: use the AMQP port, 5672, or amqps:// at a port with TLS, such as 5671; " +
		"15672 and 15671 belong to the management API"
	noAMQPWithTLS = "the port has TLS, but does not speak AMQP: use the AMQP port with TLS, such as 5671; 15671 belongs to the management API"
	stalled       = "the port accepts connections, but the AMQP handshake did not end within %s: " +
		"the broker is overloaded or suspended, or another program has the port"
	noTLS = "there is no TLS at this port: write amqp://, or use the port with TLS, such as 5671"
)

// explain adds advice to a connection error, which came after this time.
func explain(uri URI, err error, after time.Duration) error {
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return fmt.Errorf("%w; %s", err, noTLS)
	}
	if end := endOfReading(err); end != nil {
		err = end
		if after >= uri.connectTimeout() {
			return fmt.Errorf(stalled, uri.connectTimeout())
		}
		if uri.tls == nil {
			return fmt.Errorf("%w; %s", err, noAMQP)
		}
		if err.Error() == io.EOF.Error() {
			return fmt.Errorf("%w; %s", err, noAMQPWithTLS)
		}
	}
	if errors.Is(err, amqp.ErrCredentials) {
		return fmt.Errorf("%w; correct them. A URI without a user logs in as guest, which only the broker's own machine can do", err)
	}
	if remedy := certificates.Remedy(err); remedy != "" {
		return fmt.Errorf("%w; %s", err, remedy)
	}
	return err
}

// endOfReading returns the error of the library's read, or nil if something else failed. The library puts the text of a
// read error into a framing error of its own, code 501. If it noticed the end earlier, it reports a closed connection.
func endOfReading(err error) error {
	if isClosed(err) {
		return io.EOF
	}
	if reading, is := errors.AsType[*amqp.Error](err); is && reading.Code == amqp.FrameError && !reading.Server {
		return errors.New(reading.Reason)
	}
	return nil
}

// Product is the broker's own name for itself.
func Product(conn *amqp.Connection) string {
	name, _ := conn.Properties["product"].(string)
	return name
}

// otherThanRabbitMQ returns an error if the broker is certainly not RabbitMQ. Another broker can leave the next call
// unanswered. A broker names itself even if it then refuses the connection. If conn is nil, the name is not known.
func otherThanRabbitMQ(conn *amqp.Connection) error {
	if conn == nil || !product.IsOther(Product(conn)) {
		return nil
	}
	version, _ := conn.Properties["version"].(string)
	return &product.OtherError{Found: strings.TrimSpace(Product(conn) + " " + version)}
}

// otherTimeout bounds the handshake with a broker that is not RabbitMQ. OtterMQ neither closes a connection that it
// refuses, nor says so.
const otherTimeout = 3 * time.Second

// greeted is a connection that reads the broker's name early. The library gives it only after the handshake. It also keeps
// the error that ended the reading.
type greeted struct {
	net.Conn
	heard bool
	end   atomic.Pointer[error]
}

// Read also shortens the time limit of the handshake with another broker. After the handshake, the library has no time
// limit.
func (g *greeted) Read(p []byte) (int, error) {
	n, err := g.Conn.Read(p)
	if n > 0 && !g.heard {
		g.heard = true
		if product.IsOther(productIn(p[:n])) {
			_ = g.SetDeadline(time.Now().Add(otherTimeout)) // the next read also reports this error
		}
	}
	if err != nil {
		g.end.CompareAndSwap(nil, &err)
	}
	return n, err
}

// causeOf returns the error that ended the reading, as the library reports it, if the library only says that the
// connection is closed.
func (g *greeted) causeOf(err error) error {
	if end := g.end.Load(); end != nil && isClosed(err) {
		return &amqp.Error{Code: amqp.FrameError, Reason: (*end).Error()}
	}
	return err
}

// isClosed holds for the errors of a connection that the library had closed before it sent, while it sent, or before it
// waited for an answer.
func isClosed(err error) bool {
	return errors.Is(err, amqp.ErrClosed) || errors.Is(err, net.ErrClosed)
}

// productIn returns the product in the server properties of a connection.start. It returns "" if the bytes do not have
// it.
func productIn(start []byte) string {
	const sizeBytes = 4
	_, name, _ := bytes.Cut(start, []byte("\x07productS"))
	if len(name) < sizeBytes {
		return ""
	}
	size := int(endian.BigEndian.Uint32(name))
	name = name[sizeBytes:]
	return string(name[:min(size, len(name))])
}
