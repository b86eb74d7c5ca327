//go:build bench

package benchworker

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/benchtest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

const (
	names = pipeline.Names("bench")
	// delay is longer than any test: nothing may leave the retry queue.
	delay = time.Hour
)

// pipeline is what a user would have, with as many work queues.
type benchPipeline struct {
	benchtest.Broker

	spec   pipeline.Pipeline
	queues []string
}

func newPipeline(t *testing.T, queueType string, queues int) *benchPipeline {
	t.Helper()
	p := &benchPipeline{}
	for i := range queues {
		p.queues = append(p.queues, fmt.Sprintf("bench.work.%03d", i))
	}
	p.spec = benchtest.Pipeline(queueType, delay, p.queues...)
	p.Broker = benchtest.New(t, fmt.Sprintf("%s-%d", queueType, queues), func(vhost string) topology.Topology {
		p.spec.Vhost = vhost
		return p.spec.Expand()
	})
	t.Cleanup(func() { // takes the broker too long in one request, that for the vhost
		for _, queue := range p.queues {
			p.Request(t, http.MethodDelete, p.Path("queues", queue), nil)
		}
	})
	return p
}

// config is the sidecar's.
func (p *benchPipeline) config() map[string]any {
	return map[string]any{"pipelines": []pipeline.Worker{p.spec.Worker()}}
}

// clear checks that all messages were moved, once, and removes them.
func (p *benchPipeline) clear(t *testing.T, moved int) {
	t.Helper()
	p.Purge(t, names.Inbox())
	if purged := p.Purge(t, names.RetryQueue(delay)); purged != moved {
		t.Errorf("%d messages were moved, want %d", purged, moved)
	}
}

// newBusy is a pipeline whose work queues have consumers.
func newBusy(t *testing.T, queueType string, queues int) *benchPipeline {
	t.Helper()
	p := newPipeline(t, queueType, queues)
	p.rejectAll(t)
	return p
}

// rejectAll rejects whatever comes to the work queues, as their consumers would.
func (p *benchPipeline) rejectAll(t *testing.T) {
	t.Helper()
	ch, err := p.Dial(t).Channel()
	require.NoError(t, err)
	require.NoError(t, ch.Qos(500, 0, false))
	for _, queue := range p.queues {
		deliveries, err := ch.Consume(queue, "", false, false, false, false, nil)
		require.NoError(t, err)
		go func() {
			for d := range deliveries {
				_ = d.Reject(false) // if it fails, fill will not see the message
			}
		}()
	}
}

// fill puts so many dead letters into the inbox, through the work queues in turn.
func (p *benchPipeline) fill(t *testing.T, n, size int) {
	t.Helper()
	headers := amqp.Table{"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}
	require.NoError(t, p.Fill(n, size, 0, func(i int) (exchange, key string, _ amqp.Table) { return "", p.queues[i%len(p.queues)], headers }))
	p.AwaitMessages(t, names.Inbox(), n)
}
