//go:build bench

package benchworker

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/apply"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
)

const (
	names = pipeline.Names("bench")
	// delay is longer than any test: nothing may leave the retry queue.
	delay    = time.Hour
	patience = 2 * time.Minute
)

// pipeline is what a user would have, with as many work queues.
type benchPipeline struct {
	*brokertest.Broker
	spec   pipeline.Pipeline
	queues []string
	// control looks at queues and purges them.
	control *amqp.Channel
}

func newPipeline(t *testing.T, queueType string, queues int) *benchPipeline {
	t.Helper()
	p := &benchPipeline{Broker: brokertest.NewNamed(t, fmt.Sprintf("bench-%s-%d", queueType, queues))}
	p.spec = pipeline.Pipeline{
		Name: string(names), Vhost: p.Vhost, MaxAttempts: 5, QueueType: queueType, PolicyPriority: pipeline.DefaultPolicyPriority,
		Delays: []pipeline.Delay{{Wait: delay, Spelling: "1h"}}, RetryOn: []string{pipeline.ReasonRejected},
		WorkQueues: map[string]pipeline.WorkQueue{},
	}
	for i := range queues {
		queue := fmt.Sprintf("bench.work.%03d", i)
		p.queues = append(p.queues, queue)
		p.spec.WorkQueues[queue] = pipeline.WorkQueue{Type: queueType, Declare: true}
	}
	client, err := broker.New(broker.Config{Endpoint: p.Endpoint, Username: p.Username, Password: p.Password})
	if err != nil {
		t.Fatal(err)
	}
	wanted := apply.Change{Vhost: p.Vhost, Wanted: pipeline.Expand(p.spec)}
	if err := apply.New(client, apply.DefaultTimes()).Create(t.Context(), wanted); err != nil {
		t.Fatal(err)
	}
	p.control = p.Channel(t)
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
func (p *benchPipeline) config(t *testing.T) []byte {
	t.Helper()
	text, err := json.Marshal(map[string]any{"pipelines": []pipeline.Worker{p.spec.Worker()}})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func (p *benchPipeline) look(t *testing.T, queue string) amqp.Queue {
	t.Helper()
	q, err := p.control.QueueDeclarePassive(queue, true, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// clear checks that all messages were moved, once, and removes them. The inbox may have some again: a
// broker can drop the last acknowledgements of a connection that closes.
func (p *benchPipeline) clear(t *testing.T, moved int) {
	t.Helper()
	brokertest.Eventually(t, patience, func() error {
		if n := p.look(t, names.Inbox()).Consumers; n != 0 {
			return fmt.Errorf("the inbox has %d consumers", n)
		}
		return nil
	})
	p.purge(t, names.Inbox())
	if purged := p.purge(t, names.RetryQueue(delay)); purged != moved {
		t.Errorf("%d messages were moved, want %d", purged, moved)
	}
}

func (p *benchPipeline) purge(t *testing.T, queue string) int {
	t.Helper()
	purged, err := p.control.QueuePurge(queue, false)
	if err != nil {
		t.Fatal(err)
	}
	return purged
}
