package amqpconn

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
)

// By chance, the library notices first either that the peer has hung up, or that it cannot read.
func TestHungUpSaysWhatToWrite(t *testing.T) {
	t.Parallel()
	read := &amqp.Error{Code: amqp.FrameError, Reason: io.EOF.Error()}
	for uri, want := range map[string]string{"amqp://a": noAMQP, "amqps://a": noAMQPWithTLS} {
		parsed, err := ParseURI(uri)
		require.NoError(t, err)
		for _, hungUp := range []error{read, amqp.ErrClosed, net.ErrClosed} {
			if got := explain(parsed, hungUp, 0).Error(); !strings.Contains(got, want) || strings.Contains(got, "Exception") {
				t.Errorf("%s, %v: %s", uri, hungUp, got)
			}
		}
	}
}

// refusing is a connection whose reading ends with an alert of TLS.
type refusing struct{ net.Conn }

func (refusing) Read([]byte) (int, error) {
	return 0, errors.New("remote error: tls: certificate required")
}

// If the library notices only that the connection is closed, the error is the one that ended the reading.
func TestCauseOfAClosedConnectionIsNamed(t *testing.T) {
	t.Parallel()
	g := greeted{Conn: refusing{}}
	_, err := g.Read(nil)
	require.Error(t, err)
	uri, err := ParseURI("amqps://a")
	require.NoError(t, err)
	for _, noticed := range []error{amqp.ErrClosed, net.ErrClosed, &amqp.Error{Code: amqp.FrameError, Reason: "remote error: tls: certificate required"}} {
		require.ErrorContains(t, explain(uri, g.causeOf(noticed), 0), "the broker asks for a client certificate")
	}
}

// A broker that is stopped by a signal still accepts connections, since the system does.
func TestStalledHandshakeIsNamed(t *testing.T) {
	t.Parallel()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	uri, err := ParseURI("amqp://" + listener.Addr().String() + "?connection_timeout=100")
	require.NoError(t, err)
	for range 10 { // here, too, chance decides what the library notices first
		_, err := Connect(t.Context(), uri, "/", Client{})
		if err == nil || !strings.HasSuffix(err.Error(), fmt.Sprintf(stalled, 100*time.Millisecond)) {
			t.Fatalf("error %v", err)
		}
	}
}
