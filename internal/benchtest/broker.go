//go:build bench

package benchtest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/apply"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

const (
	// patience is how long messages may take to get from one place to another.
	patience = 2 * time.Minute
	// unconfirmed is how many messages wait for their confirms at most.
	unconfirmed = 1000
)

// Broker has a vhost for one measurement.
type Broker struct {
	*brokertest.Broker
	// Control looks at queues, and purges them.
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
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		have := b.Look(t, queue).Messages
		if have == n {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s has %d messages, want %d", queue, have, n)
		}
	}
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

// Purge empties a queue that no process consumes, and returns how many messages it had. It can have some again that were moved: a
// broker can drop the last acknowledgements of a connection that closes.
func (b Broker) Purge(t *testing.T, queue string) int {
	t.Helper()
	b.AwaitConsumers(t, queue, 0)
	purged, err := b.Control.QueuePurge(queue, false)
	require.NoError(t, err)
	return purged
}

// Watch measures how fast this many messages arrive in a queue, per second. The first ones do not count, since a process has to
// start.
func (b Broker) Watch(t *testing.T, queue string, n int) (rate float64) {
	t.Helper()
	var first time.Time
	var before int
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
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

// Fill publishes messages at a rate per second or, if that is 0, as fast as it can, and returns when the broker has confirmed them
// all. After a delay it catches up with the rate.
func (b Broker) Fill(n, perSecond int, publish func(ch *amqp.Channel, i int) error) error {
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
	began := time.Now()
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
		if err := publish(ch, i); err != nil {
			return err
		}
	}
	return nil
}
