//go:build chaos

package chaos

import (
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
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
		if err := d.Ack(false); err != nil {
			t.Error(err)
		}
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
	if _, err := ch.QueueDeclare(queue, true, false, false, false, arguments); err != nil {
		t.Fatal(err)
	}
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
	late := time.After(7 * time.Minute)
	for len(taken) < someMessages {
		select {
		case d, ok := <-deliveries:
			if !ok {
				t.Fatalf("the consumer of %s has lost its connection", queue)
			}
			taken = append(taken, d)
		case <-late:
			t.Fatalf("%d of %d messages came from %s", len(taken), someMessages, queue)
		}
	}
	return taken
}
