package main

import (
	"context"
	"errors"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"
)

// application is an existing application with an exchange, a queue, a publisher and a consumer. It has no code for retries.
type application struct {
	conn       *amqp.Connection
	publishing *amqp.Channel
	consuming  *amqp.Channel
}

func startApplication(b *broker) (a *application, err error) {
	a = &application{}
	if a.conn, err = b.dial("shop"); err != nil {
		return nil, fmt.Errorf("connect to RABBITMQ_URI: %w", err)
	}
	defer func() {
		if err != nil {
			a.close()
		}
	}()
	if a.publishing, err = a.conn.Channel(); err != nil {
		return nil, err
	}
	if a.consuming, err = a.conn.Channel(); err != nil {
		return nil, err
	}
	return a, a.declare()
}

func (a *application) close() { _ = a.conn.Close() }

func (a *application) declare() error {
	if err := a.publishing.ExchangeDeclare(exchange, amqp.ExchangeTopic, true, false, false, false, nil); err != nil {
		return err
	}
	arguments := amqp.Table{amqp.QueueTypeArg: amqp.QueueTypeQuorum}
	if _, err := a.publishing.QueueDeclare(workQueue, true, false, false, false, arguments); err != nil {
		return err
	}
	return a.publishing.QueueBind(workQueue, bindingKey, exchange, false, nil)
}

// publish publishes all orders and waits until the broker has confirmed them.
func (a *application) publish(ctx context.Context) error {
	if err := a.publishing.Confirm(false); err != nil {
		return err
	}
	var confirms []*amqp.DeferredConfirmation
	for _, o := range orders {
		confirm, err := a.publishing.PublishWithDeferredConfirmWithContext(ctx, exchange, o.routingKey, true, false, amqp.Publishing{
			MessageId:    o.id,
			ContentType:  "application/json",
			DeliveryMode: amqp.Persistent,
			Body:         []byte(o.body),
		})
		if err != nil {
			return err
		}
		confirms = append(confirms, confirm)
	}
	for _, confirm := range confirms {
		if acked, err := confirm.WaitContext(ctx); err != nil || !acked {
			return errors.Join(errors.New("the broker did not confirm an order"), err)
		}
	}
	return nil
}

func (a *application) consume() (<-chan amqp.Delivery, error) {
	if err := a.consuming.Qos(1, 0, false); err != nil {
		return nil, err
	}
	return a.consuming.Consume(workQueue, "shop", false, false, false, false, nil)
}
