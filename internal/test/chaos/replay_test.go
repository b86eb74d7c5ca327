//go:build chaos

package chaos

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/transfer"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/sidecartest"
)

// replays is a failed queue with messages to replay, and the command that does.
type replays struct{ *application }

func newReplays(t *testing.T, messages int) *replays {
	t.Helper()
	r := &replays{newApplication(t)}
	ch := r.through(t, r.nodes[0])
	declare(t, ch, "orders.failed", amqp.Table{})
	require.NoError(t, ch.ExchangeDeclare("orders.return", "direct", true, false, false, false, nil))
	require.NoError(t, ch.QueueBind("created", "return:created", "orders.return", false, nil))
	require.NoError(t, ch.Confirm(false))
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

// start runs the command through a node.
func (r *replays) start(t *testing.T, through *node, args ...string) *sidecartest.Process {
	t.Helper()
	env := []string{"RABBITMQ_URI=" + strings.Replace(r.URI, r.nodes[0].amqp, through.amqp, 1)}
	args = append([]string{"failed", "replay", "orders", "--all", "--vhost", r.Vhost, "--yes"}, args...)
	run, err := sidecartest.Launch(t, &sidecartest.Log{}, env, args...)
	require.NoError(t, err)
	return run
}

// exit waits for the end of a run, and returns its code.
func exit(t *testing.T, run *sidecartest.Process) int {
	t.Helper()
	brokertest.Receive(t, run.Ended)
	code := run.Wait(t)
	t.Logf("exit code %d\n%s", code, run.Log)
	return code
}

// awaitReplayed waits until so many messages are in the work queue. It looks often: what comes next has to meet the replay.
func (r *replays) awaitReplayed(t *testing.T, ch *amqp.Channel, n int) {
	t.Helper()
	for ctx, have := brokertest.Bounded(t), 0; have < n; time.Sleep(10 * time.Millisecond) {
		require.NoErrorf(t, ctx.Err(), "%d of %d messages are replayed", have, n)
		q, err := ch.QueueDeclarePassive("created", true, false, false, false, nil)
		require.NoError(t, err)
		have = q.Messages
	}
}

// check compares what is in the work queue with the messages that there were. So many of them may be there twice.
func (r *replays) check(t *testing.T, messages, mayDouble int) {
	t.Helper()
	distinct, doubled := r.balance(t)
	t.Logf("RabbitMQ %s: of %d messages lost %d, doubled %d", r.Version, messages, messages-distinct, doubled)
	if distinct != messages || doubled > mayDouble {
		t.Errorf("%d of %d messages arrived, %d twice", distinct, messages, doubled)
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
			interrupted := exit(t, run) != 0
			t.Logf("the replay ended %s after its node was killed", time.Since(killed).Round(100*time.Millisecond))
			r.restart(t, leader)
			if interrupted {
				require.Zero(t, exit(t, r.start(t, other)))
			}
			r.check(t, messages, transfer.MayDouble)
		})
	}
}

// TestReplayDuringAnAlarm has the broker accept nothing in the middle of a replay, which waits, and goes on. A signal ends it
// during a second alarm. The same command replays the rest.
//
//nolint:paralleltest // blocks whoever publishes
func TestReplayDuringAnAlarm(t *testing.T) {
	const (
		messages = 2000
		waiting  = "the broker accepts no messages (low on memory): waiting"
	)
	r := newReplays(t, messages)
	ch := r.through(t, r.nodes[0])
	replayed := 0
	run := r.start(t, r.nodes[0], "--rate", "20/s") // slow enough that an alarm meets it
	alarm := func() {
		t.Helper()
		replayed += 40
		r.awaitReplayed(t, ch, replayed)
		before := run.Log.Count(waiting)
		require.NoError(t, r.nodes[1].ctl(t.Context(), "set_vm_memory_high_watermark", "0.0001"))
		run.Log.Await(t, waiting, before+1)
		pause(t.Context().Done(), 5*time.Second) // longer than what is under way takes
		select {
		case <-run.Ended:
			t.Fatalf("ended during the alarm: %s\n%s", run.ProcessState, run.Log)
		default:
		}
	}
	clearAlarm := func() {
		t.Helper()
		require.NoError(t, r.nodes[1].ctl(context.WithoutCancel(t.Context()), "set_vm_memory_high_watermark", "0.6"))
	}
	t.Cleanup(clearAlarm)

	alarm()
	q, err := ch.QueueDeclarePassive("created", true, false, false, false, nil)
	require.NoError(t, err)
	replayed = q.Messages
	clearAlarm()
	alarm()
	asked := time.Now()
	run.Signal(t, syscall.SIGTERM)
	require.Equal(t, 1, exit(t, run))
	t.Logf("RabbitMQ %s: ended %s after SIGTERM", r.Version, time.Since(asked).Round(100*time.Millisecond))
	clearAlarm()

	require.Zero(t, exit(t, r.start(t, r.nodes[0])))
	r.check(t, messages, 2)
}
