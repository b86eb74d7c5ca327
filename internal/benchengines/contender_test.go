//go:build bench

package benchengines

import (
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/benchtest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/worker"
)

const (
	// without is the load in which nothing fails.
	without = "no failures"

	workQueue = "bench.work"
)

// contender is a pipeline of an engine, in a vhost of its own.
type contender struct {
	benchtest.Broker

	name     string
	failures int
	// fail is the call that the engine needs.
	fail func(amqp.Delivery) error
	// sidecar is a build of it, if the engine has one.
	sidecar string
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
		c.Broker = benchtest.New(t, c.name, func(vhost string) topology.Topology { return pipeline.Expand(c.spec(vhost)) })
		if !c.VersionAtLeast("4.3.1") {
			t.Fatalf("RabbitMQ %s does not have all engines; run it with BROKER=\"--version 4.3\"", c.Version)
		}
	}
	return all
}

// spec is the pipeline. The load without failures has the queues of the default engine, and never uses them.
func (c *contender) spec(vhost string) pipeline.Pipeline {
	spec := pipeline.Pipeline{
		Name: "bench", Vhost: vhost, MaxAttempts: failures + 1, QueueType: topology.Quorum, PolicyPriority: pipeline.DefaultPolicyPriority,
		Delays: []pipeline.Delay{{Wait: delay, Spelling: pipeline.FormatDelay(delay)}}, RetryOn: []string{pipeline.ReasonRejected},
		WorkQueues: map[string]pipeline.WorkQueue{workQueue: {Type: topology.Quorum, Declare: true}},
	}
	if c.failures > 0 {
		spec.Engine = c.name
	}
	return spec
}

// startSidecar starts it, if the engine has one, until stop is called, which says what processor time it took.
func (c *contender) startSidecar(t *testing.T) (stop func() benchtest.Usage) {
	t.Helper()
	if c.sidecar == "" {
		return func() benchtest.Usage { return benchtest.Usage{} }
	}
	stop = c.StartSidecar(t, c.sidecar, map[string]any{"pipelines": []pipeline.Worker{c.spec(c.Vhost).Worker()}}, worker.DefaultPrefetch)
	c.AwaitConsumers(t, "bench.inbox", 1)
	return stop
}

// expectEmpty checks that nothing was parked, and nothing is left over.
func (c *contender) expectEmpty(t *testing.T) {
	t.Helper()
	for _, queue := range []string{workQueue, pipeline.Names("bench").FailedQueue()} {
		if n := c.Look(t, queue).Messages; n > 0 {
			t.Errorf("%s: %d messages in %s", c.name, n, queue)
		}
	}
}
