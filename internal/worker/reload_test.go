package worker_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/probe"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/reload"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/sidecartest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/worker"
)

// configFile is a configuration that a worker follows.
type configFile struct {
	path string

	mu       sync.Mutex
	outcomes []reload.Outcome
}

func newConfigFile(t *testing.T, workers ...pipeline.Worker) *configFile {
	t.Helper()
	c := &configFile{path: filepath.Join(t.TempDir(), "worker.json")}
	c.replace(t, configOf(t, workers...))
	return c
}

// replace replaces the file as a whole.
func (c *configFile) replace(t *testing.T, content []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(c.path+".new", content, 0o600))
	require.NoError(t, os.Rename(c.path+".new", c.path))
}

// awaitGeneration waits until a configuration is in force.
func (c *configFile) awaitGeneration(t *testing.T, want int) {
	t.Helper()
	brokertest.Eventually(t, func() error {
		c.mu.Lock()
		defer c.mu.Unlock()
		if n := len(c.outcomes); n == 0 || c.outcomes[n-1].Generation < want {
			return fmt.Errorf("outcomes %+v, want generation %d", c.outcomes, want)
		}
		return nil
	})
}

// workFrom starts a worker that follows the file, which has the configuration w now.
func (p *testPipeline) workFrom(t *testing.T, rawURI string, c *configFile, w pipeline.Worker) *running {
	t.Helper()
	return p.workWith(t, rawURI, w, func(ctx context.Context, o *worker.Options) {
		file := reload.File{Path: c.path, Logger: o.Logger, Report: func(outcome reload.Outcome) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.outcomes = append(c.outcomes, outcome)
		}}
		o.Configs = file.Follow(ctx, configOf(t, w), nil)
	})
}

func withDelays(w pipeline.Worker, delays ...string) pipeline.Worker {
	w.Delays = delays
	return w
}

// Each message fails once, and comes back after the delay of the schedule then in force.
func TestChangedDelaysTakeNeitherMessagesNorConnections(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"100ms", "200ms"}, 3, "orders.created")
	const messages, changes = 1200, 12
	var mu sync.Mutex
	deliveries, delays := map[string]int{}, map[any]int{}
	p.consume(t, "orders.created", func(d amqp.Delivery) error {
		mu.Lock()
		deliveries[d.MessageId]++
		delays[d.Headers["retry-delay-ms"]]++
		mu.Unlock()
		if d.Headers["retry-count"] == nil {
			return d.Reject(false)
		}
		return d.Ack(false)
	})
	short, long := withDelays(p.spec.Worker(), "100ms"), withDelays(p.spec.Worker(), "200ms")
	file, x := newConfigFile(t, short), &proxy{}
	r := p.workFrom(t, p.throughProxy(t, x), file, short)
	r.Log.Await(t, "msg=consuming", 1)

	awaitBack := func(want int) {
		brokertest.Eventually(t, func() error {
			mu.Lock()
			defer mu.Unlock()
			if n := delays[int64(100)] + delays[int64(200)]; n < want {
				return fmt.Errorf("%d of %d messages came back", n, want)
			}
			return nil
		})
	}
	const batch = messages / changes
	ch, generation := p.Channel(t), 1
	for i := range messages {
		message := amqp.Publishing{MessageId: strconv.Itoa(i), DeliveryMode: amqp.Persistent}
		require.NoError(t, ch.Publish("", "orders.created", true, false, message))
		if i%batch == batch/2 {
			awaitBack(i - batch) // the others are on their way
			generation++
			file.replace(t, configOf(t, []pipeline.Worker{long, short}[generation%2]))
			file.awaitGeneration(t, generation)
		}
	}
	awaitBack(messages)
	p.expectSettled(t, r)

	mu.Lock()
	defer mu.Unlock()
	t.Logf("%d messages, %d reloads: %d came back after 100 ms, %d after 200 ms", messages, generation-1, delays[int64(100)], delays[int64(200)])
	for id, n := range deliveries {
		if n != 2 {
			t.Errorf("message %s was delivered %d times, want 2", id, n)
		}
	}
	if len(deliveries) != messages || delays[int64(100)] == 0 || delays[int64(200)] == 0 {
		t.Errorf("%d messages; delays %v", len(deliveries), delays)
	}
	p.expectEmpty(t, "orders.failed")
	if n := x.connections(); n != 2 {
		t.Errorf("%d connections, want 2:\n%s", n, r.Log)
	}
}

