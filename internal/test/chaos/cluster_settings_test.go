//go:build chaos

package chaos

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/terraformtest"
)

// A cluster runs with the settings that the guide recommends, unless its defaults are to be measured.
const (
	someMessages = 20
	// withSettings is twice the time-out of either setting, and some time for the cluster.
	withSettings = 30 * time.Second
)

//nolint:paralleltest // takes a node away
func TestDeliveriesThroughADeadNodeGoToOthers(t *testing.T) {
	a := newApplication(t)
	fill(t, a, "created")
	through := a.through(t, a.nodes[1])
	require.NoError(t, through.Qos(someMessages, 0, false))
	take(t, through, "created")
	dies := time.Now()
	require.NoError(t, a.nodes[1].kill())
	other := a.through(t, a.nodes[0])
	for _, d := range take(t, other, "created") {
		require.NoError(t, d.Ack(false))
	}
	a.check(t, "all deliveries went to another consumer", time.Since(dies))
	a.restart(t, a.nodes[1])
}

//nolint:paralleltest // takes a node away
func TestDeadLettersFollowATargetThatIsBack(t *testing.T) {
	a := newApplication(t)
	through := a.through(t, a.nodes[1])
	declare(t, through, "target", amqp.Table{"x-quorum-initial-group-size": 1})
	other := a.through(t, a.nodes[0])
	declare(t, other, "source", amqp.Table{
		"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "target", "x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish",
	})
	fill(t, a, "source")
	require.NoError(t, a.nodes[1].kill())
	for _, d := range take(t, other, "source") {
		require.NoError(t, d.Reject(false))
	}
	time.Sleep(3 * time.Second) // for the dead letters to meet a target that is not there
	a.restart(t, a.nodes[1])
	back := time.Now()
	take(t, other, "target")
	a.check(t, "all dead letters arrived after the target was back", time.Since(back))
}

func (a *application) check(t *testing.T, what string, took time.Duration) {
	t.Helper()
	t.Logf("RabbitMQ %s: %s in %.1f s", a.Version, what, took.Seconds())
	if took > withSettings {
		t.Errorf("that is more than %s: does the cluster run with examples/clusters/advanced.config?", withSettings)
	}
}

func (a *application) restart(t *testing.T, n *node) {
	t.Helper()
	require.NoError(t, n.start())
	require.NoError(t, a.awaitMembers(t.Context()))
}

// through connects to one node.
func (a *application) through(t *testing.T, n *node) *amqp.Channel {
	t.Helper()
	conn, err := a.connect(newProxy(t, n.String(), n.amqp))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	ch, err := conn.Channel()
	require.NoError(t, err)
	return ch
}

func declare(t *testing.T, ch *amqp.Channel, queue string, arguments amqp.Table) {
	t.Helper()
	arguments["x-queue-type"] = "quorum"
	_, err := ch.QueueDeclare(queue, true, false, false, false, arguments)
	require.NoError(t, err)
}

func fill(t *testing.T, a *application, queue string) {
	t.Helper()
	for range someMessages {
		a.Publish(t, "", queue, amqp.Publishing{DeliveryMode: amqp.Persistent})
	}
}

// take waits for the messages, for longer than any broker needs without the settings.
func take(t *testing.T, ch *amqp.Channel, queue string) (taken []amqp.Delivery) {
	t.Helper()
	deliveries, err := ch.Consume(queue, "", false, false, false, false, nil)
	require.NoError(t, err)
	for range someMessages {
		d := brokertest.Receive(t, deliveries)
		require.NotNil(t, d.Acknowledger, "the consumer of %s has lost its connection", queue)
		taken = append(taken, d)
	}
	return taken
}

// Each queue that is attached dead-letters at once, wherever its leader is: one whose leader's node learned of the policy
// too late would hold its dead letters for ever. A cluster that has just started is the most likely to be late.
//
//nolint:paralleltest // other tests take nodes away
func TestEachQueueThatIsAttachedDeadLetters(t *testing.T) {
	const queues = 60
	a := newApplication(t)
	tf := terraformtest.New(t, terraformtest.BuildProvider(t), "RABBITMQ_ENDPOINT="+a.Endpoint)
	var names, settings []string
	for i := range queues {
		names = append(names, fmt.Sprintf("work.%d", i))
		settings = append(settings, fmt.Sprintf("%q = {}", names[i]))
	}
	for i, n := range a.nodes {
		ch := a.through(t, n) // the queue's leader is on the node that declares it
		for j := i; j < queues; j += len(a.nodes) {
			declare(t, ch, names[j], amqp.Table{})
		}
	}
	tf.Write(t, "main.tf", required+fmt.Sprintf(`
resource "rabbitmq_retry_pipeline" "chaos" {
  name        = "chaos"
  vhost       = %q
  delays      = ["1h"]
  work_queues = { %s }
}
`, a.Vhost, strings.Join(settings, ", ")))
	tf.Run(t, "apply", "-auto-approve", "-input=false", "-no-color")

	held := map[string]bool{}
	ch := a.Channel(t)
	for _, name := range names {
		held[name] = true
		a.Publish(t, "", name, amqp.Publishing{DeliveryMode: amqp.Persistent, Body: []byte(name)})
		d, ok, err := ch.Get(name, false)
		if err != nil || !ok {
			t.Fatalf("get from %s: %v, %v", name, ok, err)
		}
		require.NoError(t, d.Reject(false))
	}
	brokertest.Eventually(t, func() error {
		for d, ok := a.Get(t, "chaos.inbox"); ok; d, ok = a.Get(t, "chaos.inbox") {
			delete(held, string(d.Body))
		}
		if len(held) > 0 {
			return fmt.Errorf("dead letters held by %q", slices.Sorted(maps.Keys(held)))
		}
		return nil
	})
}
