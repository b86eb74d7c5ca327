package audit_test

import (
	"net/http"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// published leaves the messages to what the queue does with them.
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

func rejectedFrom(exchange, key string) func(*liveVhost) {
	return func(s *liveVhost) {
		s.Publish(s.T, exchange, key, persistent())
		s.reject("work")
	}
}

func rejectedFromQueue(queue string) func(*liveVhost) {
	return func(s *liveVhost) {
		s.Publish(s.T, "", queue, persistent())
		s.reject(queue)
	}
}

// returned gives a message back to the queue, as a consumer that crashes does.
func returned(times int) func(*liveVhost) {
	return func(s *liveVhost) {
		published(1)(s)
		s.requeue("work", times)
	}
}

// requeue rejects with requeue: the one way of returning that counts on every version.
func (s *liveVhost) requeue(queue string, times int) {
	s.Helper()
	ch := s.Channel(s.T)
	for range times {
		if err := s.take(ch, queue).Reject(true); err != nil {
			s.Fatal(err)
		}
	}
}

func rejectedAndLookedAt(s *liveVhost) {
	rejected(1)(s)
	s.requeue("parked", 2)
}

// rejectedWhileUnbound takes the binding away for the moment in which the message dies. What was kept is
// sent again when the queue's policy changes.
func rejectedWhileUnbound(s *liveVhost) {
	published(1)(s)
	binding := topology.Binding{Source: "dead", Destination: "parked"}
	s.Request(s.T, http.MethodDelete, s.Path("bindings", "e", "dead", "q", "parked")+"/~", nil)
	s.reject("work")
	s.settles("work", func() int { return s.count("work") }, 0)
	s.bind(binding)
	s.put(s.Path("policies", "again"), map[string]any{"pattern": "^work$", "apply-to": "queues", "definition": args{"max-length": 999_999_999}})
}

// waited publishes to a retry queue of the pipeline, as the sidecar does.
func waited(s *liveVhost) {
	s.Publish(s.T, "orders.retry", "work", amqp.Publishing{
		DeliveryMode: amqp.Persistent, Headers: amqp.Table{"CC": []any{"delay:1s", "return:work"}},
	})
}
