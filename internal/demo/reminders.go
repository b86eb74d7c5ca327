package main

import (
	"fmt"
	"slices"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delaying"
)

// reminder is a message that is due later.
type reminder struct {
	id    string
	delay time.Duration
}

// showReminders publishes reminders and waits for each. They must arrive in the order of their due times, and never early.
func showReminders(channel *amqp.Channel) {
	due := consume(channel, "reminders.due")
	reminders := []reminder{
		{"reminder-1", 4 * time.Second},
		{"reminder-2", time.Second},
		{"reminder-3", 2 * time.Second},
	}
	began = time.Now()
	for _, r := range reminders {
		headers := amqp.Table{delaying.HeaderDelay: r.delay.Milliseconds()}
		publish(channel, "reminders", "reminder.mail", amqp.Publishing{MessageId: r.id, Headers: headers})
		event("", r.id, "", "published, due in %s", r.delay)
	}
	slices.SortFunc(reminders, func(a, b reminder) int { return int(a.delay - b.delay) })
	for _, r := range reminders {
		m := must(next(due, nil))
		late := time.Since(began) - r.delay
		check(r.checkArrival(m, late))
		event(green, r.id, "", "arrived, %d ms after its time", late.Milliseconds())
		check(m.Ack(false))
	}
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
