//go:build load

package loadtest

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/sidecartest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/terraformtest"
)

// drainTime is how long what is left may take at the end: a dead letter whose target refused it is
// tried again after up to six minutes.
const drainTime = 7 * time.Minute

// applying are the words of an apply.
var applying = []string{"apply", "-auto-approve", "-input=false", "-no-color"}

// load is an application that publishes, consumes and rejects.
type load struct {
	*brokertest.Broker
	ledger    *ledger
	modes     modes
	consumers map[string]*amqp.Channel
}

func TestChangesUnderLoadLoseNothing(t *testing.T) {
	t.Parallel()
	l := newLoad(t, ownQueues...)
	tf := terraformtest.New(t, terraformtest.BuildProvider(t))
	worker := &sidecar{uri: l.URI, dir: t.TempDir()}

	tf.Write(t, "main.tf", steps[0].config(l.Vhost))
	tf.Run(t, applying...)
	worker.restart(t, tf.Run(t, "output", "-raw", "worker"))
	l.collectFailed(t, "load.failed")
	l.modes.set(steps[0].modes)
	l.follow(t)
	stop := l.startPublishing(t)
	before := steps[0]
	for _, s := range steps[1:] {
		if testing.Short() && !s.short {
			continue
		}
		l.change(t, tf, worker, before, s)
		before = s
	}
	l.awaitMore(t, 5)
	stop()
	l.drain(t)
	worker.stop(t)
	l.requireNothingLost(t)
}

// newLoad makes the application's own queues.
func newLoad(t *testing.T, queues ...string) *load {
	t.Helper()
	l := &load{Broker: brokertest.New(t), ledger: newLedger(), consumers: map[string]*amqp.Channel{}}
	for _, queue := range queues {
		l.DeclareQueue(t, queue, "quorum", nil)
	}
	return l
}

// startPublishing publishes until stop is called, which waits for the last confirms.
func (l *load) startPublishing(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var publishing sync.WaitGroup
	// On a connection of its own, so that a broker that slows publishers down does not slow consumers.
	ch, err := l.Dial(t).Channel()
	require.NoError(t, err)
	require.NoError(t, ch.Confirm(false))
	publishing.Go(func() { l.publish(ctx, t, ch) })
	return func() {
		cancel()
		publishing.Wait()
	}
}

func (l *load) requireNothingLost(t *testing.T) {
	t.Helper()
	t.Log(l.ledger.balance("lost"))
	for i, id := range l.ledger.missing() {
		if i < 20 {
			t.Errorf("lost: %s", id)
		}
	}
}

// change applies a step amid the load, and has the sidecar follow some time later.
func (l *load) change(t *testing.T, tf *terraformtest.CLI, worker *sidecar, before, s step) {
	t.Helper()
	l.awaitMore(t, 2)
	between := during(before.modes, s.modes)
	if modes, some := drained(before.modes, between); some {
		l.modes.set(modes)
		l.awaitMore(t, 6) // longer than the longest delay
	}
	l.modes.set(between)
	l.follow(t)
	tf.Write(t, "main.tf", s.config(l.Vhost))
	began := time.Now()
	_, err := tf.Try(t.Context(), applying...)
	require.NoErrorf(t, err, "%s: %s", s.what, l.ledger)
	t.Logf("%s: %.1f s; %s", s.what, time.Since(began).Seconds(), l.ledger)
	l.modes.set(s.modes)
	l.follow(t)
	l.awaitMore(t, 2)
	worker.restart(t, tf.Run(t, "output", "-raw", "worker"))
}

// awaitMore waits until as many more messages are published as in so many seconds.
func (l *load) awaitMore(t *testing.T, seconds int) {
	t.Helper()
	want := l.ledger.sent() + seconds*perSecond()
	brokertest.Eventually(t, func() error {
		if have := l.ledger.sent(); have < want {
			return fmt.Errorf("%d of %d messages published", have, want)
		}
		return nil
	})
}

