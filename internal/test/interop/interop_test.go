//go:build interop

package interop

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/sidecartest"
)

const maxAttempts = 4

var providers = map[string]func() (tfprotov6.ProviderServer, error){
	"rabbitmq": providerserver.NewProtocol6WithError(provider.New("test")()),
}

// A queue's name may hold anything; the routing key has nothing to do with it.
var workQueues = map[string]string{
	"work orders/créés 100%.#": "eu.order.created",
	"work paid":                "order paid/ü %2F",
}

type delivery struct {
	Queue      string         `json:"queue"`
	RoutingKey string         `json:"routing_key"`
	Body       string         `json:"body"`
	Headers    map[string]any `json:"headers"`
	Properties map[string]any `json:"properties"`
}

// Terraform makes the pipeline, the real sidecar serves it, and a consumer in Python, which knows
// of neither, rejects everything.
func TestPythonConsumerThatOnlyNacks(t *testing.T) {
	t.Parallel()
	b := brokertest.NewNamed(t, "interop/ü %")
	config := pipelineOf(b, "orders with %41 ü", slices.Collect(maps.Keys(workQueues)), `delays = ["200ms", "0s", "400ms"]`)
	apply(t, b, resource.TestStep{Config: config}, func(startSidecar func()) {
		startSidecar()
		for queue, key := range workQueues {
			publish(t, b, queue, key)
		}
		checkDeliveries(t, consume(t, b))
		checkFailed(t, b)
	})
}

// exchangeOf is the configuration of a delayed exchange.
func exchangeOf(b *brokertest.Broker, name string) string {
	return fmt.Sprintf(`
resource "rabbitmq_delayed_exchange" "all" {
  name          = %q
  vhost         = %q
  max_delay     = "1h"
  force_destroy = true
}
output "worker" { value = jsonencode({ delayed_exchanges = [rabbitmq_delayed_exchange.all.worker] }) }`, name, b.Vhost)
}

// pipelineOf is the configuration of a pipeline that declares its work queues, with more settings, and of the sidecar.
func pipelineOf(b *brokertest.Broker, name string, queues []string, settings ...string) string {
	list, _ := json.Marshal(queues) // texts
	return fmt.Sprintf(`
resource "rabbitmq_retry_pipeline" "orders" {
  name        = %q
  vhost       = %q
  work_queues = { for name in %s : name => { declare = true } }
  %s
}
output "worker" { value = jsonencode({ pipelines = [rabbitmq_retry_pipeline.orders.worker] }) }`,
		name, b.Vhost, list, strings.Join(settings, "\n  "))
}

// apply makes what is configured, and does something with it. The sidecar serves the output "worker".
func apply(t *testing.T, b *brokertest.Broker, step resource.TestStep, do func(startSidecar func())) {
	t.Helper()
	step.Check = func(state *terraform.State) error {
		do(func() {
			config := state.RootModule().Outputs["worker"].Value.(string)
			sidecartest.Start(t, append(os.Environ(), "RABBITMQ_RETRY_CONFIG_JSON="+config, "RABBITMQ_URI="+b.URI))
		})
		return nil
	}
	resource.Test(t, resource.TestCase{ProtoV6ProviderFactories: providers, Steps: []resource.TestStep{step}})
}

// publish sends a message with every property through a topic exchange of the application.
func publish(t *testing.T, b *brokertest.Broker, queue, key string) {
	t.Helper()
	ch := b.Channel(t)
	require.NoError(t, ch.ExchangeDeclare("shop", "topic", true, false, false, false, nil))
	require.NoError(t, ch.QueueBind(queue, key, "shop", false, nil))
	b.Publish(t, "shop", key, amqp.Publishing{
		ContentType: "application/json", ContentEncoding: "utf-8", CorrelationId: "c-1", ReplyTo: "replies",
		MessageId: "m-" + key, Timestamp: time.Unix(1_700_000_000, 0), Type: "order", AppId: "shop", Priority: 5,
		DeliveryMode: amqp.Persistent, Headers: amqp.Table{"tenant": "eu", "number": int64(7)},
		Body: []byte("\x00\xff {\"id\":1}"),
	})
	if err := ch.QueueUnbind(queue, key, "shop", nil); err != nil { // or the pipeline would not delete the queue
		t.Fatal(err)
	}
}

func consume(t *testing.T, b *brokertest.Broker) map[string][]delivery {
	t.Helper()
	arguments := []string{"consumer.py", b.VhostURI(), fmt.Sprint(maxAttempts * len(workQueues))}
	for queue := range workQueues {
		arguments = append(arguments, queue)
	}
	command := exec.CommandContext(brokertest.Bounded(t), "/usr/bin/python3", arguments...)
	output, err := command.Output()
	if err != nil {
		t.Fatalf("consumer.py needs python3 with pika (Debian: apt-get install python3-pika): %v\n%s", err, output)
	}
	got := map[string][]delivery{}
	for lines := bufio.NewScanner(strings.NewReader(string(output))); lines.Scan(); {
		var d delivery
		require.NoError(t, json.Unmarshal(lines.Bytes(), &d))
		got[d.Queue] = append(got[d.Queue], d)
	}
	return got
}

func checkDeliveries(t *testing.T, got map[string][]delivery) {
	t.Helper()
	for queue, key := range workQueues {
		if len(got[queue]) != maxAttempts {
			t.Errorf("%s: %d deliveries, want %d", queue, len(got[queue]), maxAttempts)
		}
		for i, d := range got[queue] {
			first := got[queue][0]
			if count, has := d.Headers["retry-count"]; (i == 0 && has) || (i > 0 && count != float64(i)) {
				t.Errorf("%s: delivery %d has retry-count %v", queue, i+1, count)
			}
			d.Headers = map[string]any{"tenant": d.Headers["tenant"], "number": d.Headers["number"]}
			own := map[string]any{"tenant": "eu", "number": float64(7)}
			if diff := cmp.Diff(delivery{queue, key, first.Body, own, first.Properties}, d); diff != "" {
				t.Errorf("%s: delivery %d has changed: %s", queue, i+1, diff)
			}
		}
	}
}

func checkFailed(t *testing.T, b *brokertest.Broker) {
	t.Helper()
	for range workQueues {
		brokertest.Eventually(t, func() error {
			m, ok := b.Get(t, "orders with %41 ü.failed")
			if !ok {
				return fmt.Errorf("nothing in the failed queue")
			}
			queue, _ := m.Headers["retry-queue"].(string)
			if m.Headers["dead-letter-reason"] != "exhausted" || m.RoutingKey != workQueues[queue] || m.MessageId != "m-"+workQueues[queue] {
				t.Errorf("failed message: %+v", m)
			}
			return nil
		})
	}
}
