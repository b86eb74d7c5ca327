//go:build bench

package benchtest

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/apply"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// unconfirmed is how many messages can wait for their confirms.
const unconfirmed = 1000

// Broker is a vhost for one measurement.
type Broker struct {
	*brokertest.Broker
	// Control reads queues' counts, and purges queues.
	Control *amqp.Channel
}

// New makes a vhost with these objects.
func New(t *testing.T, name string, expand func(vhost string) topology.Topology) Broker {
	t.Helper()
	b := Broker{Broker: brokertest.NewNamed(t, "bench-"+strings.ReplaceAll(name, " ", "-"))}
	client, err := broker.New(broker.Config{Endpoint: b.Endpoint, Username: b.Username, Password: b.Password})
	require.NoError(t, err)
	wanted := apply.Change{Vhost: b.Vhost, Wanted: expand(b.Vhost)}
	require.NoError(t, apply.New(client, apply.DefaultTimes()).Create(t.Context(), wanted))
	b.Control = b.Channel(t)
	return b
}

// Look returns a queue's messages and consumers.
func (b Broker) Look(t *testing.T, queue string) amqp.Queue {
	t.Helper()
	q, err := b.Control.QueueDeclarePassive(queue, true, false, false, false, nil)
	require.NoError(t, err)
	return q
}

// AwaitMessages waits until a queue has this many messages.
func (b Broker) AwaitMessages(t *testing.T, queue string, n int) {
	t.Helper()
	brokertest.Eventually(t, func() error {
		if have := b.Look(t, queue).Messages; have != n {
			return fmt.Errorf("%s has %d messages, want %d", queue, have, n)
		}
		return nil
	})
}

// AwaitConsumers waits until a queue has this many consumers.
func (b Broker) AwaitConsumers(t *testing.T, queue string, n int) {
	t.Helper()
	brokertest.Eventually(t, func() error {
		if have := b.Look(t, queue).Consumers; have != n {
			return fmt.Errorf("%s has %d consumers, want %d", queue, have, n)
		}
		return nil
	})
}

// Purge empties a queue without consumers, and returns how many messages it had. Messages that were moved can come back,
// since a broker can drop the last acknowledgements of a connection that closes.
func (b Broker) Purge(t *testing.T, queue string) int {
	t.Helper()
	b.AwaitConsumers(t, queue, 0)
	purged, err := b.Control.QueuePurge(queue, false)
	require.NoError(t, err)
	return purged
}

// Watch measures how many messages per second arrive in a queue, until this many have arrived. It ignores the first messages,
// since a process must start first.
func (b Broker) Watch(t *testing.T, queue string, n int) (rate float64) {
	t.Helper()
	var first time.Time
	var before int
	for deadline := time.Now().Add(brokertest.Patience); ; time.Sleep(10 * time.Millisecond) {
		have, now := b.Look(t, queue).Messages, time.Now()
		switch {
		case have >= n:
			return float64(have-before) / now.Sub(first).Seconds()
		case first.IsZero() && have >= n/20:
			first, before = now, have
		case now.After(deadline):
			t.Fatalf("%d of %d messages arrived", have, n)
		}
	}
}

// Pipeline is a pipeline with declared work queues. All of its queues have one type.
func Pipeline(queueType string, delay time.Duration, workQueues ...string) pipeline.Pipeline {
	p := pipeline.Pipeline{
		Name: "bench", MaxAttempts: 5, QueueType: queueType, PolicyPriority: pipeline.DefaultPolicyPriority,
		Delays: []pipeline.Delay{{Wait: delay, Spelling: pipeline.FormatDelay(delay)}}, RetryOn: []string{pipeline.ReasonRejected},
		WorkQueues: map[string]pipeline.WorkQueue{},
	}
	for _, queue := range workQueues {
		p.WorkQueues[queue] = pipeline.WorkQueue{Type: queueType, Declare: true}
	}
	return p
}

// Fill publishes n messages with bodies of this size in bytes, and returns when the broker has confirmed them all. The rate
// is in messages per second, 0 for no limit. After a delay, Fill catches up with the rate.
func (b Broker) Fill(n, size, perSecond int, address func(i int) (exchange, key string, headers amqp.Table)) error {
	conn, err := amqp.DialConfig(b.URI, amqp.Config{Vhost: b.Vhost})
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
	body, began := bytes.Repeat([]byte("x"), size), time.Now()
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
		exchange, key, headers := address(i)
		if err := ch.Publish(exchange, key, true, false, amqp.Publishing{
			MessageId: ID(i), ContentType: "application/json", DeliveryMode: amqp.Persistent, Timestamp: time.Now(), Headers: headers, Body: body,
		}); err != nil {
			return err
		}
	}
	return nil
}

// ID is the message-id of a message of [Broker.Fill].
func ID(i int) string { return fmt.Sprintf("message-%d", i) }
