//go:build interop

package interop

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
)

// The consumer of the guide has a message wait for as long as an HTTP server says, which is longer than any delay.
func TestConsumerOfTheGuideWaitsAsLongAsAServerSays(t *testing.T) {
	t.Parallel()
	for name, retryAfter := range map[string]func() string{
		"seconds": func() string { return "5" },
		"date":    func() string { return time.Now().Add(7 * time.Second).UTC().Format(http.TimeFormat) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := brokertest.NewNamed(t, "waiting")
			var answered atomic.Int32
			requests := make(chan time.Time, 10)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if body, err := io.ReadAll(r.Body); err != nil || string(body) != "pay" {
					t.Errorf("the server gets %q, %v", body, err)
				}
				if answered.Add(1) == 1 {
					w.Header().Set("Retry-After", retryAfter())
					w.WriteHeader(http.StatusServiceUnavailable)
				}
				requests <- time.Now()
			}))
			t.Cleanup(server.Close)
			config := fmt.Sprintf(`
resource "rabbitmq_retry_pipeline" "orders" {
  name          = "orders"
  vhost         = %q
  delays        = ["1s", "2s"]
  force_destroy = true
  work_queues   = { "orders.created" = { declare = true } }
}
output "worker" { value = jsonencode({ pipelines = [rabbitmq_retry_pipeline.orders.worker] }) }`, b.Vhost)
			resource.Test(t, resource.TestCase{
				ProtoV6ProviderFactories: providers,
				Steps: []resource.TestStep{{Config: config, Check: func(state *terraform.State) error {
					startSidecar(t, b, state.RootModule().Outputs["worker"].Value.(string))
					startProgram(t, b, code(t, section(t, "message-headers", "Waiting as long as a server says"), "python"), "python", "PAYMENTS_URL="+server.URL)
					b.Publish(t, "", "orders.created", amqp.Publishing{Body: []byte("pay")})
					var first time.Time
					for _, earliest := range []time.Duration{0, 5 * time.Second} {
						at := brokertest.Receive(t, requests)
						if waited := at.Sub(first); waited < earliest {
							t.Errorf("the second request comes after %s", waited)
						}
						first = at
					}
					return nil
				}}},
			})
		})
	}
}
