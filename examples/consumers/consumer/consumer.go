//go:build ignore

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"maps"
	"os"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

const (
	queue       = "orders.created"
	failed      = "orders.failed.route"
	maxAttempts = 4
)

func process(body []byte) error {
	var order map[string]any
	return json.Unmarshal(body, &order) // your work
}

// attempt is which one this delivery is, by what the broker has noted.
func attempt(d amqp.Delivery) int64 {
	deaths, _ := d.Headers["x-death"].([]any)
	for _, each := range deaths {
		death, _ := each.(amqp.Table)
		if count, ok := death["count"].(int64); ok && death["queue"] == queue && death["reason"] == "rejected" {
			return count + 1
		}
	}
	return 1
}

// parking publishes to the failed queue, on a channel with confirms.
type parking struct {
	channel *amqp.Channel
	returns chan amqp.Return
}

// park returns nil once the broker has the message.
func (p parking) park(d amqp.Delivery, attempts int64, cause error) error {
	headers := amqp.Table{}
	maps.Copy(headers, d.Headers)
	maps.Copy(headers, amqp.Table{
		"dead-letter-reason": "exhausted",
		"dead-letter-at":     time.Now().UnixMilli(),
		"dead-letter-error":  fmt.Sprintf("%.2000s", cause),
		"retry-queue":        queue,
		"retry-count":        attempts,
	})
	confirm, err := p.channel.PublishWithDeferredConfirm(failed, "failed:"+queue, true, false, amqp.Publishing{
		Headers: headers, DeliveryMode: amqp.Persistent, Body: d.Body,
		ContentType: d.ContentType, ContentEncoding: d.ContentEncoding, Priority: d.Priority,
		CorrelationId: d.CorrelationId, ReplyTo: d.ReplyTo, MessageId: d.MessageId,
		Timestamp: d.Timestamp, Type: d.Type, AppId: d.AppId,
	})
	if err != nil {
		return err
	}
	if !confirm.Wait() {
		return errors.New("the broker has refused the message")
	}
	select {
	case r := <-p.returns: // comes before the confirm
		return errors.New(r.ReplyText)
	default:
		return nil
	}
}

func (p parking) handle(d amqp.Delivery) error {
	if err := process(d.Body); err != nil {
		attempts := attempt(d)
		log.Printf("attempt %d of %d: %v", attempts, maxAttempts, err)
		if attempts < maxAttempts {
			return d.Nack(false, false)
		}
		if err := p.park(d, attempts, err); err != nil {
			return err // not acknowledged: it is delivered again
		}
	}
	return d.Ack(false)
}

func main() {
	connection, err := amqp.Dial(os.Getenv("RABBITMQ_URI"))
	if err != nil {
		log.Fatal(err)
	}
	channel, err := connection.Channel()
	if err != nil {
		log.Fatal(err)
	}
	if err := errors.Join(channel.Confirm(false), channel.Qos(50, 0, false)); err != nil {
		log.Fatal(err)
	}
	deliveries, err := channel.Consume(queue, "", false, false, false, false, nil)
	if err != nil {
		log.Fatal(err)
	}
	p := parking{channel, channel.NotifyReturn(make(chan amqp.Return, 1))}
	for d := range deliveries {
		if err := p.handle(d); err != nil {
			log.Fatal(err)
		}
	}
}
