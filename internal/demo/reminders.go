package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delaying"
)

const (
	// remindersExchange is the delayed exchange in examples/delayed-exchange.
	remindersExchange = delayed.Names("reminders")
	// reminderQueue receives the reminders that are due.
	reminderQueue = "reminders.due"
)

// reminder is a message that is due later.
type reminder struct {
	id    string
	delay time.Duration
}

// reminders are published in this order.
var reminders = []reminder{
	{"reminder-1", 4 * time.Second},
	{"reminder-2", time.Second},
	{"reminder-3", 2 * time.Second},
}

// showReminders publishes the reminders and waits for each. They must arrive in the order of their due times, and never
// early.
func (d *demo) showReminders(ctx context.Context) error {
	n := remindersExchange
	d.step("%d reminders to the exchange %q with the header %s; the queue %q is bound to %q",
		len(reminders), n.Exchange(), delaying.HeaderDelay, reminderQueue, n.DeliverExchange())
	if err := d.declareQueue(reminderQueue, "reminder.#", n.DeliverExchange()); err != nil {
		return err
	}
	due, err := d.channel.Consume(reminderQueue, "reminders", false, false, false, false, nil)
	if err != nil {
		return err
	}
	d.began = time.Now()
	for _, r := range reminders {
		message := amqp.Publishing{MessageId: r.id, Headers: amqp.Table{delaying.HeaderDelay: r.delay.Milliseconds()}}
		if err := d.publish(ctx, n.Exchange(), "reminder.mail", message); err != nil {
			return err
		}
		d.event("", r.id, "", "published, due in %s", r.delay)
	}
	for _, r := range slices.SortedFunc(slices.Values(reminders), func(a, b reminder) int { return int(a.delay - b.delay) }) {
		m, err := next(ctx, due, nil)
		if err != nil {
			return err
		}
		late := time.Since(d.began) - r.delay
		if err := r.checkArrival(m, late); err != nil {
			return err
		}
		d.event(green, r.id, "", "arrived, %d ms after its time", late.Milliseconds())
		if err := m.Ack(false); err != nil {
			return err
		}
	}
	return nil
}

// checkArrival checks a message that arrived so late after the reminder's due time.
func (r reminder) checkArrival(m amqp.Delivery, late time.Duration) error {
	if m.MessageId != r.id {
		return fmt.Errorf("%s arrived instead of %s", m.MessageId, r.id)
	}
	if late < 0 {
		return fmt.Errorf("%s arrived %s early", r.id, -late)
	}
	return nil
}
