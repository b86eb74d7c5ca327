package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
)

const (
	// The objects of an existing application, which has no code for retries. The pipeline only attaches to the queue.
	exchange  = "shop"
	workQueue = "orders.created"
	// ordersPipeline is the pipeline in examples/quickstart.
	ordersPipeline = pipeline.Names("orders")
	maxAttempts    = 3
	// always is more often than any message is delivered.
	always = math.MaxInt
)

// delays are shorter than the example's own.
var delays = [maxAttempts - 1]time.Duration{time.Second, 2 * time.Second}

// order is a message and its progress.
type order struct {
	id, routingKey, body string
	// rejections is how often the consumer rejects the order, and why is the reason.
	rejections int
	why        string

	deliveries int
	// done is set when the order is processed or parked.
	done bool
}

var orders = []*order{
	newOrder(1001, "eu", `"customer":"Ana","items":[{"sku":"TEA-4","n":2}],"total":"17.80"`, 0, ""),
	newOrder(1002, "us", `"customer":"Bo","items":[{"sku":"CUP-1","n":6}],"total":"41.40"`, 2, "stock service unavailable"),
	newOrder(1003, "eu", `"customer":"Chi","items":[{"sku":"???","n":1}],"total":"9.90"`, always, "no such article"),
	newOrder(1004, "us", `"customer":"Dov","items":[{"sku":"TEA-9","n":1}],"total":"12.00"`, 0, ""),
	newOrder(1005, "eu", `"customer":"Eva","items":[{"sku":"POT-2","n":1}],"total":"58.00"`, 2, "payment timed out"),
	newOrder(1006, "us", `"customer":"Fay","items":[],"total":"0.00"`, always, "no items"),
}

func newOrder(number int, region, content string, rejections int, why string) *order {
	return &order{
		id: fmt.Sprintf("order-%d", number), routingKey: "order.created." + region, body: fmt.Sprintf(`{"order":%d,%s}`, number, content),
		rejections: rejections, why: why,
	}
}

// fixed is the order whose article becomes available in the end.
var fixed = orders[2]

// openShop declares the application's objects.
func (d *demo) openShop() (err error) {
	if d.channel, err = d.conn.Channel(); err != nil {
		return err
	}
	// After an error, the closed channel refuses the other calls.
	return cmp.Or(
		d.channel.Confirm(false),
		d.channel.Qos(1, 0, false),
		d.channel.ExchangeDeclare(exchange, amqp.ExchangeTopic, true, false, false, false, nil),
		d.declareQueue(workQueue, "order.created.*", exchange),
	)
}

// declareQueue declares a quorum queue of the application, and binds it.
func (d *demo) declareQueue(queue, bindingKey, exchange string) error {
	arguments := amqp.Table{amqp.QueueTypeArg: amqp.QueueTypeQuorum}
	if _, err := d.channel.QueueDeclare(queue, true, false, false, false, arguments); err != nil {
		return err
	}
	return d.channel.QueueBind(queue, bindingKey, exchange, false, nil)
}

// publish publishes a message, and waits until the broker has confirmed it.
func (d *demo) publish(ctx context.Context, exchange, key string, message amqp.Publishing) error {
	message.DeliveryMode = amqp.Persistent
	confirm, err := d.channel.PublishWithDeferredConfirmWithContext(ctx, exchange, key, true, false, message)
	if err != nil {
		return err
	}
	if acked, err := confirm.WaitContext(ctx); err != nil || !acked {
		return errors.Join(fmt.Errorf("the broker did not confirm %s", message.MessageId), err)
	}
	return nil
}

// next waits for a message of either consumer. The second one can be nil.
func next(ctx context.Context, one, other <-chan amqp.Delivery) (m amqp.Delivery, err error) {
	var open bool
	select {
	case m, open = <-one:
	case m, open = <-other:
	case <-ctx.Done():
		return m, context.Cause(ctx)
	}
	if !open {
		return m, errors.New("the broker closed the consumer's channel")
	}
	return m, nil
}

