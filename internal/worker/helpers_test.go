package worker_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
)

// lastAttempt are the headers of a message of orders.created that has failed once: with two attempts in
// all, its next failure is the last.
func lastAttempt() amqp.Table {
	return amqp.Table{"retry-pipeline": "orders", "retry-queue": "orders.created", "retry-count": int64(1)}
}

func withUser(t *testing.T, rawURI, user, password string) string {
	t.Helper()
	u, err := url.Parse(rawURI)
	require.NoError(t, err)
	u.User = url.UserPassword(user, password)
	return u.String()
}

// countIs compares the number of messages, ready or not, that the management API shows.
func (p testVhost) countIs(t *testing.T, queue string, want int) error {
	t.Helper()
	_, answer := p.Request(t, "GET", p.Path("queues", queue), nil)
	var got struct {
		Messages *int `json:"messages"`
	}
	require.NoError(t, json.Unmarshal(answer, &got))
	if got.Messages == nil || *got.Messages != want {
		return fmt.Errorf("%s: %s, want %d messages", queue, answer, want)
	}
	return nil
}

// rejectOne rejects one message of orders.created.
func (p *testPipeline) rejectOne(t *testing.T) {
	t.Helper()
	p.getOne(t, p.Channel(t), "orders.created", func(d amqp.Delivery) error { return d.Reject(false) })
}

// getOne waits for a message and settles it.
func (p testVhost) getOne(t *testing.T, ch *amqp.Channel, queue string, settle func(amqp.Delivery) error) {
	t.Helper()
	brokertest.Eventually(t, func() error {
		d, ok, err := ch.Get(queue, false)
		require.NoErrorf(t, err, "get from %q", queue)
		if !ok {
			return fmt.Errorf("no message in %s", queue)
		}
		return settle(d)
	})
}

// fillInbox publishes messages to the dead-letter exchange as a consumer would, and returns their ids.
func (p *testPipeline) fillInbox(t *testing.T, n int, build func(int) amqp.Publishing) map[string]bool {
	t.Helper()
	ch := p.Channel(t)
	require.NoError(t, ch.Confirm(false))
	ids := map[string]bool{}
	var last *amqp.DeferredConfirmation
	confirms := ch.NotifyPublish(make(chan amqp.Confirmation, n))
	for i := range n {
		m := build(i)
		if m.MessageId == "" {
			m.MessageId = strconv.Itoa(i)
		}
		m.DeliveryMode = amqp.Persistent
		ids[m.MessageId] = true
		var err error
		if last, err = ch.PublishWithDeferredConfirm(p.names.DeadLetterExchange(), "key", true, false, m); err != nil {
			t.Fatal(err)
		}
	}
	last.Wait()
	for range n {
		if c := <-confirms; !c.Ack {
			t.Fatal("the inbox refused a message")
		}
	}
	return ids
}

// fillQueue publishes to a queue with a length limit until it refuses.
func (p testVhost) fillQueue(t *testing.T, queue string) {
	t.Helper()
	ch := p.Channel(t)
	require.NoError(t, ch.Confirm(false))
	for range 50 {
		c, err := ch.PublishWithDeferredConfirm("", queue, true, false, amqp.Publishing{MessageId: "filling"})
		require.NoError(t, err)
		if !c.Wait() {
			return
		}
	}
	t.Fatalf("%s does not fill up", queue)
}

// awaitAll takes messages off orders.created until each of the ids has come. It returns how many came more
// than once.
func (p *testPipeline) awaitAll(t *testing.T, ids map[string]bool) (duplicates int) {
	t.Helper()
	const queue = "orders.created"
	ch := p.Channel(t)
	require.NoError(t, ch.Qos(1000, 0, false))
	deliveries, err := ch.Consume(queue, "", true, false, false, false, nil)
	require.NoError(t, err)
	seen := map[string]bool{}
	for len(seen) < len(ids) {
		d := brokertest.Receive(t, deliveries)
		if seen[d.MessageId] {
			duplicates++
		}
		seen[d.MessageId] = true
	}
	return duplicates
}