// other makes a second pipeline in the same vhost.
func (p *testPipeline) other(t *testing.T) *testPipeline {
	t.Helper()
	q := &testPipeline{testVhost: p.testVhost, spec: newSpec(topology.Quorum, []string{"100ms"}, 3, "other.created"), names: "other"}
	q.spec.Name, q.spec.Vhost = "other", p.Vhost
	q.Create(t, q.spec.Expand())
	return q
}

func TestPipelinesComeAndGoWithTheFile(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"100ms"}, 3, "orders.created")
	q := p.other(t)
	file, x := newConfigFile(t, p.spec.Worker()), &proxy{}
	r := p.workFrom(t, p.throughProxy(t, x), file, p.spec.Worker())
	const messages = 5000
	build := func(int) amqp.Publishing {
		return amqp.Publishing{Headers: amqp.Table{"retry-queue": "orders.created"}}
	}
	p.fillInbox(t, messages, build)
	a := p.collect(t, "orders.created")
	a.awaitAtLeast(t, messages/10)

	file.replace(t, configOf(t, q.spec.Worker()))
	r.Log.Await(t, "msg=stopped pipeline=orders", 1)
	stopped := a.count()
	if stopped == messages {
		t.Log("everything had arrived before the pipeline was removed")
	}
	p.Publish(t, "other.dlx", "", amqp.Publishing{Headers: amqp.Table{"retry-queue": "other.created"}})
	p.await(t, "other.created")
	if queue, err := p.Channel(t).QueueDeclarePassive("orders.inbox", true, false, false, false, nil); err != nil || queue.Consumers != 0 {
		t.Errorf("%d consumers, %v", queue.Consumers, err)
	}

	file.replace(t, configOf(t, p.spec.Worker(), q.spec.Worker()))
	r.Log.Await(t, "msg=consuming pipeline=orders", 2) // the inbox can have been empty before
	a.awaitAtLeast(t, messages)
	p.expectSettled(t, r, a)
	t.Logf("%d of %d messages had arrived when the pipeline had drained", stopped, messages)
	if n := x.connections(); n != 6 {
		t.Errorf("%d connections, want 6: two each time that a pipeline starts:\n%s", n, r.Log)
	}
}

// An unpublished message is judged by the new configuration.
func TestBacklogIsJudgedAgain(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"100ms"}, 2, "orders.created")
	p.unbindFailedQueue(t)
	p.Publish(t, "orders.dlx", "", amqp.Publishing{MessageId: "kept", Headers: lastAttempt()})
	file := newConfigFile(t, p.spec.Worker())
	r := p.workFrom(t, p.URI, file, p.spec.Worker())
	r.Log.Await(t, "message kept unacknowledged", 1)

	w := p.spec.Worker()
	w.MaxAttempts = 3
	file.replace(t, configOf(t, w))
	if d := p.await(t, "orders.created"); d.MessageId != "kept" || d.Headers["retry-count"] != int64(2) {
		t.Errorf("message %q with headers %v", d.MessageId, d.Headers)
	}
	p.expectSettled(t, r)
}

func (a *arrivals) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.seen)
}

func (a *arrivals) has(id string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.seen[id]
}

// connections is how many connections the worker has opened so far.
func (x *proxy) connections() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.workers)
}

// With the new configuration, messages that wait for a missing exchange can go elsewhere.
func TestWaitingMessagesFollowTheNewConfiguration(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"100ms"}, 2, "orders.created")
	p.set(t, "DELETE", p.Path("exchanges", "orders.failed"), nil)
	first := p.spec.Worker()
	file := newConfigFile(t, first)
	r := p.workFrom(t, p.URI, file, first)
	const messages = 5
	p.fillInbox(t, messages, toPark)
	r.Log.Await(t, "messages kept unacknowledged: the exchange is missing", 1)
	changed := first
	changed.MaxAttempts = 3
	file.replace(t, configOf(t, changed))
	p.collect(t, "orders.created").awaitAtLeast(t, messages)
}

// startFrom starts the command with a configuration file.
func (p *testPipeline) startFrom(t *testing.T, c *configFile) *sidecartest.Process {
	t.Helper()
	return sidecartest.Start(t, []string{"RABBITMQ_URI=" + p.URI}, "--config", c.path)
}

