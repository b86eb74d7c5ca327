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
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn/coalesce"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/certificates"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/product"
)

// security is what an amqps URI needs for TLS.
type security struct {
	certificates certificates.Set
	serverName   string
}

// watcher is a connection below the client that has to know how large a frame may be.
type watcher interface {
	net.Conn
	SetFrameMax(n uint32)
}

// dialBelow opens a connection that the client uses through what above makes of it.
func dialBelow[W watcher](uri URI, config amqp.Config, above func(net.Conn) W) (*amqp.Connection, W, error) {
	var watch W
	var dialled net.Conn
	config.Dial = func(network, address string) (net.Conn, error) {
		conn, err := uri.dial(network, address)
		if err != nil {
			return nil, err
		}
		watch = above(coalesce.New(&greeted{Conn: conn}))
		dialled = watch
		return watch, nil
	}
	began := time.Now()
	conn, err := amqp.DialConfig(uri.withCredentials(), config)
	if other := otherThanRabbitMQ(conn); other != nil {
		err = other
	}
	if err != nil {
		if dialled != nil {
			_ = dialled.Close()
		}
		return nil, watch, explain(uri, err, time.Since(began))
	}
	// There are no messages before there is a channel.
	watch.SetFrameMax(uint32(conn.Config.FrameSize)) //nolint:gosec // was negotiated as one
	return conn, watch, nil
}

// dial makes the TLS handshake, too. The library would make it on top of what dials, and the guard
// would see nothing but ciphertext.
func (u URI) dial(network, address string) (net.Conn, error) {
	conn, err := amqp.DefaultDial(u.connectTimeout)(network, address)
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

// What to do about an address that does not answer as it should.
const (
	noAMQP = "nothing there speaks AMQP without TLS: use the AMQP port, 5672, or amqps:// at a port with TLS, such as 5671; " +
		"15672 and 15671 are the management API's"
	noAMQPWithTLS = "the port has TLS, but nothing there speaks AMQP: use the AMQP port with TLS, such as 5671; 15671 is the management API's"
	stalled       = "the port accepts connections, but the AMQP handshake did not end within %s: " +
		"the broker is overloaded or suspended, or the port belongs to another program"
	noTLS = "there is no TLS at this port: write amqp://, or use the port with TLS, such as 5671"
)

// explain adds what to do to an error of connecting, which came after that time.
func explain(uri URI, err error, after time.Duration) error {
	var plain tls.RecordHeaderError
	if errors.As(err, &plain) {
		return fmt.Errorf("%w; %s", err, noTLS)
	}
	if end := endOfReading(err); end != nil {
		err = end
		if after >= uri.connectTimeout {
			return fmt.Errorf(stalled, uri.connectTimeout)
		}
		if uri.tls == nil {
			return fmt.Errorf("%w; %s", err, noAMQP)
		}
		if err.Error() == io.EOF.Error() {
			return fmt.Errorf("%w; %s", err, noAMQPWithTLS)
		}
	}
	if remedy := certificates.Remedy(err); remedy != "" {
		return fmt.Errorf("%w; %s", err, remedy)
	}
	return err
}

// endOfReading is what went wrong while the library read, nil if something else did. It reports that as a framing error of its
// own, code 501, around the text of the error; or that the connection is closed, if it has noticed that before.
func endOfReading(err error) error {
	if errors.Is(err, amqp.ErrClosed) {
		return io.EOF
	}
	var reading *amqp.Error
	if errors.As(err, &reading) && reading.Code == amqp.FrameError && !reading.Server {
		return errors.New(reading.Reason)
	}
	return nil
}

// Product is what the broker calls itself.
func Product(conn *amqp.Connection) string {
	name, _ := conn.Properties["product"].(string)
	return name
}

// otherThanRabbitMQ is an error if the broker is certainly another one, which may never answer what it is asked next. It has
// said so even where it refuses the connection, unless there is none.
func otherThanRabbitMQ(conn *amqp.Connection) error {
	if conn == nil || !product.IsOther(Product(conn)) {
		return nil
	}
	version, _ := conn.Properties["version"].(string)
	return &product.OtherError{Found: strings.TrimSpace(Product(conn) + " " + version)}
}

// otherTimeout bounds the handshake with a broker that is not RabbitMQ. OtterMQ neither closes a connection that it refuses, nor
// says so.
const otherTimeout = 3 * time.Second

// greeted is a connection that hears what the broker calls itself: the library tells it only after the handshake.
type greeted struct {
	net.Conn
	heard bool
}

// Read also shortens the time for the handshake. The library has no time limit after it.
func (g *greeted) Read(p []byte) (int, error) {
	n, err := g.Conn.Read(p)
	if n > 0 && !g.heard {
		g.heard = true
		if product.IsOther(productIn(p[:n])) {
			_ = g.SetDeadline(time.Now().Add(otherTimeout)) // an error is that of the next read, too
		}
	}
	return n, err
}

// productIn is the product in the server properties of a connection.start, "" if that is not there as a whole.
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