// showRetries publishes the orders, follows them until each is processed or parked, and then replays a parked one.
func (d *demo) showRetries(ctx context.Context) error {
	d.step("%d orders to the exchange %q; the consumer of %q acks, or nacks with requeue=false", len(orders), exchange, workQueue)
	// The failed queue's consumer acknowledges nothing. When its channel closes, the broker puts the messages back.
	operator, err := d.conn.Channel()
	if err != nil {
		return err
	}
	parked, err := operator.Consume(ordersPipeline.FailedQueue(), "operator", false, false, false, false, nil)
	if err != nil {
		return err
	}
	deliveries, err := d.channel.Consume(workQueue, "shop", false, false, false, false, nil)
	if err != nil {
		return err
	}
	d.began = time.Now()
	for _, o := range orders {
		message := amqp.Publishing{MessageId: o.id, ContentType: "application/json", Body: []byte(o.body)}
		if err := d.publish(ctx, exchange, o.routingKey, message); err != nil {
			return err
		}
	}
	if err := d.follow(ctx, deliveries, parked); err != nil {
		return err
	}
	_ = operator.Close()
	if err := d.replay(ctx); err != nil {
		return err
	}
	return d.follow(ctx, deliveries, nil)
}

// replay shows the parked orders, and replays one that the consumer now accepts.
func (d *demo) replay(ctx context.Context) error {
	d.step("what is in %s", ordersPipeline.FailedQueue())
	pipeline := string(ordersPipeline)
	id, err := stdout(d.sidecar(ctx, "failed", "list", pipeline, "--message-id", fixed.id, "--messages", "-o", "id", "--vhost", d.vhost))
	if err != nil {
		return err
	}
	for _, args := range [][]string{
		{"list", pipeline},
		{"list", pipeline, "--messages"},
		{"show", pipeline, strings.TrimSpace(id)},
		{"replay", pipeline, "--message-id", fixed.id, "--yes"},
	} {
		if args[0] == "replay" {
			d.step("the shop has the article of %s now: replay it", fixed.id)
		}
		command := append([]string{"failed"}, args...)
		d.line("$ rabbitmq-retry %s", strings.Join(command, " "))
		said, err := d.sidecar(ctx, append(command, "--vhost", d.vhost)...).CombinedOutput()
		for line := range strings.Lines(string(said)) {
			d.line("%s", strings.TrimRight(line, " \n"))
		}
		if err != nil {
			return fmt.Errorf("rabbitmq-retry failed %s: %w", args[0], err)
		}
	}
	fixed.rejections, fixed.deliveries, fixed.done = 0, 0, false
	return nil
}

// follow handles messages until every order is processed or parked.
func (d *demo) follow(ctx context.Context, deliveries, parked <-chan amqp.Delivery) error {
	for slices.ContainsFunc(orders, func(o *order) bool { return !o.done }) {
		m, err := next(ctx, deliveries, parked)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(orders, func(o *order) bool { return o.id == m.MessageId })
		switch {
		case i < 0:
			return fmt.Errorf("a message with the unknown id %q arrived", m.MessageId)
		case orders[i].done:
			return fmt.Errorf("%s arrived again after its end", m.MessageId)
		}
		if err := d.handle(orders[i], m); err != nil {
			return err
		}
	}
	return nil
}

// handle is the application's consumer, which only acks, or nacks without requeue. It leaves an order in the failed queue.
func (d *demo) handle(o *order, m amqp.Delivery) error {
	if m.ConsumerTag == "operator" {
		if err := o.checkParked(m); err != nil {
			return fmt.Errorf("%s in %s: %w", o.id, ordersPipeline.FailedQueue(), err)
		}
		o.done = true
		d.event(red, o.id, "", "parked in %s: %s", ordersPipeline.FailedQueue(), m.Headers[deadletter.HeaderDeadLetterReason])
		return nil
	}
	o.deliveries++
	if err := o.checkDelivery(m); err != nil {
		return fmt.Errorf("%s, delivery %d: %w", o.id, o.deliveries, err)
	}
	attempt := fmt.Sprintf("attempt %d of %d", o.deliveries, maxAttempts)
	switch {
	case o.deliveries > o.rejections:
		o.done = true
		d.event(green, o.id, attempt, "processed")
		return m.Ack(false)
	case o.deliveries == maxAttempts:
		d.event("", o.id, attempt, "rejected (%s), no attempt left", o.why)
	default:
		d.event("", o.id, attempt, "rejected (%s), waits %s in %s", o.why, delays[o.deliveries-1], retryQueue(o.deliveries))
	}
	return m.Nack(false, false)
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
func lastQueue(m amqp.Delivery) string {
	deaths, _ := m.Headers["x-death"].([]any)
	if len(deaths) == 0 {
		return ""
	}
	entry, _ := deaths[0].(amqp.Table)
	queue, _ := entry["queue"].(string)
	return queue
}
