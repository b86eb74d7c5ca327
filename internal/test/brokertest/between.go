package brokertest

import (
	"io"
	"net"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

// Between is the broker's URI behind a listener. It passes each client's connection to serve, together with a new connection
// to the broker, and closes both when serve returns. The listener ends with the test.
func Between(t testing.TB, uri string, serve func(client, broker net.Conn)) string {
	t.Helper()
	u, err := url.Parse(uri)
	require.NoError(t, err)
	u.Host = Listen(t, dialing(u.Host, serve))
	return u.String()
}

// Listen calls serve with each connection until the test ends, and returns the listener's address.
func Listen(t testing.TB, serve func(net.Conn)) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return accept(t, listener, serve)
}

// accept calls serve with each connection until the test ends, and returns the listener's address.
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

// dialing serves a client together with a new connection to the address.
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

// Join copies data in both directions until client or broker closes.
func Join(client, broker net.Conn) {
	go func() {
		defer func() { _ = broker.Close() }()
		_, _ = io.Copy(broker, client)
	}()
	_, _ = io.Copy(client, broker)
}
