package amqpconn

import (
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
		for _, hungUp := range []error{read, amqp.ErrClosed} {
			if got := explain(parsed, hungUp, 0).Error(); !strings.Contains(got, want) || strings.Contains(got, "Exception") {
				t.Errorf("%s, %v: %s", uri, hungUp, got)
			}
		}
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