// drain waits until every message has ended and the broker says that nothing is left, or for as long as
// there may be something to wait for.
func (l *load) drain(t *testing.T) {
	t.Helper()
	deadline := time.Now().Add(drainTime)
	for len(l.ledger.missing()) > 0 || len(l.holding(t)) > 0 {
		if time.Now().After(deadline) {
			t.Errorf("after %s there are still messages: %v", drainTime, l.holding(t))
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// holding lists the queues with messages by name. Counts lag behind.
func (l *load) holding(t *testing.T) map[string]int {
	t.Helper()
	var all []struct {
		Name     string `json:"name"`
		Messages int    `json:"messages"`
	}
	l.Call(t, http.MethodGet, l.Path("queues"), nil, &all)
	held := map[string]int{}
	for _, q := range all {
		if q.Messages > 0 {
			held[q.Name] = q.Messages
		}
	}
	return held
}

// step is a configuration of the pipeline, and how the application treats the work queues with it.
type step struct {
	what       string
	short      bool // part of the short form
	delays     string
	workQueues string
	more       string
	modes      map[string]mode
}

// The application's own queues; "declared" is the pipeline's.
var ownQueues = []string{"steady", "weakened", "full", "late"}

const (
	full           = `full = { dead_letter_strategy = "at-most-once", policy_definition_json = jsonencode({ max-length = 30 }) }`
	longer         = `full = { dead_letter_strategy = "at-most-once", policy_definition_json = jsonencode({ max-length = 60 }) }`
	weakened       = `weakened = { dead_letter_strategy = "at-most-once" }`
	weakenedLength = `weakened = { dead_letter_strategy = "at-most-once", policy_definition_json = jsonencode({ max-length = 50 }) }`
	declared       = `declared = { declare = true }`
)

var steps = []step{
	{
		what: "create", short: true, delays: `"0s", "1s", "2s"`, workQueues: "steady = {}, weakened = {}," + full,
		modes: map[string]mode{"steady": rejected, "weakened": rejected, "full": limited, "late": acked},
	},
	{
		what: "add a delay, attach a queue, declare another", short: true, delays: `"0s", "500ms", "1s", "2s"`,
		workQueues: "steady = {}, weakened = {}, late = {}," + full + "," + declared,
		modes:      map[string]mode{"steady": rejected, "weakened": rejected, "full": limited, "late": rejected, "declared": rejected},
	},
	{
		what: "reorder, raise the priority and a limit", delays: `"2s", "0s", "1s", "500ms"`, more: "policy_priority = 1100",
		workQueues: "steady = {}, weakened = {}, late = {}," + longer + "," + declared,
		modes:      map[string]mode{"steady": rejected, "weakened": rejected, "full": limited, "late": rejected, "declared": rejected},
	},
	{
		what: "remove a delay, lower the priority", short: true, delays: `"0s", "1s", "500ms"`, more: "policy_priority = 900",
		workQueues: "steady = {}, weakened = {}, late = {}," + longer + "," + declared,
		modes:      map[string]mode{"steady": rejected, "weakened": rejected, "full": limited, "late": rejected, "declared": rejected},
	},
	{
		what: "weaken a strategy; a retired queue goes", short: true, delays: `"0s", "1s", "1500ms"`,
		more:       "timeouts = { update = \"2m\" }", // a busy broker has dead letters on their way at many looks
		workQueues: "steady = {}, late = {}," + weakened + "," + full + "," + declared,
		modes:      map[string]mode{"steady": rejected, "weakened": rejected, "full": limited, "late": rejected, "declared": rejected},
	},
	{
		what: "replace the schedule and wait for it; detach a queue; limit another", short: true, delays: `"700ms", "3s"`,
		more:       "timeouts = { update = \"1m\" }",
		workQueues: "steady = {}," + weakenedLength + "," + full + "," + declared,
		modes:      map[string]mode{"steady": rejected, "weakened": limited, "full": limited, "late": acked, "declared": rejected},
	},
	{
		what: "give a declared queue up, attach again, no wait any more", delays: `"0s", "3s"`,
		workQueues: "steady = {}, late = {}, declared = {}," + weakenedLength + "," + longer,
		modes:      map[string]mode{"steady": rejected, "weakened": limited, "full": limited, "late": rejected, "declared": rejected},
	},
	{
		what: "strengthen a strategy, declare a queue, keep three delays", delays: `"0s", "1s", "2s"`,
		workQueues: "steady = {}, late = {}, weakened = {}, another = { declare = true }," + full,
		modes:      map[string]mode{"steady": rejected, "weakened": rejected, "full": limited, "late": rejected, "declared": acked, "another": rejected},
	},
	{
		what: "remove a declared queue", delays: `"0s", "1s"`,
		workQueues: "steady = {}, late = {}, weakened = {}," + full,
		modes:      map[string]mode{"steady": rejected, "weakened": rejected, "full": limited, "late": rejected, "declared": acked},
	},
}

// config is the step as Terraform reads it.
func (s step) config(vhost string) string {
	return terraformtest.Required + fmt.Sprintf(`

resource "rabbitmq_retry_pipeline" "load" {
  name        = "load"
  vhost       = %q
  delays      = [%s]
  work_queues = { %s }
  %s
}

output "worker" { value = jsonencode({ pipelines = [rabbitmq_retry_pipeline.load.worker] }) }
`, vhost, s.delays, strings.TrimSuffix(s.workQueues, ","), s.more)
}

// sidecar is the process that serves the pipeline, one after another.
type sidecar struct {
	uri, dir string
	process  *sidecartest.Process
}

// restart writes the configuration and has a new process take over from the old one.
func (s *sidecar) restart(t *testing.T, config string) {
	t.Helper()
	s.stop(t)
	file := filepath.Join(s.dir, "worker.json")
	require.NoError(t, os.WriteFile(file, []byte(config), 0o600))
	s.process = sidecartest.Start(t, []string{"RABBITMQ_URI=" + s.uri}, "--config", file)
}

// stop asks the process to finish what it has begun.
func (s *sidecar) stop(t *testing.T) {
	t.Helper()
	if s.process == nil {
		return
	}
	if code := s.process.End(t, syscall.SIGTERM); code != 0 {
		t.Errorf("the sidecar did not stop cleanly: exit code %d\n%s", code, s.process.Log)
	}
	for line := range strings.Lines(s.process.Log.String()) {
		if strings.Contains(line, "level=ERROR") || strings.Contains(line, "level=WARN") {
			t.Logf("sidecar: %s", strings.TrimSpace(line))
		}
	}
	s.process = nil
}
