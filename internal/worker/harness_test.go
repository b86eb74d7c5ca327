package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/certificates"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/metrics"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/sidecartest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/worker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/workerconfig"
)

// testVhost is a test's own vhost.
type testVhost struct{ *brokertest.Broker }

// testPipeline is a retry pipeline on a broker, in a vhost of its own.
type testPipeline struct {
	testVhost
	spec  pipeline.Pipeline
	names pipeline.Names
}

// newPipeline makes the topology of a pipeline with these quorum work queues.
func newPipeline(t *testing.T, name string, delays []string, attempts int, workQueues ...string) *testPipeline {
	t.Helper()
	spec := newSpec(topology.Quorum, delays, attempts, workQueues...)
	spec.Name = name
	return newPipelineOf(t, spec)
}

// newSpec specifies a pipeline "orders" whose queues are all of one type.
func newSpec(queueType string, delays []string, attempts int, workQueues ...string) pipeline.Pipeline {
	spec := pipeline.Pipeline{
		Name: "orders", MaxAttempts: attempts, QueueType: queueType,
		RetryOn: []string{pipeline.ReasonRejected}, WorkQueues: map[string]pipeline.WorkQueue{},
	}
	for _, d := range delays {
		wait, err := pipeline.ParseDelay(d)
		if err != nil {
			panic(err)
		}
		spec.Delays = append(spec.Delays, pipeline.Delay{Wait: wait, Spelling: d})
	}
	for _, queue := range workQueues {
		spec.WorkQueues[queue] = pipeline.WorkQueue{Type: queueType, Declare: true}
	}
	return spec
}

func newPipelineOf(t *testing.T, spec pipeline.Pipeline) *testPipeline {
	t.Helper()
	p := &testPipeline{testVhost: testVhost{brokertest.New(t)}, spec: spec, names: pipeline.Names(spec.Name)}
	p.spec.Vhost = p.Vhost
	p.Create(t, p.spec.Expand())
	return p
}

func (p testVhost) set(t *testing.T, method, path string, body any) {
	t.Helper()
	p.Call(t, method, path, body, nil)
}

func (p *testPipeline) deleteFailedExchange(t *testing.T) {
	t.Helper()
	p.set(t, "DELETE", p.Path("exchanges", p.names.FailedExchange()), nil)
}

func (p *testPipeline) unbindFailedQueue(t *testing.T) {
	t.Helper()
	p.Unbind(t, p.names.FailedExchange(), "q", p.names.FailedQueue())
}

// fixedBrokers returns brokers with fixed addresses and credentials.
func fixedBrokers(uris ...amqpconn.URI) amqpconn.Brokers {
	return func() ([]amqpconn.URI, error) { return uris, nil }
}

func configOf(t *testing.T, workers ...pipeline.Worker) []byte {
	t.Helper()
	data, err := json.Marshal(map[string]any{"pipelines": workers})
	require.NoError(t, err)
	return data
}

// running is a worker within the test's process.
type running struct {
	cancel context.CancelFunc
	done   chan struct{}
	err    error
	Log    *sidecartest.Log
	seen   *metrics.Set
}

// work starts a worker, which stops when the test ends.
func (p *testPipeline) work(t *testing.T) *running {
	t.Helper()
	return p.workAs(t, p.URI, p.spec.Worker())
}

func (p *testPipeline) workAs(t *testing.T, rawURI string, w pipeline.Worker) *running {
	t.Helper()
	return p.workWith(t, rawURI, w, func(context.Context, *worker.Options) {})
}

// workWith starts a worker on brokers, with options that the test can change.
func (p *testPipeline) workWith(t *testing.T, rawURIs string, w pipeline.Worker, change func(context.Context, *worker.Options)) *running {
	t.Helper()
	return p.workOn(t, rawURIs, configOf(t, w), change)
}

