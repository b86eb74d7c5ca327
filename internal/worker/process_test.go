package worker_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/sidecartest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/worker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/worker/session"
)

// TestMain fails if a session leaves a goroutine behind.
func TestMain(m *testing.M) {
	// The tests' own requests keep connections alive.
	known := []goleak.Option{
		goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"),
	}
	goleak.VerifyTestMain(patient{m, known}, known...)
}

// patient gives abandoned goroutines time to end. A connection that a stopped worker no longer waits for ends when the
// broker answers, or when the handshake times out.
type patient struct {
	*testing.M
	known []goleak.Option
}

func (p patient) Run() int {
	code := p.M.Run()
	for deadline := time.Now().Add(time.Minute); code == 0 && time.Now().Before(deadline) && goleak.Find(p.known...) != nil; {
		continue // Find waits between its looks
	}
	return code
}

// start runs the command with the pipeline's configuration and more environment, and waits until it consumes.
func (p *testPipeline) start(t *testing.T, env ...string) *sidecartest.Process {
	t.Helper()
	return sidecartest.Start(t, append(env, p.environment(t, p.URI)...))
}

// environment returns the variables that the command needs.
func (p *testPipeline) environment(t *testing.T, uri string) []string {
	t.Helper()
	return []string{"RABBITMQ_URI=" + uri, "RABBITMQ_RETRY_CONFIG_JSON=" + string(configOf(t, p.spec.Worker()))}
}

// arrivals counts the messages of a queue by their id.
type arrivals struct {
	mu         sync.Mutex
	seen       map[string]bool
	duplicates int
}

func (p *testPipeline) collect(t *testing.T, queue string) *arrivals {
	t.Helper()
	a := &arrivals{seen: map[string]bool{}}
	deliveries, err := p.Channel(t).Consume(queue, "", true, false, false, false, nil)
	require.NoError(t, err)
	go func() {
		for d := range deliveries {
			a.mu.Lock()
			if a.seen[d.MessageId] {
				a.duplicates++
			}
			a.seen[d.MessageId] = true
			a.mu.Unlock()
		}
	}()
	return a
}

// copies returns how many messages came once more.
func (a *arrivals) copies() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.duplicates
}

func (a *arrivals) awaitAtLeast(t *testing.T, n int) {
	t.Helper()
	brokertest.Eventually(t, func() error {
		a.mu.Lock()
		defer a.mu.Unlock()
		if len(a.seen) < n {
			return fmt.Errorf("%d of %d messages arrived", len(a.seen), n)
		}
		return nil
	})
}

//nolint:paralleltest // measures, and needs the processors for itself
func TestKilledWorkerLosesNothing(t *testing.T) {
	p := newPipeline(t, "orders", []string{"100ms"}, 3, "orders.created")
	body := []byte(strings.Repeat("x", 1024))
	const messages, kills = 8_000, 3
	p.fillInbox(t, messages, func(int) amqp.Publishing {
		return amqp.Publishing{Body: body, Headers: amqp.Table{"retry-queue": "orders.created"}}
	})
	a := p.collect(t, "orders.created")

	began, peak := time.Now(), 0.0
	for kill := range kills {
		w := p.start(t)
		a.awaitAtLeast(t, (kill+1)*messages/(kills+2))
		peak = max(peak, w.PeakMemory(t))
		w.End(t, syscall.SIGKILL)
	}
	w := p.start(t)
	a.awaitAtLeast(t, messages)
	took := time.Since(began)
	peak = max(peak, w.PeakMemory(t))
	p.expectEmpty(t, p.names.FailedQueue())

	a.mu.Lock()
	defer a.mu.Unlock()
	t.Logf("%d messages, %d kills: none lost, %d duplicates, %.0f messages/s, %.1f MiB at most",
		messages, kills, a.duplicates, messages/took.Seconds(), peak)
	if peak > 40 {
		t.Errorf("%.1f MiB of resident memory, want at most 40", peak)
	}
}

