//go:build bench

package benchengines

import (
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/benchtest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
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
		c.Broker = benchtest.New(t, c.name, func(vhost string) topology.Topology { return c.spec(vhost).Expand() })
		if !c.VersionAtLeast("4.3.1") {
			t.Fatalf("RabbitMQ %s does not have all engines; run it with BROKER=\"--version 4.3\"", c.Version)
		}
	}
	return all
}

// spec is the pipeline. The load without failures has the queues of the default engine, and never uses them.
func (c *contender) spec(vhost string) pipeline.Pipeline {
	spec := benchtest.Pipeline(topology.Quorum, delay, workQueue)
	spec.Vhost, spec.MaxAttempts = vhost, failures+1
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

// turn publishes all messages at the rate, and returns once each has failed as often as it has to and was processed.
func (c *contender) turn(t *testing.T) result {
	t.Helper()
	stop := c.startSidecar(t)
	ch, deliveries := c.Consume(t, workQueue, 2*(*rate))
	node, began := c.brokerProcess(t), time.Now()
	before := node.used(t)
	published := make(chan error, 1)
	address := func(int) (exchange, key string, _ amqp.Table) { return "", workQueue, nil }
	go func() { published <- c.Fill(*messages, *size, *rate, address) }()
	late := c.consume(t, deliveries)
	require.NoError(t, <-published)
	r := result{broker: node.used(t) - before, took: time.Since(began), late: late}
	r.sidecar = stop().CPU
	_ = ch.Close()
	c.expectEmpty(t)
	return r
}

// consume has each message fail, and processes it after that. It returns by how much more than the delay each came back late.
func (c *contender) consume(t *testing.T, deliveries <-chan amqp.Delivery) []time.Duration {
	t.Helper()
	failed, last := map[string]int{}, map[string]time.Time{}
	var late []time.Duration
	for processed := 0; processed < *messages; {
		d := brokertest.Receive(t, deliveries)
		if failed[d.MessageId] > 0 {
			late = append(late, time.Since(last[d.MessageId])-delay)
		}
		if failed[d.MessageId] < c.failures {
			failed[d.MessageId]++
			last[d.MessageId] = time.Now()
			require.NoError(t, c.fail(d))
			continue
		}
		processed++
		require.NoError(t, d.Ack(false))
	}
	return late
}
