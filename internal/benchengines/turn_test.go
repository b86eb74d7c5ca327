//go:build bench

package benchengines

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
)

// turn publishes all messages at the rate, and returns once each has failed as often as it has to and was processed.
func (c *contender) turn(t *testing.T) result {
	t.Helper()
	stop := c.startSidecar(t)
	conn := c.Dial(t)
	ch, err := conn.Channel()
	if err == nil {
		err = ch.Qos(2*(*rate), 0, false)
	}
	require.NoError(t, err)
	deliveries, err := ch.Consume(workQueue, "", false, false, false, false, nil)
	require.NoError(t, err)
	node, began := c.brokerProcess(t), time.Now()
	before := node.used(t)
	published := make(chan error, 1)
	go func() { published <- c.publish() }()
	late := c.consume(t, deliveries)
	require.NoError(t, <-published)
	r := result{broker: node.used(t) - before, took: time.Since(began), late: late}
	r.sidecar = stop().CPU
	_ = conn.Close()
	c.expectEmpty(t)
	return r
}

func (c *contender) publish() error {
	body := bytes.Repeat([]byte("x"), *size)
	return c.Fill(*messages, *rate, func(ch *amqp.Channel, i int) error {
		return ch.Publish("", workQueue, true, false, amqp.Publishing{
			MessageId: fmt.Sprint(i), ContentType: "application/json", DeliveryMode: amqp.Persistent, Timestamp: time.Now(), Body: body,
		})
	})
}

// consume has each message fail, and processes it after that. It returns by how much more than the delay each came back late.
func (c *contender) consume(t *testing.T, deliveries <-chan amqp.Delivery) []time.Duration {
	t.Helper()
	failed, last := map[string]int{}, map[string]time.Time{}
	var late []time.Duration
	patience := time.NewTimer(2*time.Minute + time.Duration(*messages / *rate)*time.Second)
	defer patience.Stop()
	for processed := 0; processed < *messages; {
		var d amqp.Delivery
		select {
		case d = <-deliveries:
		case <-patience.C:
			t.Fatalf("%s: %d of %d messages were processed", c.name, processed, *messages)
		}
		if failed[d.MessageId] > 0 {
			late = append(late, time.Since(last[d.MessageId])-delay)
		}
		call := func() error { return d.Ack(false) }
		if failed[d.MessageId] < c.failures {
			failed[d.MessageId]++
			last[d.MessageId] = time.Now()
			call = func() error { return c.fail(d) }
		} else {
			processed++
		}
		require.NoError(t, call())
	}
	return late
}
