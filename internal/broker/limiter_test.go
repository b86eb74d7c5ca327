package broker

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// What is cancelled while it waits for its turn was not sent, so nothing has to be looked up.
func TestCancelledBeforeItWasSent(t *testing.T) {
	t.Parallel()
	c, err := New(Config{Endpoint: "http://127.0.0.1:1", Username: "guest", Password: "guest"})
	require.NoError(t, err)
	for range requestsAtOnce {
		c.requests <- struct{}{}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = c.PutExchange(ctx, "/", "x", topology.Exchange{Type: "fanout"})
	if !errors.Is(err, context.Canceled) || IsUnanswered(err) {
		t.Errorf("got %v", err)
	}
}