//nolint:paralleltest // must stop at full speed, and needs the processors for itself
func TestSIGTERMFinishesWhatIsInFlight(t *testing.T) {
	p := newPipeline(t, "orders", []string{"100ms"}, 3, "orders.created")
	const messages = 4_000
	p.fillInbox(t, messages, toRetry)
	a := p.collect(t, "orders.created")
	w := p.start(t)
	a.awaitAtLeast(t, messages/4)
	require.Zero(t, w.End(t, syscall.SIGTERM), w.Log)

	w = p.start(t)
	a.awaitAtLeast(t, messages)
	require.Zero(t, w.End(t, syscall.SIGTERM), w.Log)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.duplicates > 0 {
		t.Errorf("%d duplicates: something was in flight when the worker stopped", a.duplicates)
	}
}

// A worker with nothing in flight stops cleanly while its session is ending for another reason.
func TestSIGTERMWhileTheInboxGoes(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"100ms"}, 2, "orders.created")
	w := p.start(t)
	p.set(t, "DELETE", p.Path("queues", "orders.inbox"), nil)
	time.Sleep(200 * time.Millisecond) // so that the broker cancels the consumer
	require.Zero(t, w.End(t, syscall.SIGTERM), w.Log)
}

func TestSecondSignalStopsAtOnce(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"100ms"}, 2, "orders.created")
	w := p.keepOne(t)
	w.Signal(t, syscall.SIGTERM)
	time.Sleep(time.Second) // so that the first signal is taken
	if code := w.End(t, syscall.SIGTERM); code != 3 {
		t.Errorf("exit code %d:\n%s", code, w.Log)
	}
	if w.Log.Count("stopped by a second signal") != 1 {
		t.Errorf("the log does not say why:\n%s", w.Log)
	}
}

// stopsWithin bounds how long a worker takes to stop.
func stopsWithin(drainTimeout time.Duration) time.Duration {
	return drainTimeout + brokertest.Slow(session.DefaultAckPatience)
}

func TestDrainTimeout(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args    []string
		timeout time.Duration
	}{
		"configured": {[]string{"--drain-timeout", "2s"}, 2 * time.Second},
		"default":    {nil, worker.DefaultDrainTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPipeline(t, "orders", []string{"100ms"}, 2, "orders.created")
			w := p.keepOne(t, test.args...)
			began := time.Now()
			code, took := w.End(t, syscall.SIGTERM), time.Since(began)
			gaveUp := w.Log.Count("still in flight after " + test.timeout.String())
			if code != 1 || took < test.timeout || took > stopsWithin(test.timeout) || gaveUp != 1 {
				t.Errorf("exit code %d after %s:\n%s", code, took, w.Log)
			}
			brokertest.Eventually(t, func() error { return p.countIs(t, p.names.Inbox(), 1) })
		})
	}
}

func TestSilentBrokerDoesNotKeepAWorkerFromStopping(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"100ms"}, 2, "orders.created")
	var silent atomic.Bool
	hang := func([]byte) {
		if silent.Load() {
			<-t.Context().Done()
		}
	}
	uri := p.throughProxy(t, &proxy{rewrite: hang, rewriteBack: hang})
	w := sidecartest.Start(t, p.environment(t, uri), "--drain-timeout", "1s")
	silent.Store(true)
	began := time.Now()
	code, took := w.End(t, syscall.SIGTERM), time.Since(began)
	if code != 0 || took > stopsWithin(time.Second) {
		t.Errorf("exit code %d after %s:\n%s", code, took, w.Log)
	}
}

// keepOne starts a worker that cannot get rid of a message.
func (p *testPipeline) keepOne(t *testing.T, args ...string) *sidecartest.Process {
	t.Helper()
	p.unbindFailedQueue(t)
	p.Publish(t, "orders.dlx", "", amqp.Publishing{Headers: lastAttempt()})
	w := sidecartest.Start(t, p.environment(t, p.URI), args...)
	w.Log.Await(t, "message kept unacknowledged", 1)
	return w
}
