package main

import (
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
)

// checkDelivery checks an order that the consumer received.
func (s schedule) checkDelivery(p *progress, d amqp.Delivery) error {
	if limit := p.expected(s.maxAttempts); p.deliveries > limit {
		return fmt.Errorf("it should have been delivered %d times at most", limit)
	}
	if err := checkContent(p, d); err != nil {
		return err
	}
	failed := p.deliveries - 1
	if failed == 0 {
		return checkHeader(d, deadletter.HeaderCount, nil)
	}
	if queue := lastQueue(d); queue != s.retryQueue(failed) {
		return fmt.Errorf("it waited in %q instead of %q", queue, s.retryQueue(failed))
	}
	return checkHeader(d, deadletter.HeaderCount, int64(failed))
}

// checkParked checks an order in the failed queue.
func (s schedule) checkParked(p *progress, d amqp.Delivery) error {
	if !p.endsParked(s.maxAttempts) || p.deliveries != s.maxAttempts {
		return fmt.Errorf("it was parked after %d deliveries and %d rejections", p.deliveries, min(p.deliveries, p.rejections))
	}
	if err := checkContent(p, d); err != nil {
		return err
	}
	for header, want := range map[string]any{
		deadletter.HeaderDeadLetterReason: deadletter.ReasonExhausted,
		deadletter.HeaderCount:            int64(s.maxAttempts),
		deadletter.HeaderMaxAttempts:      int64(s.maxAttempts),
		deadletter.HeaderPipeline:         string(s.names),
		deadletter.HeaderQueue:            workQueue,
		deadletter.HeaderExchange:         exchange,
		deadletter.HeaderRoutingKey:       p.routingKey,
	} {
		if err := checkHeader(d, header, want); err != nil {
			return err
		}
	}
	return nil
}

// checkContent checks that retries did not change the content.
func checkContent(p *progress, d amqp.Delivery) error {
	switch {
	case string(d.Body) != p.body:
		return fmt.Errorf("its body has changed to %q", d.Body)
	case d.RoutingKey != p.routingKey:
		return fmt.Errorf("its routing key has changed to %q", d.RoutingKey)
	case d.ContentType != "application/json":
		return fmt.Errorf("its content type has changed to %q", d.ContentType)
	}
	return nil
}

func checkHeader(d amqp.Delivery, name string, want any) error {
	if got := d.Headers[name]; got != want {
		return fmt.Errorf("its header %s is %v instead of %v", name, got, want)
	}
	return nil
}

// lastQueue is the queue that the message was last dead-lettered from.
func lastQueue(d amqp.Delivery) string {
	deaths, _ := d.Headers["x-death"].([]any)
	if len(deaths) == 0 {
		return ""
	}
	entry, _ := deaths[0].(amqp.Table)
	queue, _ := entry["queue"].(string)
	return queue
}
