package main

import (
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// room is how many messages fit the work queue of these tests.
const room = 20

// newFull has a pipeline around a work queue with a length limit. There are other messages in the work queue, and failed ones.
func newFull(t *testing.T, queueType, overflow string, others, failed int) (m movable, worker string) {
	t.Helper()
	arguments := map[string]any{"x-max-length": room}
	if overflow != "" {
		arguments["x-overflow"] = overflow
	}
	m = newMovableAround(t, pipeline.WorkQueue{Type: queueType, DeadLetterStrategy: topology.AtMostOnce}, arguments)
	worker = m.createIdle(t, "orders")
	for i := range others {
		m.Publish(t, "", "created", amqp.Publishing{MessageId: fmt.Sprintf("other-%d", i), DeliveryMode: amqp.Persistent})
	}
	for i := range failed {
		message := parked("exhausted", fmt.Sprintf("order-%d", i))
		message.Headers["retry-queue"], message.DeliveryMode = "created", amqp.Persistent
		m.Publish(t, "", "orders.failed", message)
	}
	return m, worker
}

// awaitWorker waits until a worker consumes the inbox.
func (m movable) awaitWorker(t *testing.T) {
	t.Helper()
	brokertest.Eventually(t, func() error {
		count, err := m.queue("orders.inbox").Count(t.Context())
		if err == nil && count.Consumers == 0 {
			err = errors.New("no worker consumes the inbox")
		}
		return err
	})
}

// A replay stops after its first messages if the target does not keep them, and tells why. What it did not send stays.
func TestReplayIntoAFullQueue(t *testing.T) {
	t.Parallel()
	const failed = 60
	for name, c := range map[string]struct {
		types             []string
		overflow          string
		others            int
		args              string
		want              []string
		inQueue, inFailed int
	}{
		"drops others": {
			[]string{topology.Quorum, topology.Classic},
			"", room, "",
			[]string{
				"created: 20 messages, 0 consumers, limits unknown", "stopped: 20 replayed, 40 left",
				"After 0s: 20 back in orders.failed. 20 maxlen of other messages.", "A queue is full: start consumers",
			},
			room, failed,
		},
		"has room for the first": {
			[]string{topology.Quorum, topology.Classic},
			"", 0, "",
			[]string{"replayed 60 of 60 to created", "After 0s: 40 back in orders.failed. 40 maxlen."},
			room, failed - room,
		},
		"regardless": {
			[]string{topology.Quorum, topology.Classic},
			"", room, " --stop-if-back 100",
			[]string{"replayed 60 of 60 to created", "60 back in orders.failed. 40 maxlen. 20 maxlen of other messages."},
			room, failed,
		},
		"refuses": {
			[]string{topology.Classic},
			"reject-publish", room, "",
			[]string{"stopped: 0 replayed, 60 left", "20 messages refused by the broker", "A queue is full"},
			room, failed,
		},
		"refuses and dead-letters": {
			[]string{topology.Classic},
			"reject-publish-dlx", room, "",
			[]string{"stopped: 0 replayed, 60 left", "20 messages refused by the broker", "20 back in orders.failed. 20 maxlen."},
			room, failed + room,
		},
	} {
		for _, queueType := range c.types {
			t.Run(name+" "+queueType, func(t *testing.T) {
				t.Parallel()
				m, worker := newFull(t, queueType, c.overflow, c.others, failed)
				m.startWorker(t, worker)
				m.awaitWorker(t)
				m.says(t, exitError, "failed replay orders --all --yes"+c.args, c.want...)
				m.holds(t, "created", c.inQueue)
				m.holds(t, "orders.failed", c.inFailed)
			})
		}
	}
}

// If no worker runs, messages that a full queue drops are missed nevertheless.
func TestReplayIntoAFullQueueWithoutAWorker(t *testing.T) {
	t.Parallel()
	m, _ := newFull(t, topology.Quorum, "", 0, 60)
	m.says(t, exitError, "failed replay orders --all --yes", "replayed 60 of 60",
		"40 messages neither in created nor back", "no worker consumes orders.inbox, which has 40 messages")
}

// A replay stops if the consumers refuse its first messages for good, and not if they take them. It names the messages that it
// chose and sent.
func TestReplayToConsumers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		act  func(m movable, ch *amqp.Channel, d amqp.Delivery) error
		code int
		want []string
		sent int
	}{
		"refuse": {
			func(_ movable, ch *amqp.Channel, d amqp.Delivery) error {
				d.Headers["retry"] = "never"
				again := amqp.Publishing{MessageId: d.MessageId, Headers: d.Headers, DeliveryMode: amqp.Persistent}
				if err := ch.PublishWithContext(t.Context(), "orders.dlx", d.RoutingKey, false, false, again); err != nil {
					return err
				}
				return d.Ack(false)
			},
			exitError,
			[]string{"created: 0 messages, 1 consumer", "stopped: 20 replayed, 20 left", "20 back in orders.failed. 20 unrecoverable.", "Find the cause: "},
			20,
		},
		"take": {
			func(_ movable, _ *amqp.Channel, d amqp.Delivery) error { return d.Ack(false) },
			exitOK,
			[]string{"replayed 40 of 60 to created"},
			40,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, worker := newFull(t, topology.Quorum, "", 0, 60)
			m.startWorker(t, worker)
			m.awaitWorker(t)
			ch := m.Channel(t)
			deliveries, err := ch.Consume("created", "", false, false, false, false, nil)
			require.NoError(t, err)
			go func() {
				for d := range deliveries {
					_ = c.act(m, ch, d)
				}
			}()
			log := filepath.Join(t.TempDir(), "audit.jsonl")
			_, errs := m.run(t, c.code, "failed replay orders --limit 40 --yes --record "+log)
			records := recordsIn(t, log)
			require.Len(t, records, 2)
			contains(t, errs, append(c.want, "chosen: "+strings.Join(records[0].IDs, " "))...)
			assert.Len(t, records[0].IDs, 40)
			assert.Len(t, records[1].IDs, c.sent)
			assert.Subset(t, records[0].IDs, records[1].IDs)
			assert.Equal(t, c.sent, records[1].Counts["replayed"])
		})
	}
}

