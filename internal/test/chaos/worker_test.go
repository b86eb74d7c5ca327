//go:build chaos

package chaos

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/sidecartest"
)

// forgetMembers is the first half of the deletion of a queue. A node that dies in the middle of one leaves a
// queue that is there by name only: the broker routes to it, and refuses all messages.
const forgetMembers = `{ok, Q} = rabbit_amqqueue:lookup(rabbit_misc:r(<<"%s">>, queue, <<"%s">>)), {Name, _} = amqqueue:get_pid(Q),
Nodes = case maps:get(nodes, amqqueue:get_type_state(Q)) of Uids when is_map(Uids) -> maps:keys(Uids); List -> List end,
{ok, _} = ra:delete_cluster([{Name, Node} || Node <- Nodes], 5000).`

// TestDelayWithoutMembers has one of three delays reject everything for a while, and then does what the guide
// says.
//
//nolint:paralleltest // the faults of other tests are not for this one
func TestDelayWithoutMembers(t *testing.T) {
	c := newChaos(t, "worker")
	worker := c.replicas[0]
	require.NoError(t, c.nodes[0].ctl(t.Context(), "eval", fmt.Sprintf(forgetMembers, c.Vhost, "chaos.retry.1s")))
	stopConsumers := c.startConsumers(t)
	stopProducers := c.startProducers(t, 50)
	var open []int
	for range 10 {
		pause(t.Context().Done(), 10*time.Second)
		_, left := c.ledger.sent()
		open = append(open, left)
	}
	t.Logf("RabbitMQ %s: messages on their way every ten seconds: %d", c.Version, open)
	stopProducers()
	stopCollecting := c.startCollecting(t)
	brokertest.Eventually(t, func() error {
		if _, left := c.ledger.sent(); left > 0 {
			return fmt.Errorf("%d messages have not come to an end:\n%s", left, worker.end())
		}
		return nil
	})
	stopCollecting()
	if n := worker.log.Count("messages take another delay"); n != 1 {
		t.Errorf("%d lines about the delay, want 1:\n%s", n, worker.end())
	}

	require.NoError(t, c.nodes[1].ctl(t.Context(), "delete_queue", "--vhost", c.Vhost, "chaos.retry.1s"))
	c.checkTerraform(t)
	stopProducers = c.startProducers(t, 5)
	worker.log.Await(t, "accepts messages again", 1) // the delay is used again
	stopProducers()
	c.drain(t, 15*time.Second, time.Minute)
	stopConsumers()
	c.report(t)
}

// dropOthers leaves the node that evaluates it as the only one with a member of the queue.
const dropOthers = `[ok = rabbit_quorum_queue:delete_member(<<"%s">>, <<"%s">>, Node) || Node <- nodes()].`

// TestDelayOnAFrozenNode has one of three delays answer nothing for a while: its queue has a single member,
// on a node that freezes.
//
//nolint:paralleltest // the faults of other tests are not for this one
func TestDelayOnAFrozenNode(t *testing.T) {
	c := newChaos(t, "worker")
	worker := c.replicas[0]
	frozen, err := c.leader(t.Context(), "chaos.retry.1s")
	require.NoError(t, err)
	c.avoid(frozen)
	require.NoError(t, frozen.ctl(t.Context(), "eval", fmt.Sprintf(dropOthers, c.Vhost, "chaos.retry.1s")))

	stopConsumers := c.startConsumers(t)
	stopProducers := c.startProducers(t, 50)
	pause(t.Context().Done(), 5*time.Second)
	require.NoError(t, frozen.freeze())
	t.Cleanup(func() { _ = frozen.thaw() })
	worker.log.Await(t, "messages take another delay", 1)
	pause(t.Context().Done(), 10*time.Second)
	before := c.ledger.balance()
	pause(t.Context().Done(), 10*time.Second)
	after := c.ledger.balance()
	t.Logf("RabbitMQ %s: processed within ten seconds of the detour: %d", c.Version, after.processed-before.processed)
	if after.processed-before.processed < 400 {
		t.Errorf("the other delays stand still:\n%s", worker.end())
	}
	require.NoError(t, frozen.thaw())
	stopProducers()
	c.drain(t, 15*time.Second, 3*time.Minute)
	stopConsumers()
	c.report(t)
}

