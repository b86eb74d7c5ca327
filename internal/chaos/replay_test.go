//go:build chaos

package chaos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/transfer"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/terraformtest"
)

// replays is a failed queue with messages to replay, and the command that does.
type replays struct {
	*application
	binary string
}

func newReplays(t *testing.T, messages int) *replays {
	t.Helper()
	r := &replays{application: newApplication(t), binary: terraformtest.BuildSidecar(t)}
	ch := r.through(t, r.nodes[0])
	declare(t, ch, "orders.failed", amqp.Table{})
	for _, err := range []error{
		ch.ExchangeDeclare("orders.return", "direct", true, false, false, false, nil),
		ch.QueueBind("created", "return:created", "orders.return", false, nil),
		ch.Confirm(false),
	} {
		require.NoError(t, err)
	}
	require.NoError(t, r.awaitMembers(t.Context()))
	var last *amqp.DeferredConfirmation
	for i := range messages {
		var err error
		last, err = ch.PublishWithDeferredConfirm("", "orders.failed", true, false, amqp.Publishing{
			MessageId: fmt.Sprint(i), DeliveryMode: amqp.Persistent, Body: make([]byte, 1024),
			Headers: amqp.Table{"dead-letter-reason": "exhausted", "retry-queue": "created", "retry-routing-key": "created"},
		})
		require.NoError(t, err)
		if i%1000 == 999 {
			last.Wait()
		}
	}
	if !last.Wait() {
		t.Fatal("the broker refused a message")
	}
	return r
}

// replay is a run of the command through a node.
type replayRun struct {
	*exec.Cmd
	exited chan error
	mu     sync.Mutex
	output bytes.Buffer
}

func (r *replayRun) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.output.Write(p)
}

func (r *replayRun) said() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.output.String()
}

func (r *replays) start(t *testing.T, through *node, args ...string) *replayRun {
	t.Helper()
	args = append([]string{"failed", "replay", "orders", "--all", "--vhost", r.Vhost, "--yes"}, args...)
	run := &replayRun{Cmd: exec.CommandContext(t.Context(), r.binary, args...), exited: make(chan error, 1)}
	run.Env = []string{"RABBITMQ_URI=" + strings.Replace(r.URI, r.nodes[0].amqp, through.amqp, 1)}
	run.Stdout, run.Stderr = run, run
	require.NoError(t, run.Start())
	go func() { run.exited <- run.Wait() }()
	return run
}

// wait waits for the end of the run.
func (r *replayRun) wait(t *testing.T, atMost time.Duration) error {
	t.Helper()
	select {
	case err := <-r.exited:
		t.Logf("exit: %v\n%s", err, r.said())
		return err
	case <-time.After(atMost):
		_ = r.Process.Kill()
		t.Fatalf("does not end within %s:\n%s", atMost, r.said())
		return nil
	}
}

// awaitReplayed waits until so many messages are in the work queue.
func (r *replays) awaitReplayed(t *testing.T, ch *amqp.Channel, n int) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		q, err := ch.QueueDeclarePassive("created", true, false, false, false, nil)
		require.NoError(t, err)
		if q.Messages >= n {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d messages are replayed", q.Messages, n)
		}
	}
}

// balance counts what is in the work queue, and what of it is there more than once.
func (r *replays) balance(t *testing.T) (distinct, doubled int) {
	t.Helper()
	ch := r.through(t, r.nodes[0])
	deliveries, err := ch.Consume("created", "", true, false, false, false, nil)
	require.NoError(t, err)
	ids := map[string]bool{}
	for {
		select {
		case d := <-deliveries:
			if ids[d.MessageId] {
				doubled++
			}
			ids[d.MessageId] = true
		case <-time.After(3 * time.Second):
			return len(ids), doubled
		}
	}
}

// TestReplayWithoutALeader kills the leader of the failed queue in the middle of a replay, which is connected to another
// node, or to this one. The same command finishes what is left.
//
//nolint:paralleltest // takes a node away
func TestReplayWithoutALeader(t *testing.T) {
	const messages = 20_000
	for _, own := range []bool{false, true} {
		t.Run(fmt.Sprintf("connected to it %t", own), func(t *testing.T) {
			r := newReplays(t, messages)
			leader, err := r.leader(t.Context(), "orders.failed")
			require.NoError(t, err)
			other := r.nodes[leader.number%len(r.nodes)]
			through := other
			if own {
				through = leader
			}
			run := r.start(t, through)
			r.awaitReplayed(t, r.through(t, other), messages/4)
			require.NoError(t, leader.kill())
			killed := time.Now()
			interrupted := run.wait(t, 5*time.Minute) != nil
			t.Logf("the replay ended %s after its node was killed", time.Since(killed).Round(100*time.Millisecond))
			r.restart(t, leader)
			if interrupted {
				again := r.start(t, other)
				if err := again.wait(t, 5*time.Minute); err != nil {
					t.Error(err)
				}
			}
			distinct, doubled := r.balance(t)
			t.Logf("RabbitMQ %s: of %d messages lost %d, doubled %d", r.Version, messages, messages-distinct, doubled)
			if distinct != messages || doubled > transfer.MayDouble {
				t.Errorf("%d of %d messages arrived, %d twice", distinct, messages, doubled)
			}
		})
	}
}

// TestReplayDuringAnAlarm has the broker accept nothing in the middle of a replay, which waits, and goes on; and which a signal
// ends meanwhile.
//
//nolint:paralleltest // blocks whoever publishes
func TestReplayDuringAnAlarm(t *testing.T) {
	const (
		messages = 2000
		waiting  = "the broker accepts no messages (low on memory): waiting"
	)
	r := newReplays(t, messages)
	ch := r.through(t, r.nodes[0])
	alarm := func(run *replayRun, n int) {
		t.Helper()
		r.awaitReplayed(t, ch, n)
		require.NoError(t, r.nodes[1].ctl(t.Context(), "set_vm_memory_high_watermark", "0.0001"))
		brokertest.Eventually(t, func() error {
			if text := run.said(); !strings.Contains(text, waiting) {
				return fmt.Errorf("nothing is said of the alarm:\n%s", text)
			}
			return nil
		})
	}
	clearAlarm := func() {
		t.Helper()
		require.NoError(t, r.nodes[1].ctl(context.WithoutCancel(t.Context()), "set_vm_memory_high_watermark", "0.6"))
	}
	t.Cleanup(clearAlarm)

	run := r.start(t, r.nodes[0], "--rate", "100/s")
	alarm(run, 200)
	pause(t.Context().Done(), 5*time.Second) // longer than what is under way takes
	select {
	case err := <-run.exited:
		t.Fatalf("ended during the alarm: %v\n%s", err, run.said())
	default:
	}
	require.NoError(t, run.Process.Signal(syscall.SIGTERM))
	asked := time.Now()
	var exit *exec.ExitError
	if err := run.wait(t, time.Minute); !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("exit %v, want code 1", err)
	}
	t.Logf("RabbitMQ %s: ended %s after SIGTERM", r.Version, time.Since(asked).Round(100*time.Millisecond))
	clearAlarm()

	run = r.start(t, r.nodes[0], "--rate", "100/s")
	alarm(run, 800)
	clearAlarm()
	if err := run.wait(t, time.Minute); err != nil {
		t.Error(err)
	}
	distinct, doubled := r.balance(t)
	t.Logf("RabbitMQ %s: of %d messages lost %d, doubled %d", r.Version, messages, messages-distinct, doubled)
	if distinct != messages || doubled > 2 {
		t.Errorf("%d of %d messages arrived, %d twice", distinct, messages, doubled)
	}
}
