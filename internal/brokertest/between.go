package brokertest

import (
	"io"
	"net"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

// Between is the URI of the broker behind a listener that hands over each connection together with one to the broker,
// until the test ends. Both are closed when serve returns.
func Between(t testing.TB, uri string, serve func(client, broker net.Conn)) string {
	t.Helper()
	u, err := url.Parse(uri)
	require.NoError(t, err)
	u.Host = Listen(t, dialing(u.Host, serve))
	return u.String()
}

// Listen serves connections until the test ends, and returns the address.
func Listen(t testing.TB, serve func(net.Conn)) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return accept(t, listener, serve)
}

// accept serves connections until the test ends, and returns the listener's address.
func accept(t testing.TB, listener net.Listener, serve func(net.Conn)) string {
	t.Helper()
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go serve(conn)
		}
	}()
	return listener.Addr().String()
}

// dialing serves a client with a connection to this address.
func dialing(address string, serve func(client, broker net.Conn)) func(client net.Conn) {
	return func(client net.Conn) {
		defer func() { _ = client.Close() }()
		broker, err := net.Dial("tcp", address) //nolint:noctx // ends with the other side
		if err != nil {
			return
		}
		defer func() { _ = broker.Close() }()
		serve(client, broker)
	}
}

// Join passes on what client and broker send until one of them closes.
func Join(client, broker net.Conn) {
	go func() {
		defer func() { _ = broker.Close() }()
		_, _ = io.Copy(broker, client)
	}()
	_, _ = io.Copy(client, broker)
}
