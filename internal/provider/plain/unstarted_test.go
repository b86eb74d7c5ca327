package plain_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/terraformtest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// cutDeclaration declares a queue and cuts the connection, as a killed apply does, until the broker has left the queue without a leader.
func cutDeclaration(t *testing.T, b *brokertest.Broker, queue string, arguments map[string]any) {
	t.Helper()
	arguments["x-queue-type"] = "quorum"
	body, err := json.Marshal(map[string]any{"durable": true, "arguments": arguments})
	require.NoError(t, err)
	endpoint, err := url.Parse(b.Endpoint)
	require.NoError(t, err)
	brokertest.Eventually(t, func() error {
		b.Request(t, http.MethodDelete, b.Path("queues", queue), nil)
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, b.Endpoint+b.Path("queues", queue), strings.NewReader(string(body)))
		require.NoError(t, err)
		request.SetBasicAuth(b.Username, b.Password)
		connection, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", endpoint.Host)
		require.NoError(t, err)
		require.NoError(t, request.Write(connection))
		for status := 0; status != http.StatusOK; { // the queue is listed before it has a leader
			status, _ = b.Request(t, http.MethodGet, b.Path("queues", queue), nil)
		}
		require.NoError(t, connection.Close())
		return unstarted(t, b, queue)
	})
}

// unstarted fails if the queue does not exist, or takes messages.
func unstarted(t *testing.T, b *brokertest.Broker, queue string) error {
	t.Helper()
	for end := time.Now().Add(3 * brokertest.Statistics()); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		var live struct{ Consumers *int } // its count of messages can be one of a deleted queue of this name
		status, response := b.Request(t, http.MethodGet, b.Path("queues", queue), nil)
		if status != http.StatusOK {
			return fmt.Errorf("%d", status)
		}
		require.NoError(t, json.Unmarshal(response, &live))
		if live.Consumers != nil {
			return fmt.Errorf("%q was started", queue)
		}
	}
	return nil
}

// RabbitMQ reports a queue whose declaration was cut off like any other one, and declares it again without a complaint.
func TestAccEveryRelease_QueueWhoseDeclarationWasCut(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	tf := func(t *testing.T) *terraformtest.CLI {
		t.Helper()
		cli := acctest.NewCLI(t, acctest.Times())
		cli.Write(t, "main.tf", terraformtest.Required+fmt.Sprintf(`
resource "rabbitmq_queue" "cut" {
  name  = "cut"
  vhost = %[1]q
}
resource "rabbitmq_retry_pipeline" "orders" {
  name   = "orders"
  vhost  = %[1]q
  delays = ["5s"]
}
`, b.Vhost))
		return cli
	}
	first := tf(t)
	first.Run(t, "apply", "-auto-approve")
	for address, queue := range map[string]string{"rabbitmq_queue.cut": "cut", "rabbitmq_retry_pipeline.orders": "orders.retry.5s"} {
		t.Run(queue, func(t *testing.T) {
			t.Parallel()
			var live struct{ Arguments map[string]any }
			b.Call(t, http.MethodGet, b.Path("queues", queue), nil, &live)
			require.ErrorContains(t, unstarted(t, b, queue), "was started") // its statistics outlive it
			cutDeclaration(t, b, queue, live.Arguments)
			again, id := tf(t), b.Vhost+"/"+strings.TrimSuffix(queue, ".retry.5s")
			printed, code := again.Exit(t, "import", "-no-color", address, id)
			require.NotZero(t, code)
			require.Contains(t, printed, "Queues take no messages")
			require.Contains(t, printed, "- "+queue)
			status, _ := b.Request(t, http.MethodDelete, b.Path("queues", queue), nil)
			require.Equal(t, http.StatusNoContent, status)
			if queue == "cut" {
				return // there is nothing to import
			}
			again.Run(t, "import", address, id)
			again.Run(t, "apply", "-auto-approve", "-target="+address)
			require.ErrorContains(t, unstarted(t, b, queue), "was started")
		})
	}
}

// A killed creation can leave the failed queue like that. The next apply says so before it makes anything, since people who delete the
// queue delete its bindings, too, and the pipeline's definition would be one of them.
func TestAccEveryRelease_CreationWhoseFailedQueueWasCut(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	cli := acctest.NewCLI(t, acctest.Times())
	cli.Write(t, "main.tf", terraformtest.Required+fmt.Sprintf(`
resource "rabbitmq_retry_pipeline" "orders" {
  name   = "orders"
  vhost  = %q
  delays = ["5s"]
}
`, b.Vhost))
	wanted := pipeline.Pipeline{
		Name: "orders", Vhost: b.Vhost, Delays: []pipeline.Delay{{Wait: 5 * time.Second, Spelling: "5s"}}, MaxAttempts: 2,
		RetryOn: []string{"rejected"}, QueueType: "quorum", PolicyPriority: pipeline.DefaultPolicyPriority,
	}.Expand()
	b.Create(t, topology.Topology{Exchanges: map[string]topology.Exchange{"orders.failed": wanted.Exchanges["orders.failed"]}})
	cutDeclaration(t, b, "orders.failed", maps.Clone(wanted.Queues["orders.failed"].Arguments))
	printed, code := cli.Exit(t, "apply", "-no-color", "-auto-approve")
	require.NotZero(t, code)
	require.Contains(t, printed, "Queues take no messages")
	var queues []struct{ Name string }
	b.Call(t, http.MethodGet, b.Path("queues"), nil, &queues)
	require.Len(t, queues, 1)
	status, _ := b.Request(t, http.MethodDelete, b.Path("queues", "orders.failed"), nil)
	require.Equal(t, http.StatusNoContent, status)
	cli.Run(t, "apply", "-auto-approve")
	cli.Run(t, "plan", "-detailed-exitcode")
}
