package worker_test

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

// types are the types that clients send numbers back in, or something else.
var types = []func(n int64) any{
	func(n int64) any { return n }, func(n int64) any { return int32(n) }, func(n int64) any { return int16(n) },
	func(n int64) any { return int8(n) }, func(n int64) any { return uint8(n) }, func(n int64) any { return uint16(n) },
	func(n int64) any { return uint32(n) }, func(n int64) any { return float32(n) }, func(n int64) any { return float64(n) },
	func(n int64) any { return amqp.Decimal{Scale: 1, Value: int32(10 * n)} }, func(n int64) any { return strconv.FormatInt(n, 10) },
	func(n int64) any { return []byte(strconv.FormatInt(n, 10)) }, func(n int64) any { return fmt.Sprintf("%d.0", n) },
	func(int64) any { return nil }, func(n int64) any { return n > 1 }, func(n int64) any { return float64(n) + 0.5 },
	func(n int64) any { return time.Unix(n, 0) }, func(n int64) any { return []any{n} }, func(n int64) any { return amqp.Table{"n": n} },
}

// Clients send headers back in other types. Attempts count nevertheless, and no message is lost.
func TestHeadersSentBackInAnyType(t *testing.T) {
	t.Parallel()
	const attempts, perType = 3, 50
	p := newPipeline(t, "orders", []string{"100ms"}, attempts, "orders.created")
	p.work(t)
	publisher := p.Channel(t)
	consumed := p.consume(t, "orders.created", func(d amqp.Delivery) error {
		kind, _ := strconv.Atoi(d.MessageId[:strings.Index(d.MessageId, ".")])
		headers := maps.Clone(d.Headers)
		delete(headers, "CC")
		delete(headers, "x-death")
		if count, has := headers["retry-count"].(int64); has {
			headers["retry-count"] = types[kind](count)
		} else {
			headers = amqp.Table{"retry-queue": "orders.created"}
		}
		err := publisher.Publish("orders.dlx", "", true, false, amqp.Publishing{Headers: headers, MessageId: d.MessageId, DeliveryMode: 2})
		if err != nil {
			return err
		}
		return d.Ack(false)
	})
	for kind := range types {
		for i := range perType {
			p.Publish(t, "", "orders.created", amqp.Publishing{MessageId: fmt.Sprintf("%d.%d", kind, i), DeliveryMode: 2})
		}
	}
	_, parked := p.Consume(t, p.names.FailedQueue(), 0)
	for range len(types) * perType {
		d := brokertest.Receive(t, parked)
		require.Equal(t, "exhausted", d.Headers["dead-letter-reason"], "%s: %v", d.MessageId, d.Headers)
		require.Equal(t, int64(attempts), d.Headers["retry-count"], d.MessageId)
	}
	require.Len(t, consumed.deliveries(), attempts*len(types)*perType)
}

// sentBack returns a header's value in another type.
func sentBack(value any, kind int) any {
	switch v := value.(type) {
	case int64:
		return types[kind](v)
	case string:
		if kind == 0 {
			return []byte(v)
		}
	}
	return types[kind](1)
}

// Whatever a client makes of any of our headers, no message is lost, and none has more attempts than are allowed.
func TestEachHeaderSentBackInAnyType(t *testing.T) {
	t.Parallel()
	const attempts, perPair = 3, 2
	headers := []string{
		"retry-max-attempts", "retry-pipeline", "retry-queue", "retry-exchange", "retry-routing-key", "retry-publish-id", "retry-reason",
		"retry-first-failed-at", "retry-last-failed-at", "retry-delay-ms", "retry-due-at", "retry-history", "retry-user-id", "retry-reply-to",
		"retry-delivery-mode", "dead-letter-reason", "dead-letter-at", "dead-letter-detour", "dead-letter-error", "dead-letter-exception",
		"retry", "retry-after-ms", "retry-after",
	}
	p := newPipeline(t, "orders", []string{"100ms"}, attempts, "orders.created")
	p.work(t)
	publisher := p.Channel(t)
	consumed := p.consume(t, "orders.created", func(d amqp.Delivery) error {
		var header string
		var kind, i int
		if _, err := fmt.Sscan(d.MessageId, &header, &kind, &i); err != nil {
			return err
		}
		sent := maps.Clone(d.Headers)
		delete(sent, "CC")
		delete(sent, "x-death")
		if sent == nil {
			sent = amqp.Table{"retry-queue": "orders.created"}
		}
		sent[header] = sentBack(sent[header], kind)
		err := publisher.Publish("orders.dlx", "", true, false, amqp.Publishing{Headers: sent, MessageId: d.MessageId, DeliveryMode: 2})
		if err != nil {
			return err
		}
		return d.Ack(false)
	})
	published := 0
	for _, header := range headers {
		for kind := range types {
			for i := range perPair {
				p.Publish(t, "", "orders.created", amqp.Publishing{MessageId: fmt.Sprintln(header, kind, i), DeliveryMode: 2})
				published++
			}
		}
	}
	_, parked := p.Consume(t, p.names.FailedQueue(), 0)
	reasons, ids := map[string]int{}, map[string]bool{}
	for range published {
		d := brokertest.Receive(t, parked)
		require.NoError(t, d.Ack(false)) // a quorum queue stops at 2,000 without
		require.False(t, ids[d.MessageId], "%s came twice", d.MessageId)
		ids[d.MessageId] = true
		reasons[fmt.Sprint(d.Headers["dead-letter-reason"])]++
	}
	t.Log(reasons)
	counts := map[string]int{}
	for _, d := range consumed.deliveries() {
		counts[d.MessageId]++
		require.LessOrEqual(t, counts[d.MessageId], attempts, d.MessageId)
	}
}

