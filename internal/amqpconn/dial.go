package amqpconn

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn/coalesce"
)

// tlsFiles are what an amqps URI says about TLS.
type tlsFiles struct{ ca, cert, key, serverName string }

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
		watch = above(coalesce.New(conn))
		dialled = watch
		return watch, nil
	}
	conn, err := amqp.DialConfig(uri.withCredentials(), config)
	if err != nil {
		if dialled != nil {
			_ = dialled.Close()
		}
		return nil, watch, err
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

func (f tlsFiles) secure(conn net.Conn) (net.Conn, error) {
	config, err := f.config()
	if err != nil {
		return nil, err
	}
	secured := tls.Client(conn, config)
	return secured, secured.Handshake() //nolint:noctx // the connection has a deadline
}

// config reads the files again for each connection, since certificates are renewed.
func (f tlsFiles) config() (*tls.Config, error) {
	config := &tls.Config{ServerName: f.serverName, MinVersion: tls.VersionTLS12}
	if f.ca != "" {
		data, err := os.ReadFile(f.ca)
		if err != nil {
			return nil, fmt.Errorf("cacertfile: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(data) {
			return nil, errors.New("cacertfile: has no certificate in PEM form")
		}
	}
	if f.cert != "" && f.key != "" {
		pair, err := tls.LoadX509KeyPair(f.cert, f.key)
		if err != nil {
			return nil, fmt.Errorf("certfile and keyfile: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}
