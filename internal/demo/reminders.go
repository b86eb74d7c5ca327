package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delaying"
)

// reminderQueue receives the reminders that are due.
const reminderQueue = "reminders.due"

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
func showReminders(ctx context.Context, app *application, config workerConfig, w *sidecar, out *output) error {
	n := delayed.Names(config.DelayedExchanges[0].Name)
	out.step("%d reminders to the exchange %q with the header %s; the queue %q is bound to %q",
		len(reminders), n.Exchange(), delaying.HeaderDelay, reminderQueue, n.DeliverExchange())
	due, err := app.consumeReminders(n)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := app.publishReminders(ctx, n, began, out); err != nil {
		return err
	}
	for _, want := range slices.SortedFunc(slices.Values(reminders), func(a, b reminder) int { return int(a.delay - b.delay) }) {
		select {
		case d, ok := <-due:
			err = arrived(want, d, ok, time.Since(began), out)
		case <-w.exited:
			err = errors.Join(errors.New("the worker ended"), w.err)
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		if err != nil {
			return fmt.Errorf("%w%s", err, w.log())
		}
	}
	return nil
}

// arrived checks a reminder that arrived.
func arrived(want reminder, d amqp.Delivery, ok bool, after time.Duration, out *output) error {
	switch late := after - want.delay; {
	case !ok:
		return errors.New("the broker closed the consumer's channel")
	case d.MessageId != want.id:
		return fmt.Errorf("%s arrived instead of %s", d.MessageId, want.id)
	case late < 0:
		return fmt.Errorf("%s arrived %s early", want.id, -late)
	default:
		out.event(after, want.id, "", fmt.Sprintf("arrived, %d ms after its time", late.Milliseconds()), green)
		return d.Ack(false)
	}
}

func (a *application) consumeReminders(n delayed.Names) (<-chan amqp.Delivery, error) {
	arguments := amqp.Table{amqp.QueueTypeArg: amqp.QueueTypeQuorum}
	if _, err := a.consuming.QueueDeclare(reminderQueue, true, false, false, false, arguments); err != nil {
		return nil, err
	}
	if err := a.consuming.QueueBind(reminderQueue, "reminder.#", n.DeliverExchange(), false, nil); err != nil {
		return nil, err
	}
	return a.consuming.Consume(reminderQueue, "reminders", false, false, false, false, nil)
}

// publishReminders waits for the broker's confirms.
func (a *application) publishReminders(ctx context.Context, n delayed.Names, began time.Time, out *output) error {
	for _, r := range reminders {
		confirm, err := a.publishing.PublishWithDeferredConfirmWithContext(ctx, n.Exchange(), "reminder.mail", true, false, amqp.Publishing{
			MessageId:    r.id,
			DeliveryMode: amqp.Persistent,
			Headers:      amqp.Table{delaying.HeaderDelay: r.delay.Milliseconds()},
		})
		if err != nil {
			return err
		}
		if acked, err := confirm.WaitContext(ctx); err != nil || !acked {
			return errors.Join(errors.New("the broker did not confirm a reminder"), err)
		}
		out.event(time.Since(began), r.id, "", fmt.Sprintf("published, due in %s", r.delay), "")
	}
	return nil
}
