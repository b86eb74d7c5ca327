//go:build bench

package benchfailed

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/benchtest"
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
		spec := benchtest.Pipeline(*queueType, time.Minute, workQueue)
		spec.Vhost = vhost
		return spec.Expand()
	})}
}

// fill puts messages into the failed queue, as a worker parks them.
func (v *vhost) fill(t *testing.T) {
	t.Helper()
	err := v.Fill(*messages, *size, 0, func(i int) (exchange, key string, headers amqp.Table) {
		return "", names.FailedQueue(), amqp.Table{
			"dead-letter-reason": "exhausted", "dead-letter-at": time.Now().UnixMilli(), "retry-queue": workQueue, "retry-pipeline": string(names),
			"retry-exchange": "shop", "retry-routing-key": "order.created.eu", "retry-count": int64(5), "retry-max-attempts": int64(5),
			"retry-publish-id": benchtest.ID(i), "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
		}
	})
	require.NoError(t, err)
	v.expect(t, names.FailedQueue())
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

// lane is nearly the largest prefetch there is.
const lane = 65_000

// bareLook takes all messages and puts them back.
func (v *vhost) bareLook(t *testing.T) result {
	t.Helper()
	began := time.Now()
	var channels []*amqp.Channel
	for left := *messages; left > 0; left -= lane {
		ch, deliveries := v.Consume(t, names.FailedQueue(), lane)
		channels = append(channels, ch)
		for range min(left, lane) {
			<-deliveries
		}
	}
	for _, ch := range channels {
		require.NoError(t, ch.Cancel(names.FailedQueue(), false))
		require.NoError(t, ch.Nack(0, true, true))
		_ = ch.Close()
	}
	v.expect(t, names.FailedQueue())
	return result{rate: float64(*messages) / time.Since(began).Seconds()}
}

// barePipe has the pipe, whose prefetch is that of a replay, move all messages to the work queue.
func (v *vhost) barePipe(t *testing.T) result {
	t.Helper()
	began := time.Now()
	pipe := &benchtest.Pipe{
		URI: v.VhostURI(), Queue: names.FailedQueue(), Exchange: names.ReturnExchange(), Key: pipeline.ReturnKey(workQueue),
		Messages: *messages, Window: 2000,
	}
	require.NoError(t, pipe.Move())
	return result{rate: float64(*messages) / time.Since(began).Seconds()}
}
