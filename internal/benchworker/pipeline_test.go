//go:build bench

package benchworker

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/benchtest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
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
	p := &benchPipeline{spec: pipeline.Pipeline{
		Name: string(names), MaxAttempts: 5, QueueType: queueType, PolicyPriority: pipeline.DefaultPolicyPriority,
		Delays: []pipeline.Delay{{Wait: delay, Spelling: "1h"}}, RetryOn: []string{pipeline.ReasonRejected},
		WorkQueues: map[string]pipeline.WorkQueue{},
	}}
	for i := range queues {
		queue := fmt.Sprintf("bench.work.%03d", i)
		p.queues = append(p.queues, queue)
		p.spec.WorkQueues[queue] = pipeline.WorkQueue{Type: queueType, Declare: true}
	}
	p.Broker = benchtest.New(t, fmt.Sprintf("%s-%d", queueType, queues), func(vhost string) topology.Topology {
		p.spec.Vhost = vhost
		return pipeline.Expand(p.spec)
	})
	t.Cleanup(func() { p.deleteQueues(t) })
	return p
}

// deleteQueues is for what takes the broker too long in one request, that for the vhost.
func (p *benchPipeline) deleteQueues(t *testing.T) {
	t.Helper()
	for _, queue := range p.queues {
		p.Request(t, http.MethodDelete, p.Path("queues", queue), nil)
	}
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