// avoid has no connection lead to the node any more.
func (c *chaos) avoid(n *node) {
	others := slices.DeleteFunc(slices.Clone(c.nodes), func(other *node) bool { return other == n })
	amqp, management := addresses(others)
	c.management.lead(management...)
	for _, p := range []*proxy{c.producers, c.consumers} {
		p.lead(amqp...)
	}
	for _, r := range c.replicas {
		r.proxy.lead(amqp...)
	}
}

// TestWorkerDuringAlarms has the broker accept nothing while the worker has messages in flight: it waits, goes on when
// the alarm clears, and ends on SIGTERM within its grace time. Nothing is lost, and nothing comes twice that it could finish.
//
//nolint:paralleltest // blocks whoever publishes
func TestWorkerDuringAlarms(t *testing.T) {
	for _, alarm := range []struct {
		name       string
		set, clear []string
	}{
		{
			"memory",
			[]string{"set_vm_memory_high_watermark", lowWatermark},
			[]string{"set_vm_memory_high_watermark", highWatermark},
		},
		{"disk", []string{"set_disk_free_limit", "1000000GB"}, []string{"set_disk_free_limit", "50MB"}},
	} {
		t.Run(alarm.name, func(t *testing.T) {
			c := newChaos(t, "worker")
			worker := c.replicas[0]
			ctl := func(arguments []string) {
				t.Helper()
				require.NoError(t, c.nodes[0].ctl(context.WithoutCancel(t.Context()), arguments...))
			}
			t.Cleanup(func() { ctl(alarm.clear) })
			stopConsumers, stopProducers := c.startConsumers(t), c.startProducers(t, 200)
			pause(t.Context().Done(), 3*time.Second)
			ctl(alarm.set)
			worker.log.Await(t, "the broker accepts no messages", 1)
			pause(t.Context().Done(), 5*time.Second) // longer than what is under way takes
			ctl(alarm.clear)
			worker.log.Await(t, "the broker accepts messages again", 1)
			pause(t.Context().Done(), 3*time.Second)
			before := c.ledger.balance().duplicated

			ctl(alarm.set)
			worker.log.Await(t, "the broker accepts no messages", 2)
			asked := time.Now()
			require.NoError(t, worker.stop(t))
			t.Logf("RabbitMQ %s: ended %s after SIGTERM", c.Version, time.Since(asked).Round(100*time.Millisecond))
			require.NoError(t, worker.start(t))
			worker.log.Await(t, "the broker accepts no messages", 3)
			ctl(alarm.clear)
			worker.log.Await(t, "the broker accepts messages again", 2)
			stopProducers()
			c.drain(t, 10*time.Second, drainTime)
			stopConsumers()
			c.report(t)
			// What was on the wire when the broker stopped reading is read after the alarm, and delivered again as well.
			after := c.ledger.balance().duplicated
			if unfinished := worker.log.Count("still in flight") > 0; before > 0 || after > 0 && !unfinished {
				t.Errorf("%d messages came twice, and %d once the worker was stopped", before, after)
			}
		})
	}
}

