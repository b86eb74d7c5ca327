package deadletter

import (
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// A message that waits in a retry queue, as version 0.1 published it, fails again. These headers must never change.
func TestWhatWaitsGoesOn(t *testing.T) {
	t.Parallel()
	const first = int64(1_600_000_000_000)
	d := rejected("orders.created", amqp.Table{
		"tenant": "a", "CC": []any{"delay:5s", "return:orders.created"},
		"retry-count": int64(1), "retry-max-attempts": int64(4), "retry-pipeline": "orders", "retry-queue": "orders.created",
		"retry-exchange": "shop", "retry-routing-key": "eu.created", "retry-publish-id": "s-1", "retry-reason": "rejected",
		"retry-first-failed-at": first, "retry-last-failed-at": first, "retry-delay-ms": int64(5000), "retry-user-id": "shop",
		"retry-reply-to": "amq.rabbitmq.reply-to.x", "retry-delivery-mode": int64(1), "retry-due-at": first + 5000,
		"retry-history": `[{"attempt":1,"at":1600000000000,"reason":"rejected","delay_ms":5000}]`,
	})
	p := orders(t)
	v := judge(p, d)
	if v.Action != Retry || v.Letter.Count != 2 || v.Delay != 30*time.Second {
		t.Errorf("decided %+v", v)
	}
	headers := publish(t, p, d).Headers
	for key, want := range map[string]any{
		"tenant": "a", "retry-count": int64(2), "retry-first-failed-at": first, "retry-user-id": "shop", "retry-delivery-mode": int64(1),
		"retry-reply-to": "amq.rabbitmq.reply-to.x", "retry-exchange": "shop", "retry-routing-key": "eu.created",
	} {
		if headers[key] != want {
			t.Errorf("%s is %v, want %v", key, headers[key], want)
		}
	}
}
