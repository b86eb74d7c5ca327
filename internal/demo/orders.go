package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/exec"
	"slices"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
)

const (
	exchange  = "shop"
	workQueue = "orders.created"
	// ordersPipeline is the pipeline in examples/quickstart.
	ordersPipeline = pipeline.Names("orders")
	maxAttempts    = 3
)

// delays are those that scripts/demo gives the pipeline.
var delays = [maxAttempts - 1]time.Duration{time.Second, 2 * time.Second}

// order is a message and its progress.
type order struct {
	id, routingKey, body string
	// rejections is how often the consumer rejects the order at most, and why is the reason.
	rejections int
	why        string

	deliveries int
	// done is set when the order is processed or parked.
	done bool
}

var orders = []*order{
	newOrder(1001, "eu", `"customer":"Ana","items":[{"sku":"TEA-4","n":2}],"total":"17.80"`, 0, ""),
	newOrder(1002, "us", `"customer":"Bo","items":[{"sku":"CUP-1","n":6}],"total":"41.40"`, 2, "stock service unavailable"),
	newOrder(1003, "eu", `"customer":"Chi","items":[{"sku":"???","n":1}],"total":"9.90"`, maxAttempts, "no such article"),
	newOrder(1004, "us", `"customer":"Dov","items":[{"sku":"TEA-9","n":1}],"total":"12.00"`, 0, ""),
	newOrder(1005, "eu", `"customer":"Eva","items":[{"sku":"POT-2","n":1}],"total":"58.00"`, 2, "payment timed out"),
	newOrder(1006, "us", `"customer":"Fay","items":[],"total":"0.00"`, maxAttempts, "no items"),
}

func newOrder(number int, region, content string, rejections int, why string) *order {
	return &order{
		id: fmt.Sprintf("order-%d", number), routingKey: "order.created." + region,
		body: fmt.Sprintf(`{"order":%d,%s}`, number, content), rejections: rejections, why: why,
	}
}

// showRetries publishes the orders, and follows them until each is processed or parked. A parked one is then replayed.
func showRetries(shop, operator *amqp.Channel) {
	deliveries, parked := consume(shop, workQueue), consume(operator, ordersPipeline.FailedQueue())
	began = time.Now()
	for _, o := range orders {
		message := amqp.Publishing{MessageId: o.id, ContentType: "application/json", Body: []byte(o.body)}
		publish(shop, exchange, o.routingKey, message)
	}
	follow(deliveries, parked)

	// The operator has acknowledged nothing, and the broker puts the parked orders back.
	check(operator.Close())
	replay := exec.CommandContext(context.Background(), "scripts/demo", "replay")
	replay.Stdout, replay.Stderr = os.Stdout, os.Stderr
	check(replay.Run())
	replayed := orders[2]
	replayed.rejections, replayed.deliveries, replayed.done = 0, 0, false
	follow(deliveries, nil)
}

// follow handles messages until every order is processed or parked.
func follow(deliveries, parked <-chan amqp.Delivery) {
	for slices.ContainsFunc(orders, func(o *order) bool { return !o.done }) {
		m := must(next(deliveries, parked))
		i := slices.IndexFunc(orders, func(o *order) bool { return o.id == m.MessageId })
		switch {
		case i < 0:
			log.Fatalf("a message with the unknown id %q arrived", m.MessageId)
		case orders[i].done:
			log.Fatalf("%s arrived again after its end", m.MessageId)
		}
		orders[i].handle(m)
	}
}

// handle is the application's consumer, which only acks, or nacks without requeue. It leaves an order in the failed queue.
func (o *order) handle(m amqp.Delivery) {
	if m.ConsumerTag == ordersPipeline.FailedQueue() {
		if err := o.checkParked(m); err != nil {
			log.Fatalf("%s in %s: %s", o.id, ordersPipeline.FailedQueue(), err)
		}
		o.done = true
		event(red, o.id, "", "parked in %s: %s", ordersPipeline.FailedQueue(), m.Headers[deadletter.HeaderDeadLetterReason])
		return
	}
	o.deliveries++
	if err := o.checkDelivery(m); err != nil {
		log.Fatalf("%s, delivery %d: %s", o.id, o.deliveries, err)
	}
	attempt := fmt.Sprintf("attempt %d of %d", o.deliveries, maxAttempts)
	switch {
	case o.deliveries > o.rejections:
		o.done = true
		event(green, o.id, attempt, "processed")
		check(m.Ack(false))
		return
	case o.deliveries == maxAttempts:
		event("", o.id, attempt, "rejected (%s), no attempt left", o.why)
	default:
		event("", o.id, attempt, "rejected (%s), waits %s in %s", o.why, delays[o.deliveries-1], retryQueue(o.deliveries))
	}
	check(m.Nack(false, false))
}

// checkDelivery checks an order that the consumer received.
func (o *order) checkDelivery(m amqp.Delivery) error {
	if o.deliveries > maxAttempts {
		return fmt.Errorf("it should have been delivered %d times at most", maxAttempts)
	}
	failed := o.deliveries - 1
	if failed == 0 {
		return o.check(m, amqp.Table{deadletter.HeaderCount: nil})
	}
	if queue := lastQueue(m); queue != retryQueue(failed) {
		return fmt.Errorf("it waited in %q instead of %q", queue, retryQueue(failed))
	}
	return o.check(m, amqp.Table{deadletter.HeaderCount: int64(failed)})
}

// checkParked checks an order in the failed queue.
func (o *order) checkParked(m amqp.Delivery) error {
	if o.rejections < maxAttempts || o.deliveries != maxAttempts {
		return fmt.Errorf("it was parked after %d deliveries and %d rejections", o.deliveries, min(o.deliveries, o.rejections))
	}
	return o.check(m, amqp.Table{
		deadletter.HeaderDeadLetterReason: deadletter.ReasonExhausted,
		deadletter.HeaderCount:            int64(maxAttempts),
		deadletter.HeaderMaxAttempts:      int64(maxAttempts),
		deadletter.HeaderPipeline:         string(ordersPipeline),
		deadletter.HeaderQueue:            workQueue,
		deadletter.HeaderExchange:         exchange,
		deadletter.HeaderRoutingKey:       o.routingKey,
	})
}

// check checks that retries wrote these headers, and did not change the content.
func (o *order) check(m amqp.Delivery, headers amqp.Table) error {
	switch {
	case string(m.Body) != o.body:
		return fmt.Errorf("its body has changed to %q", m.Body)
	case m.RoutingKey != o.routingKey:
		return fmt.Errorf("its routing key has changed to %q", m.RoutingKey)
	case m.ContentType != "application/json":
		return fmt.Errorf("its content type has changed to %q", m.ContentType)
	}
	for name, want := range headers {
		if got := m.Headers[name]; got != want {
			return fmt.Errorf("its header %s is %v instead of %v", name, got, want)
		}
	}
	return nil
}

// retryQueue is the queue where an order waits after this number of failed attempts.
func retryQueue(failed int) string { return ordersPipeline.RetryQueue(delays[failed-1]) }

// lastQueue is the queue that the message was last dead-lettered from.
func lastQueue(m amqp.Delivery) any {
	deaths, _ := m.Headers["x-death"].([]any)
	if len(deaths) == 0 {
		return ""
	}
	death, _ := deaths[0].(amqp.Table)
	return death["queue"]
}
