package retrypipeline_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/worker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/workerconfig"
)

// end is how a message was given up.
type end struct {
	Queue, Reason string
	Count, Max    int64
}

// From the configuration to the failed queue: Terraform makes the pipelines, the sidecar reads what
// Terraform puts out, and consumers reject everything.
func TestAcc_LimitsEndToEnd(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	config := fmt.Sprintf(`
resource "rabbitmq_retry_pipeline" "orders" {
  name         = "orders"
  vhost        = %[1]q
  delays       = ["50ms", "100ms"]
  max_age      = "1h"
  work_queues  = {
    "orders.plain" = { declare = true }
    "orders.fewer" = { declare = true, max_attempts = 2 }
    "orders.more"  = { declare = true, max_attempts = 5 }
  }
  force_destroy = true
}
resource "rabbitmq_retry_pipeline" "bills" {
  name          = "bills"
  vhost         = %[1]q
  delays        = ["50ms", "2h"]
  max_age       = "1h"
  work_queues   = { "bills.due" = { declare = true } }
  force_destroy = true
}
output "worker" {
  value = jsonencode({ pipelines = [rabbitmq_retry_pipeline.orders.worker, rabbitmq_retry_pipeline.bills.worker] })
}`, b.Vhost)
	want := map[string]end{
		"orders.plain": {"orders.plain", "exhausted", 3, 3},
		"orders.fewer": {"orders.fewer", "exhausted", 2, 2},
		"orders.more":  {"orders.more", "exhausted", 5, 5},
		// Its second wait would end too late.
		"bills.due": {"bills.due", "too_old", 2, 3},
	}
	acceptTerraform(t, b, resource.TestStep{Config: config, Check: func(state *terraform.State) error {
		defer serve(t, b, state.RootModule().Outputs["worker"].Value.(string))()
		for queue := range want {
			rejectAll(t, b, queue)
			b.Publish(t, "", queue, amqp.Publishing{DeliveryMode: amqp.Persistent})
		}
		got := map[string]end{}
		brokertest.Eventually(t, func() error {
			for _, failed := range []string{"orders.failed", "bills.failed"} {
				if d, ok := b.Get(t, failed); ok {
					queue := d.Headers["retry-queue"].(string)
					got[queue] = end{queue, d.Headers["dead-letter-reason"].(string), d.Headers["retry-count"].(int64), d.Headers["retry-max-attempts"].(int64)}
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				return fmt.Errorf("given up:\n%s", diff)
			}
			return nil
		})
		return nil
	}})
}

// serve runs the sidecar's worker until stop is called.
func serve(t *testing.T, b *brokertest.Broker, config string) (stop func()) {
	t.Helper()
	parsed, err := workerconfig.Parse([]byte(config))
	if err != nil {
		t.Fatalf("%v\n%s", err, config)
	}
	uri, err := amqpconn.ParseURI(b.URI)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- worker.Run(ctx, worker.Options{
			Config: parsed, Prefetch: worker.DefaultPrefetch, Logger: slog.New(slog.DiscardHandler),
			Brokers: func() ([]amqpconn.URI, error) { return []amqpconn.URI{uri}, nil },
		})
	}()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// rejectAll is a consumer for which everything fails.
func rejectAll(t *testing.T, b *brokertest.Broker, queue string) {
	t.Helper()
	deliveries, err := b.Channel(t).Consume(queue, "", false, false, false, false, nil)
	require.NoError(t, err)
	go func() {
		for d := range deliveries {
			_ = d.Reject(false)
		}
	}()
}