// A queue without a dead-letter exchange drops messages for good, and the replay stops.
func TestReplayToAQueueThatDrops(t *testing.T) {
	t.Parallel()
	for _, queueType := range []string{topology.Quorum, topology.Classic} {
		o := newOrders(t, queueType)
		o.DeclareQueue(t, "small", queueType, map[string]any{"x-max-length": 5})
		for i := range 30 {
			o.park(t, "exhausted", fmt.Sprintf("order-%d", i))
		}
		o.says(t, exitError, "failed replay orders --all --to small --yes", "stopped: 20 replayed, 10 left", "15 messages neither in small nor back")
		o.holds(t, "orders.failed", 10)
	}
}

// The management API tells the limits of targets. A user who may not ask it, or may not look at the target, can replay.
func TestReplayNamesLimits(t *testing.T) {
	t.Parallel()
	o := newOrders(t, "quorum")
	o.DeclareQueue(t, "small", "classic", map[string]any{"x-overflow": "reject-publish"})
	o.Call(t, http.MethodPut, o.Path("policies", "small"), map[string]any{"pattern": "^small$", "definition": map[string]any{"max-length": 2}}, nil)
	for _, id := range []string{"order-1", "order-2", "order-3"} {
		o.park(t, "exhausted", id)
	}
	o.says(t, exitOK, "failed replay orders --all --to small --dry-run --endpoint "+o.Endpoint,
		"small: 0 messages, 0 consumers, max-length 2, overflow reject-publish, so 1 of 3 messages do not fit", "would replay 3 messages")
	user := o.as(t, "^(amq\\.default|orders\\.return)$", "^orders\\.failed$")
	user.env = with(user.env, cli.EnvEndpoint, o.Endpoint)
	said := []string{"The limits of queues are not known: ", "replayed 1 of 3 to small"}
	if o.VersionAtLeast("4.3") {
		said = append(said, `small: not known: this user cannot read the queue; needs: read on "small"`)
	} else {
		said = append(said, "small: 0 messages, 0 consumers, limits unknown")
	}
	user.says(t, exitOK, "failed replay orders --limit 1 --to small --yes", said...)
	o.holds(t, "small", 1)
}

// The looks of a replay itself are no reason to stop it.
func TestReplayOfABatchAfterLooks(t *testing.T) {
	t.Parallel()
	o := newOrders(t, "quorum")
	o.DeclareQueue(t, "error", "quorum", nil)
	o.DeclareQueue(t, "sales", "quorum", nil)
	for i := range 60 {
		o.Publish(t, "", "error", amqp.Publishing{MessageId: fmt.Sprintf("order-%d", i), Headers: amqp.Table{
			"NServiceBus.FailedQ": "sales", "NServiceBus.ExceptionInfo.Message": []string{"other", "late"}[i%2],
		}})
	}
	for range 2 {
		o.run(t, exitOK, "failed list --queue error")
		o.holds(t, "error", 60)
	}
	o.says(t, exitOK, "failed replay --queue error --error late --yes", "replayed 30 of 30 to sales")
}

// A message whose own queue is the one that it is in comes back, and does not count as missing elsewhere.
func TestReplayToItsOwnQueue(t *testing.T) {
	t.Parallel()
	o := newOrders(t, "quorum")
	o.DeclareQueue(t, "error", "quorum", nil)
	o.DeclareQueue(t, "sales", "quorum", nil)
	for i := range 50 {
		to := "sales"
		if i == 30 {
			to = "error"
		}
		o.Publish(t, "", "error", amqp.Publishing{MessageId: fmt.Sprintf("order-%d", i), Headers: amqp.Table{"NServiceBus.FailedQ": to}})
	}
	o.says(t, exitError, "failed replay --queue error --all --yes", "replayed 50 of 50", "1 back in error")
	o.holds(t, "sales", 49)
	o.holds(t, "error", 1)
}

// What comes back to somebody else's queue is behind more messages than a look reads there, and is found nevertheless.
func TestReplayFindsWhatComesBackBehindOthers(t *testing.T) {
	t.Parallel()
	for _, queueType := range []string{topology.Quorum, topology.Classic} {
		o := newOrders(t, queueType)
		o.DeclareQueue(t, "error", queueType, nil)
		o.DeclareQueue(t, "sales", queueType, map[string]any{
			"x-max-length": 5, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "error",
		})
		for i := range 300 {
			o.Publish(t, "", "error", amqp.Publishing{MessageId: fmt.Sprintf("order-%d", i), Headers: amqp.Table{"NServiceBus.FailedQ": "sales"}})
		}
		o.says(t, exitError, "failed replay --queue error --limit 30 --yes", "stopped: 20 replayed, 10 left", "15 back in error. 15 ")
		o.holds(t, "error", 295)
	}
}
