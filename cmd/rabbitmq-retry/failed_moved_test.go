package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/apply"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// movable is a vhost where pipelines come and go around the work queue "created", whose consumer rejects everything.
type movable struct {
	orders
	work       pipeline.WorkQueue
	deliveries chan amqp.Delivery
}

// attempts is how often a message is delivered before it is parked.
const attempts = 2

func newMovable(t *testing.T) movable {
	t.Helper()
	m := newMovableAround(t, pipeline.WorkQueue{Type: topology.Quorum}, nil)
	m.deliveries = make(chan amqp.Delivery, 100)
	_, deliveries := m.Consume(t, "created", 0)
	go func() {
		for d := range deliveries {
			m.deliveries <- d
			_ = d.Reject(false) // otherwise it comes again, and the test sees one attempt too many
		}
	}()
	return m
}

// newMovableAround has a work queue without a consumer.
func newMovableAround(t *testing.T, work pipeline.WorkQueue, arguments map[string]any) movable {
	t.Helper()
	m := movable{orders: orders{Broker: brokertest.New(t)}, work: work}
	m.env = map[string]string{cli.EnvURI: m.URI}
	m.DeclareQueue(t, "created", work.Type, arguments)
	return m
}

// create creates a pipeline around the work queue, and starts its worker.
func (m movable) create(t *testing.T, name string) {
	t.Helper()
	m.startWorker(t, m.createIdle(t, name))
}

// createIdle creates a pipeline around the work queue, and returns its worker's configuration.
func (m movable) createIdle(t *testing.T, name string) string {
	t.Helper()
	spec := pipeline.Pipeline{
		Name: name, Vhost: m.Vhost, MaxAttempts: attempts, QueueType: topology.Quorum, PolicyPriority: pipeline.DefaultPolicyPriority,
		Delays: []pipeline.Delay{{Wait: 100 * time.Millisecond, Spelling: "100ms"}}, RetryOn: []string{pipeline.ReasonRejected},
		WorkQueues: map[string]pipeline.WorkQueue{"created": m.work},
	}
	client, err := broker.New(broker.Config{Endpoint: m.Endpoint, Username: m.Username, Password: m.Password})
	require.NoError(t, err)
	wanted := apply.Change{Owner: spec.Owner(), Vhost: m.Vhost, Wanted: spec.Expand()}
	require.NoError(t, apply.New(client, apply.DefaultTimes()).Create(t.Context(), wanted))
	m.awaitPolicy(t, name)
	config, err := json.Marshal(map[string]any{"pipelines": []pipeline.Worker{spec.Worker()}})
	require.NoError(t, err)
	return string(config)
}

// awaitPolicy waits until the work queue dead-letters to this pipeline.
func (m movable) awaitPolicy(t *testing.T, name string) {
	t.Helper()
	brokertest.Eventually(t, func() error {
		var queue struct {
			Effective map[string]any `json:"effective_policy_definition"`
		}
		m.Call(t, http.MethodGet, m.Path("queues", "created"), nil, &queue)
		if got := queue.Effective["dead-letter-exchange"]; got != name+".dlx" {
			return fmt.Errorf("dead letters go to %v", got)
		}
		return nil
	})
}

func (m movable) startWorker(t *testing.T, config string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan string, 1)
	go func() {
		code, _, errs := execute(ctx, with(m.env, cli.EnvConfigJSON, config), "worker")
		ended <- fmt.Sprintf("exit code %d\n%s", code, errs)
	}()
	t.Cleanup(func() {
		cancel()
		if text := <-ended; t.Failed() {
			t.Log("worker: ", text)
		}
	})
}

// detach detaches the work queue from a pipeline, as a change of its work_queues does.
func (m movable) detach(t *testing.T, name string) {
	t.Helper()
	m.Call(t, http.MethodDelete, m.Path("policies", "retry/"+name+"/queues"), nil, nil)
	require.NoError(t, m.Channel(t).QueueUnbind("created", "return:created", name+".return", nil))
}

// awaitParked waits until the message is in the pipeline's failed queue, after all of its attempts.
func (m movable) awaitParked(t *testing.T, name string) {
	t.Helper()
	m.holds(t, name+".failed", 1)
	assert.Len(t, m.deliveries, attempts)
	for len(m.deliveries) > 0 {
		<-m.deliveries
	}
}

// If a work queue has moved to another pipeline, a replayed message fails in the new pipeline, with attempts that count from
// 1.
func TestReplayToWhatHasMoved(t *testing.T) {
	t.Parallel()
	for name, move := range map[string]func(t *testing.T, m movable){
		// The binding is gone, so the message goes to the inbox, and the worker sends it to its queue by name.
		"to another pipeline": func(t *testing.T, m movable) {
			m.detach(t, "orders")
			m.create(t, "shop")
			m.says(t, exitOK, "failed replay orders --all --yes", "replayed 1 of 1 to created")
		},
		"by --to": func(t *testing.T, m movable) {
			m.detach(t, "orders")
			m.create(t, "shop")
			m.says(t, exitOK, "failed replay orders --all --to created --yes", "replayed 1 of 1 to created")
		},
		// A pipeline with failed messages cannot be destroyed.
		"to a pipeline of another name": func(t *testing.T, m movable) {
			file := filepath.Join(t.TempDir(), "failed.jsonl")
			m.run(t, exitOK, "failed delete orders --all --export "+file+" --yes")
			m.detach(t, "orders")
			for _, queue := range []string{"orders.inbox", "orders.retry.100ms", "orders.failed"} {
				m.Call(t, http.MethodDelete, m.Path("queues", queue), nil, nil)
			}
			for _, exchange := range []string{"dlx", "retry", "return", "failed"} {
				m.Call(t, http.MethodDelete, m.Path("exchanges", "orders."+exchange), nil, nil)
			}
			m.create(t, "shop")
			m.run(t, exitOK, "failed import shop "+file+" --yes")
			m.says(t, exitError, "failed replay shop --all --yes --wait=5s", "replayed 1 of 1 to created", "After 5s: 1 back in shop.failed. 1 exhausted.")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMovable(t)
			m.create(t, "orders")
			m.Publish(t, "", "created", amqp.Publishing{MessageId: "order-1", DeliveryMode: amqp.Persistent})
			m.awaitParked(t, "orders")
			move(t, m)
			m.awaitParked(t, "shop")
			d, _ := m.Get(t, "shop.failed")
			for header, want := range map[string]any{
				"dead-letter-reason": "exhausted", "retry-pipeline": "shop", "retry-queue": "created",
				"retry-count": int64(attempts), "replay-count": int64(1),
			} {
				assert.Equal(t, want, d.Headers[header], header)
			}
			assert.Equal(t, "order-1", d.MessageId)
		})
	}
}

// If a message's work queue is gone, the message comes back with a reason, and the wait reports that.
func TestReplayToAQueueThatIsGone(t *testing.T) {
	t.Parallel()
	m := newMovable(t)
	m.create(t, "orders")
	m.Publish(t, "", "created", amqp.Publishing{MessageId: "order-1", DeliveryMode: amqp.Persistent})
	m.awaitParked(t, "orders")
	m.Call(t, http.MethodDelete, m.Path("queues", "created"), nil, nil)
	m.says(t, exitError, "failed replay orders --all --yes --wait=5s",
		"replayed 1 of 1 to created", "After 5s: 1 back in orders.failed. 1 unknown_queue.")
}
