package broker

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/product"
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

// Whoever imitates the management API is not taken for RabbitMQ, and a RabbitMQ with another name is.
func TestProducts(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	overview := func(text string) string {
		return b.Behind(t, func(w http.ResponseWriter, r *http.Request, api http.Handler) {
			if r.URL.Path != "/api/overview" {
				api.ServeHTTP(w, r)
				return
			}
			_, _ = io.WriteString(w, text)
		})
	}
	for endpoint, want := range map[string]string{
		b.Endpoint:            product.RabbitMQ,
		brokertest.LavinMQ(t): "not RabbitMQ, but LavinMQ 2.4.0",
		overview(`{"rabbitmq_version":"3.10.8"}`):                                               product.RabbitMQ,
		overview(`{"rabbitmq_version":"4.3.6","product_name":"Bunny Enterprise"}`):              "Bunny Enterprise",
		overview(`{"lavinmq_version":"2.6.0","product_name":"LavinMQ"}`):                        "not RabbitMQ, but LavinMQ 2.6.0",
		overview(`{"lavinmq_version":"9.0","product_name":"LavinMQ","rabbitmq_version":"4.3"}`): "not RabbitMQ, but LavinMQ 9.0",
		overview(`{"product_name":"Other"}`):                                                    "not RabbitMQ, but Other",
		overview(`{"broker":{"product":"OtterMQ"}}`):                                            "not RabbitMQ, but one whose overview has no rabbitmq_version",
	} {
		c := newClient(t, b, endpoint)
		name, err := c.Product(t.Context())
		_, asUser := c.User(t.Context())
		switch {
		case !strings.HasPrefix(want, "not "):
			if name != want || err != nil || asUser != nil {
				t.Errorf("got %q, %v, %v, want %q", name, err, asUser, want)
			}
		case !product.IsOtherError(err) || !product.IsOtherError(asUser) || !strings.Contains(err.Error(), want+": RabbitMQ 3.10 or later is needed"):
			t.Errorf("got %q, %v, %v, want %q", name, err, asUser, want)
		}
	}
}
