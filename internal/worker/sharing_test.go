package worker_test

import (
	"fmt"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
)

func TestTwoWorkQueuesShareAPipeline(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"100ms"}, 3, "orders.created", "orders.paid")
	p.work(t)
	created, paid := p.consume(t, "orders.created", nil), p.consume(t, "orders.paid", nil)

	for i := range 10 {
		p.Publish(t, "", "orders.created", amqp.Publishing{MessageId: fmt.Sprint("created-", i)})
		p.Publish(t, "", "orders.paid", amqp.Publishing{MessageId: fmt.Sprint("paid-", i)})
	}
	origins := map[any]int{}
	for range 20 {
		origins[p.awaitFailed(t, "exhausted").Headers["retry-queue"]]++
	}
	if origins["orders.created"] != 10 || origins["orders.paid"] != 10 {
		t.Errorf("failed messages come from %v", origins)
	}
	if n, m := len(created.deliveries()), len(paid.deliveries()); n != 30 || m != 30 {
		t.Errorf("%d and %d deliveries, want 30 each", n, m)
	}
}

func TestNamesOfAnyCharacters(t *testing.T) {
	t.Parallel()
	queues := []string{"orders created", "orders/created", "orders%2Fcreated%", ".orders..", "bestellung-größe-日本", "a|b$^(c)"}
	p := newPipeline(t, "my pipeline.%ü", []string{"100ms", "1.5s"}, 2, queues...)
	p.work(t)
	for _, queue := range queues {
		c := p.consume(t, queue, nil)
		p.Publish(t, "", queue, amqp.Publishing{})
		if failed := p.awaitFailed(t, "exhausted"); failed.Headers["retry-queue"] != queue {
			t.Errorf("%q: retry-queue is %v", queue, failed.Headers["retry-queue"])
		}
		if n := len(c.deliveries()); n != 2 {
			t.Errorf("%q: %d deliveries, want 2", queue, n)
		}
	}
}

func TestTwoReplicasShareTheWork(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"100ms"}, 3, "orders.created")
	first, second := p.work(t), p.work(t)
	c := p.consume(t, "orders.created", nil)
	const messages = 200
	for i := range messages {
		p.Publish(t, "", "orders.created", amqp.Publishing{MessageId: fmt.Sprint(i)})
	}
	for range messages {
		p.awaitFailed(t, "exhausted")
	}
	if n := len(c.deliveries()); n != 3*messages {
		t.Errorf("%d deliveries, want %d", n, 3*messages)
	}
	for _, replica := range []*running{first, second} {
		if parked := replica.Log.Count("message parked"); parked == 0 {
			t.Error("one replica has done nothing")
		}
	}
	brokertest.Eventually(t, func() error { return p.countIs(t, p.names.Inbox(), 0) })
}
