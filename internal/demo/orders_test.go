package main

import (
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
)

// rejected is an order after this many deliveries, which the consumer rejects this often.
func rejected(rejections, deliveries int) *order {
	return &order{id: "1", routingKey: "order.created.eu", body: "{}", rejections: rejections, deliveries: deliveries}
}

// delivery is a correct second delivery of the order, with these changes.
func delivery(change func(*amqp.Delivery)) amqp.Delivery {
	d := amqp.Delivery{
		RoutingKey: "order.created.eu", ContentType: "application/json", Body: []byte("{}"),
		Headers: amqp.Table{"retry-count": int64(1), "x-death": []any{amqp.Table{"queue": "orders.retry.1s"}}},
	}
	change(&d)
	return d
}

func TestCheckDelivery(t *testing.T) {
	t.Parallel()

	for want, change := range map[string]func(*amqp.Delivery){
		"":                                   func(*amqp.Delivery) {},
		"its body has changed":               func(d *amqp.Delivery) { d.Body = []byte("[]") },
		"its routing key has changed":        func(d *amqp.Delivery) { d.RoutingKey = "retry-escaped" },
		"its content type has changed":       func(d *amqp.Delivery) { d.ContentType = "" },
		"retry-count is 2 instead of 1":      func(d *amqp.Delivery) { d.Headers["retry-count"] = int64(2) },
		`it waited in "" instead of "orders`: func(d *amqp.Delivery) { delete(d.Headers, "x-death") },
	} {
		err := rejected(maxAttempts, 2).checkDelivery(delivery(change))
		requireError(t, err, want)
	}
}

func TestCheckDeliveryBeyondTheLast(t *testing.T) {
	t.Parallel()

	err := rejected(maxAttempts, 4).checkDelivery(amqp.Delivery{})
	requireError(t, err, "3 times at most")
}

func TestCheckParked(t *testing.T) {
	t.Parallel()

	parked := delivery(func(d *amqp.Delivery) {
		d.Headers = amqp.Table{
			"dead-letter-reason": "exhausted", "retry-count": int64(3), "retry-max-attempts": int64(3), "retry-pipeline": "orders",
			"retry-queue": "orders.created", "retry-exchange": "shop", "retry-routing-key": "order.created.eu",
		}
	})
	requireError(t, rejected(maxAttempts, 3).checkParked(parked), "")
	requireError(t, rejected(maxAttempts, 2).checkParked(parked), "parked after 2 deliveries")
	requireError(t, rejected(1, 2).checkParked(parked), "parked after 2 deliveries and 1 rejections")
	parked.Headers["dead-letter-reason"] = "worker_error"
	requireError(t, rejected(maxAttempts, 3).checkParked(parked), "worker_error instead of exhausted")
}

// requireError fails unless the error contains the text. If the text is "", err must be nil.
func requireError(t *testing.T, err error, want string) {
	t.Helper()
	if want == "" {
		require.NoError(t, err)
		return
	}
	require.ErrorContains(t, err, want)
}
