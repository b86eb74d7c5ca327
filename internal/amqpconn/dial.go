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
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn/guard"
)

// tlsFiles are what an amqps URI says about TLS.
type tlsFiles struct{ ca, cert, key, serverName string }

// dialGuarded opens a connection that survives messages which the library cannot decode.
func dialGuarded(uri URI, config amqp.Config) (*amqp.Connection, error) {
	var guarded *guard.Conn
	config.Dial = func(network, address string) (net.Conn, error) {
		conn, err := uri.dial(network, address)
		if err != nil {
			return nil, err
		}
		guarded = guard.New(coalesce.New(conn))
		return guarded, nil
	}
	conn, err := amqp.DialConfig(uri.withCredentials(), config)
	if err != nil {
		if guarded != nil {
			_ = guarded.Close()
		}
		return nil, err
	}
	// There are no messages before there is a channel.
	guarded.SetFrameMax(uint32(conn.Config.FrameSize)) //nolint:gosec // was negotiated as one
	return conn, nil
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