// TestLossIsReported puts a worker beside the real one that acknowledges before it has published
// anything, and then dies.
//
//nolint:paralleltest // the faults of other tests are not for this one
func TestLossIsReported(t *testing.T) {
	c := newChaos(t, "worker")
	var forgotten atomic.Int64
	stopForgetting := c.start(t, c.consumers, func(ctx context.Context, conn *amqp.Connection) error {
		return takeFrom(ctx, conn, []string{"chaos.inbox"}, true, func(string, amqp.Delivery) { forgotten.Add(1) })
	})
	stopConsumers := c.startConsumers(t)
	stopProducers := c.startProducers(t, perSecond)
	for forgotten.Load() < 20 && pause(t.Context().Done(), 50*time.Millisecond) {
	}
	stopProducers()
	stopForgetting()
	c.drain(t, 15*time.Second, time.Minute)
	stopConsumers()

	b := c.ledger.balance()
	t.Logf("%s", b)
	if forgotten.Load() != int64(len(b.lost)) {
		t.Errorf("%d messages were forgotten, but %d are reported as lost", forgotten.Load(), len(b.lost))
	}
	if b.processed == 0 || b.confirmed != b.processed+len(b.lost)+b.parked["exhausted"] {
		t.Errorf("the balance does not add up: %s", b)
	}
	for _, id := range b.lost {
		if text := c.history(id); !strings.Contains(text, "rejected from") {
			t.Errorf("the history does not say where it was last: %s", text)
		}
	}
}

// replica is a worker, one process after another. All of them write to the same log.
type replica struct {
	name, uri, file string
	proxy           *proxy
	log             *sidecartest.Log

	mu      sync.Mutex
	process *sidecartest.Process
}

func (a *application) newReplica(t *testing.T, name string) *replica {
	t.Helper()
	p := newProxy(t, name, a.producers.nodes...)
	r := &replica{name: name, uri: a.uri(p), file: filepath.Join(t.TempDir(), "worker.json"), proxy: p, log: &sidecartest.Log{}}
	t.Cleanup(r.kill)
	return r
}

func (r *replica) String() string { return r.name }

// configure writes the configuration in one step, since it may be read at any time.
func (r *replica) configure(config string) error {
	if err := os.WriteFile(r.file+".new", []byte(config), 0o600); err != nil {
		return err
	}
	return os.Rename(r.file+".new", r.file)
}

// reload has the worker read its configuration now. One that is down reads it when it starts.
func (r *replica) reload() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.process == nil {
		return nil
	}
	return r.process.Process.Signal(syscall.SIGHUP)
}

func (r *replica) start(t *testing.T) (err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	const serving = "serving /healthz" // which a worker does once it takes SIGHUP
	before := r.log.Count(serving)
	r.process, err = sidecartest.Launch(t, r.log, []string{"RABBITMQ_URI=" + r.uri}, "worker", "--config", r.file, "--listen=127.0.0.1:0")
	if err != nil {
		return err
	}
	for r.log.Count(serving) == before {
		select {
		case <-r.process.Ended:
			return fmt.Errorf("%s does not start:\n%s", r, r.end())
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

// kill ends the process as a crash would.
func (r *replica) kill() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.process != nil {
		r.process.Kill() // it may have exited, which alive reports
		<-r.process.Ended
		r.process = nil
	}
}

// stop asks the process to finish what it has begun. It does not mind what could not be finished in
// time: that is delivered again.
func (r *replica) stop(t *testing.T) error {
	if err := r.alive(); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.process
	if p == nil {
		return nil
	}
	r.process = nil
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-p.Ended:
	case <-time.After(40 * time.Second):
		p.Kill()
		return fmt.Errorf("%s did not stop within 40 s", r)
	}
	if !p.ProcessState.Success() {
		t.Logf("%s: stopped with %s", r, p.ProcessState)
	}
	return nil
}

// alive is an error if the process has crashed.
func (r *replica) alive() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.process == nil {
		return nil
	}
	select {
	case <-r.process.Ended:
		return fmt.Errorf("%s exited by itself: %s\n%s", r, r.process.ProcessState, r.end())
	default:
		return nil
	}
}

// end is the end of the log.
func (r *replica) end() string {
	text := r.log.String()
	return text[max(0, len(text)-4000):]
}

// mentions are the lines of the log about a message.
func (r *replica) mentions(id string) (lines []string) {
	for line := range strings.Lines(r.log.String()) {
		if strings.Contains(line, "message_id="+id) {
			lines = append(lines, r.name+": "+strings.TrimSpace(line))
		}
	}
	return lines
}
