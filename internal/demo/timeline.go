package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
)

// timeline follows the orders through the pipeline and prints each step.
type timeline struct {
	schedule
	out     *output
	started time.Time
	orders  map[string]*progress
	// open is how many orders are neither processed nor parked.
	open int
	// deliveries come from the work queue.
	deliveries <-chan amqp.Delivery
}

// progress is an order's progress.
type progress struct {
	order
	deliveries int
	done       bool
}

func newTimeline(s schedule, out *output) *timeline {
	t := &timeline{schedule: s, out: out, started: time.Now(), orders: map[string]*progress{}, open: len(orders)}
	for _, o := range orders {
		t.orders[o.id] = &progress{order: o}
	}
	return t
}

// follow publishes the orders and consumes both queues until every order is processed or parked.
func (t *timeline) follow(ctx context.Context, app *application, failed <-chan amqp.Delivery, s *sidecar) (err error) {
	if t.deliveries, err = app.consume(); err != nil {
		return err
	}
	if err := app.publish(ctx); err != nil {
		return err
	}
	for t.open > 0 {
		select {
		case d, ok := <-t.deliveries:
			err = t.orUnexpectedEnd(d, ok, t.process)
		case d, ok := <-failed:
			err = t.orUnexpectedEnd(d, ok, t.park)
		case <-s.exited:
			err = errors.Join(errors.New("the worker ended"), s.err)
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (t *timeline) orUnexpectedEnd(d amqp.Delivery, ok bool, handle func(*progress, amqp.Delivery) error) error {
	if !ok {
		return errors.New("the broker closed the consumer's channel")
	}
	p, known := t.orders[d.MessageId]
	if !known {
		return fmt.Errorf("a message with the id %q arrived, which nobody published", d.MessageId)
	}
	if p.done {
		return fmt.Errorf("%s arrived again after its end", p.id)
	}
	return handle(p, d)
}

// process is the application's consumer, which only acks, or nacks without requeue.
func (t *timeline) process(p *progress, d amqp.Delivery) error {
	p.deliveries++
	if err := t.checkDelivery(p, d); err != nil {
		return fmt.Errorf("%s, delivery %d: %w", p.id, p.deliveries, err)
	}
	if p.deliveries > p.rejections {
		t.end(p, t.attempt(p), "processed", green)
		return d.Ack(false)
	}
	what := "rejected (" + p.why + "), no attempt left"
	if p.deliveries < t.maxAttempts {
		what = fmt.Sprintf("rejected (%s), waits %s in %s", p.why, t.delay(p.deliveries), t.retryQueue(p.deliveries))
	}
	t.print(p, t.attempt(p), what, "")
	return d.Nack(false, false)
}

// park records an order in the failed queue, without acknowledging the message.
func (t *timeline) park(p *progress, d amqp.Delivery) error {
	if err := t.checkParked(p, d); err != nil {
		return fmt.Errorf("%s in %s: %w", p.id, t.names.FailedQueue(), err)
	}
	t.end(p, "", fmt.Sprintf("parked in %s: %s", t.names.FailedQueue(), d.Headers[deadletter.HeaderDeadLetterReason]), red)
	return nil
}

func (t *timeline) end(p *progress, attempt, what, colour string) {
	p.done = true
	t.open--
	t.print(p, attempt, what, colour)
}

func (t *timeline) attempt(p *progress) string {
	return fmt.Sprintf("attempt %d of %d", p.deliveries, t.maxAttempts)
}

func (t *timeline) print(p *progress, attempt, what, colour string) {
	t.out.event(time.Since(t.started), p.id, attempt, what, colour)
}
