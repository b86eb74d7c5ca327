//go:build bench

package benchfailed

import (
	"bytes"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/benchtest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

const (
	names     = pipeline.Names("bench")
	workQueue = "bench.work"
)

// vhost has a pipeline whose work queue nobody consumes.
type vhost struct {
	benchtest.Broker

	binary string
}

func newVhost(t *testing.T, binary string) *vhost {
	t.Helper()
	return &vhost{binary: binary, Broker: benchtest.New(t, "failed", func(vhost string) topology.Topology {
		return pipeline.Expand(pipeline.Pipeline{
			Name: string(names), Vhost: vhost, MaxAttempts: 5, QueueType: *queueType, PolicyPriority: pipeline.DefaultPolicyPriority,
			Delays: []pipeline.Delay{{Wait: time.Minute, Spelling: "1m"}}, RetryOn: []string{pipeline.ReasonRejected},
			WorkQueues: map[string]pipeline.WorkQueue{workQueue: {Type: *queueType, Declare: true}},
		})
	})}
}

// fill puts messages into the failed queue, as a worker parks them.
func (v *vhost) fill(t *testing.T) {
	t.Helper()
	body := bytes.Repeat([]byte("x"), *size)
	err := v.Fill(*messages, 0, func(ch *amqp.Channel, i int) error {
		return ch.PublishWithContext(t.Context(), "", names.FailedQueue(), true, false, parked(i, body))
	})
	require.NoError(t, err)
	v.expect(t, names.FailedQueue())
}

func parked(i int, body []byte) amqp.Publishing {
	id := fmt.Sprintf("message-%d", i)
	return amqp.Publishing{
		ContentType: "application/json", MessageId: id, Timestamp: time.Now(), DeliveryMode: amqp.Persistent, Body: body,
		Headers: amqp.Table{
			"dead-letter-reason": "exhausted", "dead-letter-at": time.Now().UnixMilli(), "retry-queue": workQueue, "retry-pipeline": string(names),
			"retry-exchange": "shop", "retry-routing-key": "order.created.eu", "retry-count": int64(5), "retry-max-attempts": int64(5),
			"retry-publish-id": id, "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
		},
	}
}

// expect waits until the queue has all messages.
func (v *vhost) expect(t *testing.T, queue string) {
	t.Helper()
	v.AwaitConsumers(t, queue, 0)
	v.AwaitMessages(t, queue, *messages)
}

// command runs one of the commands, all of which is measured: also its connections, and what it waits for.
func (v *vhost) command(t *testing.T, name string, args ...string) result {
	t.Helper()
	command := exec.CommandContext(t.Context(), v.binary, append([]string{"failed", name, string(names), "--vhost", v.Vhost}, args...)...)
	command.Env = []string{"RABBITMQ_URI=" + v.URI}
	began := time.Now()
	output, err := command.CombinedOutput()
	took := time.Since(began)
	if err != nil || !strings.Contains(string(output), fmt.Sprint(*messages)) {
		t.Fatalf("failed %s: %v\n%s", name, err, output)
	}
	return result{rate: float64(*messages) / took.Seconds(), cpu: command.ProcessState.UserTime() + command.ProcessState.SystemTime()}
}
