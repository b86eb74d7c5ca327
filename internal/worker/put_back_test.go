package worker_test

import (
	"maps"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

// What the guide says about putting failed messages back by hand.
func TestFailedMessageThatIsPutBack(t *testing.T) {
	t.Parallel()
	const queue, key = "orders.created", "order.created.eu"
	fresh := func(d amqp.Delivery) amqp.Table {
		h := maps.Clone(d.Headers)
		maps.DeleteFunc(h, func(name string, _ any) bool {
			return strings.HasPrefix(name, "retry-") || strings.HasPrefix(name, "dead-letter-") || name == "x-death"
		})
		return h
	}
	for name, test := range map[string]struct {
		exchange, key string
		headers       func(amqp.Delivery) amqp.Table
		// deliveries are those that come after, the first of them with this key; then count is in the
		// failed queue.
		deliveries int
		delivered  string
		count      int64
	}{
		"to its work queue":                            {"", queue, nil, 1, queue, 4},
		"to its work queue, afresh":                    {"", queue, fresh, 3, queue, 3},
		"to the return exchange":                       {"orders.return", key, nil, 1, queue, 4},
		"to the return exchange, addressed":            {"orders.return", "return:" + queue, nil, 1, "return:" + queue, 4},
		"to the return exchange, addressed and afresh": {"orders.return", key, withCC(fresh, "return:"+queue), 3, key, 3},
		"to the dead-letter exchange":                  {"orders.dlx", key, nil, 0, "", 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPipeline(t, "orders", []string{"100ms"}, 3, queue, "orders.paid")
			p.work(t)
			p.set(t, "PUT", p.Path("exchanges", "shop"), map[string]any{"type": "topic", "durable": true})
			p.set(t, "POST", p.Path("bindings", "e", "shop", "q", queue), map[string]any{"routing_key": "order.created.*"})
			c := p.consume(t, queue, nil)
			p.Publish(t, "shop", key, amqp.Publishing{MessageId: "m", Headers: amqp.Table{"tenant": "a"}, Body: []byte("body")})
			failed := p.awaitFailed(t, "exhausted")
			before := len(c.deliveries())

			copied := publishingOf(failed, failed.Headers)
			if test.headers != nil {
				copied.Headers = test.headers(failed)
			}
			p.Publish(t, test.exchange, test.key, copied)
			again := p.awaitFailed(t, "exhausted")
			p.expectEmpty(t, p.names.FailedQueue())

			after := c.deliveries()[before:]
			if len(after) != test.deliveries || again.Headers["retry-count"] != test.count {
				t.Errorf("%d deliveries, then retry-count %v; want %d and %d", len(after), again.Headers["retry-count"], test.deliveries, test.count)
			}
			if len(after) > 0 && after[0].RoutingKey != test.delivered {
				t.Errorf("routing key %q, want %q", after[0].RoutingKey, test.delivered)
			}
			if string(again.Body) != "body" || again.MessageId != "m" || again.Headers["tenant"] != "a" {
				t.Errorf("%s %q, headers %v", again.MessageId, again.Body, again.Headers)
			}
		})
	}
}

func withCC(headers func(amqp.Delivery) amqp.Table, addresses ...any) func(amqp.Delivery) amqp.Table {
	return func(d amqp.Delivery) amqp.Table {
		h := headers(d)
		h["CC"] = addresses
		return h
	}
}
