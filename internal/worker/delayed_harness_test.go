package worker_test

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"net/url"
	"strconv"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/certificates"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/worker"
)

// testExchange is a delayed exchange on a broker, in a vhost of its own.
type testExchange struct {
	testVhost
	spec  delayed.Exchange
	names delayed.Names
}

// newExchange makes the topology of a delayed exchange "events". Its queues are bound with their names as keys.
func newExchange(t *testing.T, maxDelay, precision string, queues ...string) *testExchange {
	t.Helper()
	return newExchangeIn(t, testVhost{brokertest.New(t)}, "events", maxDelay, precision, queues...)
}

func newExchangeIn(t *testing.T, v testVhost, name, maxDelay, precision string, queues ...string) *testExchange {
	t.Helper()
	e := &testExchange{testVhost: v, names: delayed.Names(name), spec: delayed.Exchange{
		Name: name, Vhost: v.Vhost, Type: "topic", PolicyPriority: delayed.DefaultPolicyPriority,
		MaxDelay: waiting(t, maxDelay), Precision: waiting(t, precision),
	}}
	e.Create(t, e.spec.Expand())
	for _, queue := range queues {
		e.DeclareQueue(t, queue, "quorum", nil)
		require.NoError(t, e.Channel(t).QueueBind(queue, queue, e.names.DeliverExchange(), false, nil))
	}
	return e
}

func waiting(t *testing.T, spelled string) pipeline.Delay {
	t.Helper()
	wait, err := pipeline.ParseDelay(spelled)
	require.NoError(t, err)
	return pipeline.Delay{Wait: wait, Spelling: spelled}
}

func exchangesOf(t *testing.T, workers ...delayed.Worker) []byte {
	t.Helper()
	data, err := json.Marshal(map[string]any{"delayed_exchanges": workers})
	require.NoError(t, err)
	return data
}

// work starts a worker, which stops when the test ends.
func (e *testExchange) work(t *testing.T) *running {
	t.Helper()
	return e.workWith(t, func(context.Context, *worker.Options) {})
}

func (e *testExchange) workWith(t *testing.T, change func(context.Context, *worker.Options)) *running {
	t.Helper()
	return e.workOn(t, e.URI, exchangesOf(t, e.spec.Worker()), change)
}

func (e *testExchange) publish(t *testing.T, key string, delay any, m amqp.Publishing) {
	t.Helper()
	if m.Headers == nil {
		m.Headers = amqp.Table{}
	}
	m.Headers["x-delay"] = delay
	e.Publish(t, e.names.Exchange(), key, m)
}

// user returns the user that publishes.
func (p testVhost) user(t *testing.T) string {
	t.Helper()
	u, err := url.Parse(p.URI)
	require.NoError(t, err)
	return u.User.Username()
}

// due says when a message can be delivered at the earliest, and where.
type due struct {
	at    time.Time
	queue string
}

// publishMany publishes persistent messages with random delays, each to one of the queues. It returns the due messages
// by message-id, which begins with the prefix.
func (e *testExchange) publishMany(t *testing.T, prefix string, n int, longest time.Duration, queues ...string) map[string]due {
	t.Helper()
	ch := e.Channel(t)
	require.NoError(t, ch.Confirm(false))
	sent := make(map[string]due, n)
	var last *amqp.DeferredConfirmation
	for i := range n {
		delay, queue, id := rand.Int64N(longest.Milliseconds()), queues[i%len(queues)], prefix+strconv.Itoa(i)
		sent[id] = due{time.Now().Add(time.Duration(delay) * time.Millisecond), queue}
		var err error
		if last, err = ch.PublishWithDeferredConfirm(e.names.Exchange(), queue, true, false, amqp.Publishing{
			MessageId: id, DeliveryMode: amqp.Persistent, Headers: amqp.Table{"x-delay": delay},
		}); err != nil {
			t.Fatal(err)
		}
	}
	if !last.Wait() {
		t.Fatal("the inbox refused a message")
	}
	return sent
}

// delivery is a delivered message.
type delivery struct {
	amqp.Delivery
	at    time.Time
	queue string
}

// collect takes all messages that arrive in these queues.
func (e *testExchange) collect(t *testing.T, queues ...string) <-chan delivery {
	t.Helper()
	all := make(chan delivery, 10_000)
	for _, queue := range queues {
		ch := e.Channel(t)
		deliveries, err := ch.Consume(queue, "", true, false, false, false, nil)
		require.NoError(t, err)
		go func() {
			for d := range deliveries {
				all <- delivery{d, time.Now(), queue}
			}
		}()
	}
	return all
}

// awaitDue waits until each sent message has arrived in its queue, and not before its time. It returns how many came
// twice.
func awaitDue(t *testing.T, sent map[string]due, deliveries <-chan delivery) (duplicates int) {
	t.Helper()
	seen := map[string]bool{}
	for len(seen) < len(sent) {
		d := brokertest.Receive(t, deliveries)
		want, found := sent[d.MessageId]
		if early := want.at.Sub(d.at); !found || d.queue != want.queue || early > 0 {
			t.Errorf("message %q came to %s %s early (sent: %t)", d.MessageId, d.queue, early, found)
		}
		if seen[d.MessageId] {
			duplicates++
		}
		seen[d.MessageId] = true
	}
	return duplicates
}

// brokersAt returns the brokers of one URI.
func brokersAt(t *testing.T, rawURI string) amqpconn.Brokers {
	t.Helper()
	uris, err := amqpconn.ParseURIs(rawURI, certificates.Set{})
	require.NoError(t, err)
	return fixedBrokers(uris...)
}
