//go:build bench

package benchdelay

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delaying"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/benchtest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/worker"
)

// Those who delay messages, and the pipe, which does not.
const (
	bare     = "bare pipe"
	sidecar  = "sidecar"
	straight = "straight to the levels"
	topic    = "topic levels"
	fixed    = "a queue per delay"
)

const (
	names   = delayed.Names("bench")
	unit    = 100 * time.Millisecond
	longest = 720 * time.Hour
	hour    = time.Hour
	// workQueue gets what is due.
	workQueue = "work"
	// address is the routing key of all messages.
	address = "order.created"
)

// contender delays messages, in a vhost of its own.
type contender struct {
	benchtest.Broker

	name string
	// hours is the queue where messages that wait for an hour are first.
	hours string
	// way is how to publish a message that waits.
	way func(delay time.Duration) (exchange, key string, headers amqp.Table)
	// inbox is where a process takes messages from, if there is one, and move starts it.
	inbox string
	move  func(t *testing.T) (stop func() benchtest.Usage)
}

func newContender(t *testing.T, name string, expand func(vhost string) topology.Topology) *contender {
	t.Helper()
	return &contender{name: name, Broker: benchtest.New(t, name, expand)}
}

// empty is for contenders that declare their own objects.
func empty(string) topology.Topology { return topology.Topology{} }

// newDelayed makes a delayed exchange with a queue for what is due.
func newDelayed(t *testing.T, name string) *contender {
	t.Helper()
	c := newContender(t, name, func(vhost string) topology.Topology { return spec(vhost).Expand() })
	c.hours = names.Level(delayed.WayOf(hour, unit).Entry)
	c.declareQueue(t, workQueue, nil)
	c.bind(t, workQueue, "#", names.DeliverExchange())
	return c
}

func spec(vhost string) delayed.Exchange {
	delay := func(d time.Duration) pipeline.Delay {
		return pipeline.Delay{Wait: d, Spelling: pipeline.FormatDelay(d)}
	}
	return delayed.Exchange{
		Name: string(names), Vhost: vhost, Type: "topic", MaxDelay: delay(longest), Precision: delay(unit),
		PolicyPriority: delayed.DefaultPolicyPriority,
	}
}

func newSidecar(t *testing.T, binary string) *contender {
	t.Helper()
	c := newDelayed(t, sidecar)
	c.inbox = names.Inbox()
	c.move = func(t *testing.T) func() benchtest.Usage {
		t.Helper()
		config := map[string]any{"delayed_exchanges": []delayed.Worker{spec(c.Vhost).Worker()}}
		return c.StartSidecar(t, binary, config, worker.DefaultPrefetch)
	}
	c.way = func(delay time.Duration) (exchange, key string, headers amqp.Table) {
		return names.Exchange(), address, amqp.Table{delaying.HeaderDelay: delay.Milliseconds()}
	}
	return c
}

// newPipe moves messages from one quorum queue to another.
func newPipe(t *testing.T) *contender {
	t.Helper()
	c := newContender(t, bare, empty)
	c.inbox, c.hours = "in", "out"
	c.declareQueue(t, c.inbox, nil)
	c.declareQueue(t, c.hours, nil)
	c.move = func(t *testing.T) func() benchtest.Usage {
		t.Helper()
		pipe := &benchtest.Pipe{URI: c.VhostURI(), Queue: c.inbox, Key: c.hours, Messages: *messages, Window: worker.DefaultPrefetch}
		return benchtest.StartPart(t, pipe)
	}
	c.way = func(delay time.Duration) (exchange, key string, headers amqp.Table) {
		return "", c.inbox, amqp.Table{delaying.HeaderDelay: delay.Milliseconds()}
	}
	return c
}

// newStraight has publishers who know the levels.
func newStraight(t *testing.T) *contender {
	t.Helper()
	c := newDelayed(t, straight)
	c.way = func(delay time.Duration) (exchange, key string, headers amqp.Table) {
		if delay <= 0 {
			return names.DeliverExchange(), address, nil
		}
		way := delayed.WayOf(delay, unit)
		headers = amqp.Table{}
		for bit, waits := range way.Bits {
			headers[bit] = waits
		}
		return names.Level(way.Entry), address, headers
	}
	return c
}

