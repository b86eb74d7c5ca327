//go:build bench

package benchdelay

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// unconfirmed is how many messages wait for their confirms at most.
const unconfirmed = 1000

// Headers by which a message says when it was published, and what for.
const (
	headerSent  = "bench-sent"
	headerDelay = "bench-delay"
)

// publish publishes so many messages at a rate, or as fast as it can if that is 0, with the delay that each has when its turn comes.
// It keeps to the rate also if it was late once. It returns when the broker has all of them.
func (c *contender) publish(n, perSecond int, delayOf func() time.Duration) error {
	conn, err := amqp.DialConfig(c.URI, amqp.Config{Vhost: c.Vhost})
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	ch, err := conn.Channel()
	if err == nil {
		err = ch.Confirm(false)
	}
	if err != nil {
		return err
	}
	confirms, returns := ch.NotifyPublish(make(chan amqp.Confirmation, unconfirmed)), ch.NotifyReturn(make(chan amqp.Return, unconfirmed))
	body, began := bytes.Repeat([]byte("x"), *size), time.Now()
	for i := range n + unconfirmed {
		if i >= unconfirmed {
			if confirm, ok := <-confirms; !ok || !confirm.Ack || len(returns) > 0 {
				return errors.New("the broker did not take a message")
			}
		}
		if i >= n {
			continue
		}
		if perSecond > 0 {
			time.Sleep(time.Until(began.Add(time.Duration(i) * time.Second / time.Duration(perSecond))))
		}
		if err := c.publishOne(ch, i, delayOf(), body); err != nil {
			return err
		}
	}
	return nil
}

func (c *contender) publishOne(ch *amqp.Channel, i int, delay time.Duration, body []byte) error {
	exchange, key, way := c.way(delay)
	headers := amqp.Table{headerSent: time.Now().UnixNano(), headerDelay: delay.Milliseconds()}
	maps.Copy(headers, way)
	return ch.Publish(exchange, key, true, false, amqp.Publishing{
		Headers: headers, MessageId: fmt.Sprint(i), ContentType: "application/json", DeliveryMode: amqp.Persistent, Timestamp: time.Now(),
		Body: body,
	})
}
