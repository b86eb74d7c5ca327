package amqpconn

import (
	"crypto/tls"
	"net"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn/coalesce"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/certificates"
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