// newTopic has NServiceBus' levels: the routing key begins with a bit per level, and publishers know where to begin.
func newTopic(t *testing.T) *contender {
	t.Helper()
	c := newContender(t, topic, empty)
	level := func(bit int) string { return fmt.Sprintf("level.%02d", bit) }
	bits := delayed.LevelCount(longest, unit)
	c.declareQueue(t, workQueue, nil)
	below := "deliver"
	c.declareExchange(t, below)
	c.bind(t, workQueue, "#."+address, below)
	for bit := range bits {
		name, skipped := level(bit), strings.Repeat("*.", bits-1-bit)
		c.declareExchange(t, name)
		c.declareQueue(t, name, waiting(unit<<bit, below))
		c.bind(t, name, skipped+"1.#", name)
		require.NoError(t, c.Control.ExchangeBind(below, skipped+"0.#", name, false, nil))
		below = name
	}
	c.hours = level(delayed.WayOf(hour, unit).Entry.Bit)
	c.way = func(delay time.Duration) (exchange, key string, headers amqp.Table) {
		digits := strings.Split(fmt.Sprintf("%0*b", bits, delayed.Units(delay, unit)), "")
		return level(bits - 1 - slices.Index(digits, "1")), strings.Join(digits, ".") + "." + address, nil
	}
	return c
}

// newFixed has a queue for a delay of an hour, and none for others.
func newFixed(t *testing.T) *contender {
	t.Helper()
	c := newContender(t, fixed, empty)
	c.hours = "wait.1h"
	c.declareExchange(t, "deliver")
	c.declareQueue(t, c.hours, waiting(hour, "deliver"))
	c.way = func(time.Duration) (exchange, key string, headers amqp.Table) { return "", c.hours, nil }
	return c
}

// waiting are the arguments of a queue where messages wait before they go to an exchange.
func waiting(wait time.Duration, exchange string) amqp.Table {
	return amqp.Table{
		"x-message-ttl": wait.Milliseconds(), "x-dead-letter-exchange": exchange,
		"x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish",
	}
}

func (c *contender) declareQueue(t *testing.T, name string, arguments amqp.Table) {
	t.Helper()
	all := amqp.Table{"x-queue-type": "quorum"}
	maps.Copy(all, arguments)
	if _, err := c.Control.QueueDeclare(name, true, false, false, false, all); err != nil {
		t.Fatal(err)
	}
}

func (c *contender) declareExchange(t *testing.T, name string) {
	t.Helper()
	require.NoError(t, c.Control.ExchangeDeclare(name, "topic", true, false, false, false, nil))
}

func (c *contender) bind(t *testing.T, queue, key, exchange string) {
	t.Helper()
	require.NoError(t, c.Control.QueueBind(queue, key, exchange, false, nil))
}

// startMover starts the process that takes messages from the inbox, if there is one, and waits until it consumes.
func (c *contender) startMover(t *testing.T) (stop func() benchtest.Usage) {
	t.Helper()
	if c.move == nil {
		return func() benchtest.Usage { return benchtest.Usage{} }
	}
	stop = c.move(t)
	c.AwaitConsumers(t, c.inbox, 1)
	return stop
}

// Headers with the time of publishing, and the delay.
const (
	headerSent  = "bench-sent"
	headerDelay = "bench-delay"
)

// publish publishes so many messages at a rate, or as fast as it can if that is 0, with the delay that each has when its turn comes.
func (c *contender) publish(n, perSecond int, delayOf func() time.Duration) error {
	return c.Fill(n, *size, perSecond, func(int) (exchange, key string, headers amqp.Table) {
		delay := delayOf()
		exchange, key, way := c.way(delay)
		headers = amqp.Table{headerSent: time.Now().UnixNano(), headerDelay: delay.Milliseconds()}
		maps.Copy(headers, way)
		return exchange, key, headers
	})
}