// workOn is the same for a whole configuration.
func (p testVhost) workOn(t *testing.T, rawURIs string, configured []byte, change func(context.Context, *worker.Options)) *running {
	t.Helper()
	config, err := workerconfig.Parse(configured)
	require.NoError(t, err)
	uris, err := amqpconn.ParseURIs(rawURIs, certificates.Set{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	r := &running{cancel: cancel, done: make(chan struct{}), Log: &sidecartest.Log{}, seen: metrics.New("test")}
	options := worker.Options{
		Config: config, Brokers: fixedBrokers(uris...), Prefetch: worker.DefaultPrefetch,
		Logger: slog.New(slog.NewTextHandler(r.Log, nil)), Metrics: r.seen,
	}
	change(ctx, &options)
	go func() {
		defer close(r.done)
		r.err = worker.Run(ctx, options)
	}()
	t.Cleanup(func() {
		r.stop(t)
		if t.Failed() {
			t.Logf("the worker's log:\n%s", r.Log)
		}
	})
	return r
}

// stop ends the worker and waits for it.
func (r *running) stop(t *testing.T) {
	t.Helper()
	r.cancel()
	brokertest.Receive(t, r.done)
}

// consumer keeps the deliveries of a queue.
type consumer struct {
	mu  sync.Mutex
	got []amqp.Delivery
}

// consume handles each delivery of a queue. Without a handler, it rejects them.
func (p testVhost) consume(t *testing.T, queue string, handle func(amqp.Delivery) error) *consumer {
	t.Helper()
	if handle == nil {
		handle = func(d amqp.Delivery) error { return d.Reject(false) }
	}
	ch := p.Channel(t)
	require.NoError(t, ch.Qos(100, 0, false))
	deliveries, err := ch.Consume(queue, "", false, false, false, false, nil)
	require.NoError(t, err)
	c := &consumer{}
	go func() {
		for d := range deliveries {
			c.mu.Lock()
			c.got = append(c.got, d)
			c.mu.Unlock()
			if err := handle(d); err != nil && !errors.Is(err, amqp.ErrClosed) {
				t.Errorf("handle a delivery of %q: %v", queue, err)
			}
		}
	}()
	return c
}

func (c *consumer) deliveries() []amqp.Delivery {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.got)
}

// await waits until a message is in the queue and takes it.
func (p testVhost) await(t *testing.T, queue string) amqp.Delivery {
	t.Helper()
	var got amqp.Delivery
	brokertest.Eventually(t, func() error {
		d, ok := p.Get(t, queue)
		if !ok {
			return fmt.Errorf("no message in %s", queue)
		}
		got = d
		return nil
	})
	return got
}

// awaitFailed waits for a message in the failed queue, checks its reason and takes it.
func (p *testPipeline) awaitFailed(t *testing.T, reason string) amqp.Delivery {
	t.Helper()
	d := p.await(t, p.names.FailedQueue())
	if got := d.Headers["dead-letter-reason"]; got != reason {
		t.Errorf("dead-letter-reason %v, want %s; headers %v", got, reason, d.Headers)
	}
	return d
}

// expectEmpty checks that the queue has no other message.
func (p testVhost) expectEmpty(t *testing.T, queue string) {
	t.Helper()
	if d, ok := p.Get(t, queue); ok {
		t.Errorf("%s has another message: %v", queue, d.Headers)
	}
}

// lastAttempt returns the headers of a message of orders.created that has failed once. With two attempts in all, its
// next failure is the last.
func lastAttempt() amqp.Table {
	return amqp.Table{"retry-pipeline": "orders", "retry-queue": "orders.created", "retry-count": int64(1)}
}

func withUser(t *testing.T, rawURI, user, password string) string {
	t.Helper()
	u, err := url.Parse(rawURI)
	require.NoError(t, err)
	u.User = url.UserPassword(user, password)
	return u.String()
}

// countIs compares the number of messages, ready or not, with the number in the management API.
func (p testVhost) countIs(t *testing.T, queue string, want int) error {
	t.Helper()
	_, answer := p.Request(t, "GET", p.Path("queues", queue), nil)
	var got struct {
		Messages *int `json:"messages"`
	}
	require.NoError(t, json.Unmarshal(answer, &got))
	if got.Messages == nil || *got.Messages != want {
		return fmt.Errorf("%s: %s, want %d messages", queue, answer, want)
	}
	return nil
}

// rejectOne rejects one message of orders.created.
func (p *testPipeline) rejectOne(t *testing.T) {
	t.Helper()
	p.getOne(t, p.Channel(t), "orders.created", func(d amqp.Delivery) error { return d.Reject(false) })
}

// getOne waits for a message and settles it.
func (p testVhost) getOne(t *testing.T, ch *amqp.Channel, queue string, settle func(amqp.Delivery) error) {
	t.Helper()
	brokertest.Eventually(t, func() error {
		d, ok, err := ch.Get(queue, false)
		require.NoErrorf(t, err, "get from %q", queue)
		if !ok {
			return fmt.Errorf("no message in %s", queue)
		}
		return settle(d)
	})
}

// fillInbox publishes messages to the dead-letter exchange as a consumer would, and returns their ids.
func (p *testPipeline) fillInbox(t *testing.T, n int, build func(int) amqp.Publishing) map[string]bool {
	t.Helper()
	ch := p.Channel(t)
	require.NoError(t, ch.Confirm(false))
	ids := map[string]bool{}
	var last *amqp.DeferredConfirmation
	confirms := ch.NotifyPublish(make(chan amqp.Confirmation, n))
	for i := range n {
		m := build(i)
		if m.MessageId == "" {
			m.MessageId = strconv.Itoa(i)
		}
		m.DeliveryMode = amqp.Persistent
		ids[m.MessageId] = true
		var err error
		if last, err = ch.PublishWithDeferredConfirm(p.names.DeadLetterExchange(), "key", true, false, m); err != nil {
			t.Fatal(err)
		}
	}
	last.Wait()
	for range n {
		if c := <-confirms; !c.Ack {
			t.Fatal("the inbox refused a message")
		}
	}
	return ids
}

// fillQueue publishes to a queue with a length limit until it refuses.
func (p testVhost) fillQueue(t *testing.T, queue string) {
	t.Helper()
	ch := p.Channel(t)
	require.NoError(t, ch.Confirm(false))
	for range 50 {
		c, err := ch.PublishWithDeferredConfirm("", queue, true, false, amqp.Publishing{MessageId: "filling"})
		require.NoError(t, err)
		if !c.Wait() {
			return
		}
	}
	t.Fatalf("%s does not fill up", queue)
}

// awaitAll takes messages off orders.created until each of the ids has come. It returns how many came more than once.
func (p *testPipeline) awaitAll(t *testing.T, ids map[string]bool) (duplicates int) {
	t.Helper()
	const queue = "orders.created"
	ch := p.Channel(t)
	require.NoError(t, ch.Qos(1000, 0, false))
	deliveries, err := ch.Consume(queue, "", true, false, false, false, nil)
	require.NoError(t, err)
	seen := map[string]bool{}
	for len(seen) < len(ids) {
		d := brokertest.Receive(t, deliveries)
		if seen[d.MessageId] {
			duplicates++
		}
		seen[d.MessageId] = true
	}
	return duplicates
}

// toRetry returns a message that goes back to orders.created.
func toRetry(int) amqp.Publishing {
	return amqp.Publishing{Headers: amqp.Table{"retry-queue": "orders.created"}}
}

// toPark returns a message that fails for the second and last time.
func toPark(int) amqp.Publishing { return amqp.Publishing{Headers: lastAttempt()} }

// expectHeaders compares some headers of a delivery.
func expectHeaders(t *testing.T, d amqp.Delivery, want amqp.Table) {
	t.Helper()
	require.Equal(t, want, some(d.Headers, want), "all headers: %v", d.Headers)
}

// some returns the headers with these names.
func some(headers, names amqp.Table) amqp.Table {
	found := amqp.Table{}
	for name := range names {
		found[name] = headers[name]
	}
	return found
}

// nested returns headers that the client library cannot decode.
func nested() amqp.Table {
	headers := amqp.Table{}
	for range 40 {
		headers = amqp.Table{"k": headers}
	}
	return headers
}
