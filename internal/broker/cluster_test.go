package broker

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
)

// A caller that waits while another one asks about the cluster can give up.
func TestWaitForTheClusterCanBeCancelled(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	asked, answer := make(chan struct{}), make(chan struct{})
	c := newClient(t, b, b.Behind(t, func(w http.ResponseWriter, r *http.Request, api http.Handler) {
		if r.URL.Path == "/api/overview" {
			close(asked)
			<-answer
		}
		api.ServeHTTP(w, r)
	}))
	first := make(chan error)
	go func() {
		_, err := c.askCluster(t.Context())
		first <- err
	}()
	<-asked
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.askCluster(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	close(answer)
	if err := <-first; err != nil {
		t.Error(err)
	}
}
