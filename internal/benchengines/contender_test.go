//go:build bench

package benchengines

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/apply"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

const (
	// without is the load in which nothing fails.
	without = "no failures"

	workQueue = "bench.work"
)

// contender is a pipeline of an engine, in a vhost of its own.
type contender struct {
	*brokertest.Broker

	name     string
	failures int
	// fail is the call that the engine needs.
	fail func(amqp.Delivery) error
	// config is the sidecar's, if the engine has one.
	config, sidecar string
}

func newContenders(t *testing.T, sidecar string) []*contender {
	t.Helper()
	nack := func(d amqp.Delivery) error { return d.Nack(false, false) }
	all := []*contender{
		{name: without, fail: nack},
		{name: pipeline.EngineWorker, failures: failures, fail: nack, sidecar: sidecar},
		{name: pipeline.EngineConsumer, failures: failures, fail: nack},
		{name: pipeline.EngineNative, failures: failures, fail: func(d amqp.Delivery) error { return d.Reject(true) }},
	}
	for _, c := range all {
		c.Broker = brokertest.NewNamed(t, "bench-"+c.name)
		if !c.VersionAtLeast("4.3.1") {
			t.Fatalf("RabbitMQ %s does not have all engines; run it with BROKER=\"--version 4.3\"", c.Version)
		}
		c.create(t)
	}
	return all
}

// create makes the pipeline. The load without failures has the queues of the default engine, and never uses them.
func (c *contender) create(t *testing.T) {
	t.Helper()
	spec := pipeline.Pipeline{
		Name: "bench", Vhost: c.Vhost, MaxAttempts: failures + 1, QueueType: topology.Quorum, PolicyPriority: pipeline.DefaultPolicyPriority,
		Delays: []pipeline.Delay{{Wait: delay, Spelling: pipeline.FormatDelay(delay)}}, RetryOn: []string{pipeline.ReasonRejected},
		WorkQueues: map[string]pipeline.WorkQueue{workQueue: {Type: topology.Quorum, Declare: true}},
	}
	if c.failures > 0 {
		spec.Engine = c.name
	}
	client, err := broker.New(broker.Config{Endpoint: c.Endpoint, Username: c.Username, Password: c.Password})
	if err != nil {
		t.Fatal(err)
	}
	wanted := apply.Change{Vhost: c.Vhost, Wanted: pipeline.Expand(spec)}
	if err := apply.New(client, apply.DefaultTimes()).Create(t.Context(), wanted); err != nil {
		t.Fatal(err)
	}
	if c.sidecar == "" {
		return
	}
	config, err := json.Marshal(map[string]any{"pipelines": []pipeline.Worker{spec.Worker()}})
	if err != nil {
		t.Fatal(err)
	}
	c.config = filepath.Join(t.TempDir(), "worker.json")
	if err := os.WriteFile(c.config, config, 0o600); err != nil {
		t.Fatal(err)
	}
}

// expectEmpty checks that nothing was parked, and nothing is left over.
func (c *contender) expectEmpty(t *testing.T) {
	t.Helper()
	for _, queue := range []string{workQueue, pipeline.Names("bench").FailedQueue()} {
		q, err := c.Channel(t).QueueDeclarePassive(queue, true, false, false, false, nil)
		if err == nil && q.Messages > 0 {
			err = fmt.Errorf("%d messages", q.Messages)
		}
		if err != nil {
			t.Errorf("%s, %s: %v", c.name, queue, err)
		}
	}
}
