package broker

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
)

// The client gives up an idle connection well before the broker closes it: a write that meets the closing has no answer.
func TestIdleConnectionsAreGivenUpBeforeTheBrokerClosesThem(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	connection, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(b.Endpoint, "http://"))
	require.NoError(t, err)
	defer connection.Close()
	fmt.Fprint(connection, "GET /api/whoami HTTP/1.1\r\nHost: broker\r\n\r\n")
	if _, err := connection.Read(make([]byte, 4096)); err != nil {
		t.Fatal(err)
	}
	answered := time.Now()
	_ = connection.SetDeadline(answered.Add(5 * time.Minute)) // a busy broker is late, and the longer it takes, the better
	if _, err := io.Copy(io.Discard, connection); err != nil {
		t.Fatalf("after %s: %v", time.Since(answered), err)
	}
	transport, err := Config{}.transport()
	require.NoError(t, err)
	if closed := time.Since(answered); transport.IdleConnTimeout > closed/2 {
		t.Errorf("the broker closes an idle connection after %s, the client gives it up after %s", closed, transport.IdleConnTimeout)
	}
}