func TestProcessReloadsItsFile(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"100ms", "200ms"}, 3, "orders.created")
	comesBackAfter := func(ms int64) {
		p.Publish(t, "orders.dlx", "", amqp.Publishing{Headers: amqp.Table{"retry-queue": "orders.created"}})
		if d := p.await(t, "orders.created"); d.Headers["retry-delay-ms"] != ms {
			t.Errorf("headers %v, want a delay of %d ms", d.Headers, ms)
		}
	}
	short, long := withDelays(p.spec.Worker(), "100ms"), withDelays(p.spec.Worker(), "200ms")
	file := newConfigFile(t, short)
	w := p.startFrom(t, file)
	comesBackAfter(100)

	file.replace(t, configOf(t, withDelays(short, "100ms", "soon")))
	const refused = `element of the configuration refused: its previous configuration stays in force" error="`
	w.Log.Await(t, refused, 1)
	w.Log.Await(t, `pipelines[0].delays[1]: \"soon\" is not a duration`, 1)
	comesBackAfter(100)
	w.Signal(t, syscall.SIGHUP)
	w.Log.Await(t, refused, 2)

	file.replace(t, configOf(t, long))
	w.Log.Await(t, "generation=4", 1)
	w.Log.Await(t, "msg=\"configuration changed\"", 1)
	comesBackAfter(200)
	w.Signal(t, syscall.SIGHUP)
	w.Log.Await(t, "the configuration is already in force", 1)

	require.Zero(t, w.End(t, syscall.SIGTERM), w.Log)
	if log := w.Log; log.Count("msg=consuming") != 1 || log.Count(refused) != 2 {
		t.Errorf("the log:\n%s", log)
	}
}

// An element that only a newer release reads keeps its previous configuration. After a start it is off. The other one follows the file.
func TestNewerElementIsRefusedAlone(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"100ms", "200ms"}, 3, "orders.created")
	q := p.other(t)
	comesBackAfter := func(pipeline string, ms int64) {
		p.Publish(t, pipeline+".dlx", "", amqp.Publishing{Headers: amqp.Table{"retry-queue": pipeline + ".created"}})
		require.Equal(t, ms, p.await(t, pipeline+".created").Headers["retry-delay-ms"], pipeline)
	}
	short := withDelays(p.spec.Worker(), "100ms")
	both := configOf(t, withDelays(p.spec.Worker(), "200ms"), q.spec.Worker())
	newer := bytes.Replace(both, []byte(`{"version":1,"name":"orders"`), []byte(`{"min_reader":"0.9","newer":true,"version":1,"name":"orders"`), 1)
	require.NotEqual(t, both, newer)
	const problem = "pipelines[0]: needs release 0.9 or later, and this one reads up to 0.1: upgrade"
	expectRefused := func(r *running) {
		t.Helper()
		w := httptest.NewRecorder()
		probe.Handler(t.Context(), r.seen).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", http.NoBody))
		require.Equal(t, http.StatusOK, w.Code)
		require.Contains(t, w.Body.String(), problem)
		w = httptest.NewRecorder()
		probe.Handler(t.Context(), r.seen).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody))
		require.Contains(t, w.Body.String(), `rabbitmq_retry_config_element_refused{kind="pipeline",name="orders"`)
	}

	file := newConfigFile(t, short)
	r := p.workFrom(t, p.URI, file, short)
	comesBackAfter("orders", 100)
	file.replace(t, newer)
	r.Log.Await(t, problem, 1)
	comesBackAfter("other", 100)
	comesBackAfter("orders", 100)
	expectRefused(r)
	file.replace(t, both)
	file.awaitGeneration(t, 3)
	comesBackAfter("orders", 200)
	r.stop(t)

	r = p.workOn(t, p.URI, newer, func(context.Context, *worker.Options) {})
	r.Log.Await(t, "it is off", 1)
	comesBackAfter("other", 100)
	expectRefused(r)
	inbox, err := p.Channel(t).QueueDeclarePassive("orders.inbox", true, false, false, false, nil)
	require.NoError(t, err)
	require.Zero(t, inbox.Consumers)
}

func TestHangUpWithoutAFile(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"100ms"}, 3, "orders.created")
	w := p.start(t)
	w.Signal(t, syscall.SIGHUP)
	w.Log.Await(t, "nothing to reload", 1)
	p.retries(t)
	require.Zero(t, w.End(t, os.Interrupt), w.Log)
}
