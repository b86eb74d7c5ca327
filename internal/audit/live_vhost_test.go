package audit_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/audit"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// liveVhost is a vhost of a real broker with a test's queues.
type liveVhost struct {
	*brokertest.Broker
	*testing.T
	queues []string
}

// createVhost creates a vhost on the broker. It writes policies first, so that they apply to a queue from the start.
func createVhost(t *testing.T, parts ...part) *liveVhost {
	t.Helper()
	s := &liveVhost{Broker: brokertest.New(t), T: t}
	v := vhost(parts...)
	delete(v.Exchanges, "") // each vhost has it
	s.Create(t, v.Topology)
	for name, p := range v.OperatorPolicies {
		s.PutPolicy(t, "operator-policies", name, p)
	}
	s.queues = slices.Collect(maps.Keys(v.Queues))
	return s
}

// audit audits the broker's listing of the vhost, with the permissions of these users and the inboxes that wait.
func (s *liveVhost) audit(users ...audit.User) []audit.Finding {
	s.Helper()
	client, err := broker.New(broker.Config{Endpoint: s.Endpoint, Username: s.Username, Password: s.Password})
	require.NoError(s.T, err)
	v, err := client.List(s.Context(), s.Vhost)
	require.NoError(s.T, err)
	unserved, err := client.Unserved(s.Context(), s.Vhost, audit.Inboxes)
	require.NoError(s.T, err)
	return audit.Vhost(v, audit.Known{Users: users, Unserved: unserved})
}

// count returns the number of ready messages in a queue. A missing queue has none.
func (s *liveVhost) count(queue string) int {
	s.Helper()
	ch := s.Channel(s.T)
	defer func() { _ = ch.Close() }()
	q, err := ch.QueueDeclarePassive(queue, true, false, false, false, nil)
	if err != nil {
		return 0
	}
	return q.Messages
}

func (s *liveVhost) total() int {
	s.Helper()
	n := 0
	for _, queue := range s.queues {
		n += s.count(queue)
	}
	return n
}

// settles waits until a number stays at the wanted value for a while.
func (s *liveVhost) settles(what string, count func() int, want int) {
	s.Helper()
	var since time.Time
	brokertest.Eventually(s.T, func() error {
		if got := count(); got != want {
			since = time.Time{}
			return fmt.Errorf("%s: %d messages, want %d", what, got, want)
		}
		if since.IsZero() {
			since = time.Now()
		}
		if time.Since(since) < 1500*time.Millisecond {
			return fmt.Errorf("%s: %d messages, but not for long", what, want)
		}
		return nil
	})
}

// take gets a message from a queue, without an acknowledgement, as soon as there is one.
func (s *liveVhost) take(ch *amqp.Channel, queue string) amqp.Delivery {
	s.Helper()
	var taken amqp.Delivery
	brokertest.Eventually(s.T, func() error {
		delivery, ok, err := ch.Get(queue, false)
		require.NoError(s.T, err)
		if !ok {
			return fmt.Errorf("no message in %q", queue)
		}
		taken = delivery
		return nil
	})
	return taken
}

// reject rejects one message of the queue without requeue.
func (s *liveVhost) reject(queue string) {
	s.Helper()
	require.NoError(s.T, s.take(s.Channel(s.T), queue).Nack(false, false))
}

func persistent() amqp.Publishing {
	return amqp.Publishing{DeliveryMode: amqp.Persistent, Body: []byte("1")}
}

// published publishes the messages and does nothing else.
func published(n int) func(*liveVhost) {
	return func(s *liveVhost) {
		for range n {
			s.Publish(s.T, "", "work", persistent())
		}
	}
}

func rejected(n int) func(*liveVhost) {
	return func(s *liveVhost) {
		published(n)(s)
		for range n {
			s.reject("work")
		}
	}
}

func rejectedFrom(key string) func(*liveVhost) {
	return func(s *liveVhost) {
		s.Publish(s.T, "shop", key, persistent())
		s.reject("work")
	}
}

func rejectedFromQueue(queue string) func(*liveVhost) {
	return func(s *liveVhost) {
		s.Publish(s.T, "", queue, persistent())
		s.reject(queue)
	}
}

// rejectedAfterALook has a consumer of "parked" come and go first.
func rejectedAfterALook(s *liveVhost) {
	ch, _ := s.Consume(s.T, "parked", 1)
	require.NoError(s.T, ch.Close())
	rejected(1)(s)
}

// returned gives a message back to the queue, like a consumer that crashes.
func returned(times int) func(*liveVhost) {
	return func(s *liveVhost) {
		published(1)(s)
		s.requeue("work", times)
	}
}

// requeue rejects with requeue, which is the only kind of return that counts on every version.
func (s *liveVhost) requeue(queue string, times int) {
	s.Helper()
	ch := s.Channel(s.T)
	for range times {
		require.NoError(s.T, s.take(ch, queue).Reject(true))
	}
}

func rejectedAndLookedAt(s *liveVhost) {
	rejected(1)(s)
	s.requeue("parked", 2)
}

// rejectedWhileUnbound removes the binding while the message dies. The queue sends a kept message again when its policy
// changes.
func rejectedWhileUnbound(s *liveVhost) {
	published(1)(s)
	binding := topology.Binding{Source: "dead", Destination: "parked"}
	s.Request(s.T, http.MethodDelete, s.Path("bindings", "e", "dead", "q", "parked")+"/~", nil)
	s.reject("work")
	s.settles("work", func() int { return s.count("work") }, 0)
	s.Bind(s.T, binding)
	s.PutPolicy(s.T, "policies", "again", topology.Policy{Pattern: "^work$", ApplyTo: "queues", Definition: topology.Arguments{"max-length": 999_999_999}})
}

// waited publishes to a retry queue of the pipeline, as the sidecar does.
func waited(s *liveVhost) {
	s.Publish(s.T, "orders.retry", "work", amqp.Publishing{
		DeliveryMode: amqp.Persistent, Headers: amqp.Table{"CC": []any{"delay:1s", "return:work"}},
	})
}
