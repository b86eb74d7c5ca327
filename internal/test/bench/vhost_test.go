//go:build bench

package bench

import (
	"bytes"
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

const (
	// names are those of the pipeline in a vhost.
	names     = pipeline.Names("bench")
	workQueue = "bench.work"
	// traceparent is what applications that trace add to each message.
	traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
)

// vhost is one for the measurements of a test.
type vhost struct {
	*brokertest.Broker

	t    *testing.T
	name string
	// control reads queues' counts, and purges queues.
	control *amqp.Channel
}

func newVhost(t *testing.T, name string) vhost {
	t.Helper()
	b := brokertest.NewNamed(t, "bench-"+strings.ReplaceAll(name, " ", "-"))
	return vhost{b, t, name, b.Channel(t)}
}

// create makes objects in the vhost.
func (v vhost) create(objects topology.Topology) {
	client, err := broker.New(broker.Config{Endpoint: v.Endpoint, Username: v.Username, Password: v.Password})
	require.NoError(v.t, err)
	require.NoError(v.t, apply.New(client, apply.DefaultTimes()).Create(v.t.Context(), apply.Change{Vhost: v.Vhost, Wanted: objects}))
}

// retryPipeline is a pipeline of the vhost with declared work queues. All of its queues have one type.
func (v vhost) retryPipeline(queueType string, wait time.Duration, workQueues ...string) pipeline.Pipeline {
	p := pipeline.Pipeline{
		Name: string(names), Vhost: v.Vhost, MaxAttempts: 5, QueueType: queueType, PolicyPriority: pipeline.DefaultPolicyPriority,
		Delays: []pipeline.Delay{spelled(wait)}, RetryOn: []string{pipeline.ReasonRejected},
		WorkQueues: map[string]pipeline.WorkQueue{},
	}
	for _, queue := range workQueues {
		p.WorkQueues[queue] = pipeline.WorkQueue{Type: queueType, Declare: true}
	}
	return p
}

func spelled(wait time.Duration) pipeline.Delay {
	return pipeline.Delay{Wait: wait, Spelling: pipeline.FormatDelay(wait)}
}

// look returns a queue's messages and consumers.
func (v vhost) look(queue string) amqp.Queue {
	q, err := v.control.QueueDeclarePassive(queue, true, false, false, false, nil)
	require.NoError(v.t, err)
	return q
}

func (v vhost) awaitMessages(queue string, n int) {
	v.await(queue, "messages", n, func(q amqp.Queue) int { return q.Messages })
}

func (v vhost) awaitConsumers(queue string, n int) {
	v.await(queue, "consumers", n, func(q amqp.Queue) int { return q.Consumers })
}

func (v vhost) await(queue, what string, n int, figure func(amqp.Queue) int) {
	brokertest.Eventually(v.t, func() error {
		if have := figure(v.look(queue)); have != n {
			return fmt.Errorf("%s has %d %s, want %d", queue, have, what, n)
		}
		return nil
	})
}

// purge empties a queue without consumers, and returns how many messages it had. Messages that were moved can come back,
// since a broker can drop the last acknowledgements of a connection that closes.
func (v vhost) purge(queue string) int {
	v.awaitConsumers(queue, 0)
	purged, err := v.control.QueuePurge(queue, false)
	require.NoError(v.t, err)
	return purged
}

// watch measures how many messages per second arrive in a queue, until this many have arrived. It ignores the first messages,
// since a process must start first.
func (v vhost) watch(queue string, n int) (perSecond float64) {
	var first time.Time
	var before int
	for deadline := time.Now().Add(brokertest.Patience); ; time.Sleep(10 * time.Millisecond) {
		have, now := v.look(queue).Messages, time.Now()
		switch {
		case have >= n:
			return float64(have-before) / now.Sub(first).Seconds()
		case first.IsZero() && have >= n/20:
			first, before = now, have
		case now.After(deadline):
			v.t.Fatalf("%d of %d messages arrived", have, n)
		}
	}
}

// startMover starts the process that takes messages from a queue, if there is one, and waits until it consumes.
func (v vhost) startMover(from string, move func() (stop func() usage)) (stop func() usage) {
	if move == nil {
		return func() usage { return usage{} }
	}
	stop = move()
	v.awaitConsumers(from, 1)
	return stop
}

// drain measures how fast a process moves n messages that are in a queue to another one.
func (v vhost) drain(n int, from, to string, move func() (stop func() usage)) result {
	v.awaitMessages(from, n)
	stop := move()
	perSecond := v.watch(to, n)
	r := result{usage: stop(), rate: perSecond, messages: n}
	v.clear(n, from, to)
	return r
}

// clear checks that all messages were moved, once, and removes them. There may be no queue where they were first.
func (v vhost) clear(n int, from, to string) {
	if from != "" {
		v.purge(from)
	}
	if purged := v.purge(to); purged != n {
		v.t.Errorf("%s: %d messages were moved to %s, want %d", v.name, purged, to, n)
	}
	v.awaitMessages(to, 0)
}

// route is where a message is published to, and with what headers.
type route struct {
	exchange, key string
	headers       amqp.Table
}

// unconfirmed is how many messages can wait for their confirms.
const unconfirmed = 1000

// fill publishes n messages with bodies of this size in bytes, and returns when the broker has confirmed them all. The rate
// is in messages per second, 0 for no limit. After a delay, fill catches up with the rate.
func (v vhost) fill(n, size, perSecond int, to func(i int) route) error {
	ch, hangUp, err := open(v.VhostURI())
	if err != nil {
		return err
	}
	defer hangUp()
	if err := ch.Confirm(false); err != nil {
		return err
	}
	confirms, returns := ch.NotifyPublish(make(chan amqp.Confirmation, unconfirmed)), ch.NotifyReturn(make(chan amqp.Return, unconfirmed))
	body, began := bytes.Repeat([]byte("x"), size), time.Now()
	for i := range n + unconfirmed {
		if i >= unconfirmed {
			if confirm, ok := <-confirms; !ok || !confirm.Ack || len(returns) > 0 {
				return errRefused
			}
		}
		if i >= n {
			continue
		}
		if perSecond > 0 {
			time.Sleep(time.Until(began.Add(time.Duration(i) * time.Second / time.Duration(perSecond))))
		}
		r := to(i)
		if err := ch.Publish(r.exchange, r.key, true, false, amqp.Publishing{
			MessageId: messageID(i), ContentType: "application/json", DeliveryMode: amqp.Persistent, Timestamp: time.Now(),
			Headers: r.headers, Body: body,
		}); err != nil {
			return err
		}
	}
	return nil
}

// messageID is that of a message of [vhost.fill].
func messageID(i int) string { return fmt.Sprintf("message-%d", i) }