// After a retry, some programs publish to the exchange of the delivery. Their message is delayed, and counts if it says
// how.
func TestAnswersToTheDeliverysExchange(t *testing.T) {
	t.Parallel()
	const wait = time.Second
	p := newPipeline(t, "orders", []string{"0s", wait.String()}, 4, "orders.created", "orders.paid")
	p.work(t)
	ch := p.Channel(t)
	require.NoError(t, ch.ExchangeDeclare("shop", "topic", true, false, false, false, nil))
	for _, queue := range []string{"orders.created", "orders.paid"} {
		require.NoError(t, ch.QueueBind(queue, queue, "shop", false, nil))
	}
	answer := func(t *testing.T, queue, key string, change func(amqp.Table) amqp.Table) {
		t.Helper()
		require.NoError(t, ch.QueueBind(queue, key, "shop", false, nil))
		p.Publish(t, "shop", key, amqp.Publishing{Headers: amqp.Table{"tenant": "a"}})
		p.getOne(t, ch, queue, func(d amqp.Delivery) error { return d.Reject(false) })
		retried := p.await(t, queue)
		require.Equal(t, "orders.return", retried.Exchange)
		p.Publish(t, retried.Exchange, retried.RoutingKey, amqp.Publishing{Headers: change(retried.Headers)})
	}
	for name, test := range map[string]struct {
		queue  string
		change func(amqp.Table) amqp.Table
		count  int64
	}{
		"no headers":         {"orders.created", func(amqp.Table) amqp.Table { return nil }, 1},
		"headers of its own": {"orders.paid", func(amqp.Table) amqp.Table { return amqp.Table{"tenant": "a"} }, 1},
		"the headers but CC": {"orders.created", func(h amqp.Table) amqp.Table {
			h = maps.Clone(h)
			delete(h, "CC")
			delete(h, "x-death")
			return h
		}, 2},
	} {
		began := time.Now()
		answer(t, test.queue, test.queue, test.change)
		d := p.await(t, test.queue)
		expectHeaders(t, d, amqp.Table{"retry-count": test.count, "retry-queue": test.queue})
		require.GreaterOrEqual(t, time.Since(began), wait, "%s: it came at once", name)
	}
	answer(t, "orders.created", "eu.created", func(amqp.Table) amqp.Table { return nil })
	d := p.awaitFailed(t, "unknown_queue")
	require.Contains(t, d.Headers["dead-letter-error"], `"orders.dlx"`)

	// A retry queue of the application's, which dead-letters to the exchange of the delivery.
	p.DeclareQueue(t, "own.retry", "classic", amqp.Table{"x-message-ttl": 100, "x-dead-letter-exchange": "orders.return"})
	require.NoError(t, ch.QueueBind("own.retry", "orders.paid", "amq.direct", false, nil))
	p.Publish(t, "amq.direct", "orders.paid", amqp.Publishing{})
	expectHeaders(t, p.await(t, "orders.paid"), amqp.Table{"retry-count": int64(1), "retry-queue": "orders.paid"})
	p.expectEmpty(t, "orders.created")
	p.expectEmpty(t, p.names.FailedQueue())
}
