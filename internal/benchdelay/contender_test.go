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

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/apply"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delaying"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
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
	*brokertest.Broker

	name string
	// hours is the queue where messages that wait for an hour are first.
	hours string
	// way is how to publish a message that waits.
	way func(delay time.Duration) (exchange, key string, headers amqp.Table)
	// mover is the process that takes messages from the queue inbox to the levels, if there is one.
	mover *mover
	// control looks at queues and purges them.
	control *amqp.Channel
}

func newContender(t *testing.T, name string) *contender {
	t.Helper()
	c := &contender{name: name, Broker: brokertest.NewNamed(t, "bench-"+strings.ReplaceAll(name, " ", "-"))}
	c.control = c.Channel(t)
	return c
}

// newDelayed makes a delayed exchange with a queue for what is due.
func newDelayed(t *testing.T, name string) *contender {
	t.Helper()
	c := newContender(t, name)
	c.hours = names.Level(delayed.WayOf(hour, unit).Entry)
	client, err := broker.New(broker.Config{Endpoint: c.Endpoint, Username: c.Username, Password: c.Password})
	if err != nil {
		t.Fatal(err)
	}
	wanted := apply.Change{Vhost: c.Vhost, Wanted: delayed.Expand(c.spec())}
	if err := apply.New(client, apply.DefaultTimes()).Create(t.Context(), wanted); err != nil {
		t.Fatal(err)
	}
	c.declareQueue(t, workQueue, nil)
	c.bind(t, workQueue, "#", names.DeliverExchange())
	return c
}

func (c *contender) spec() delayed.Exchange {
	delay := func(d time.Duration) pipeline.Delay {
		return pipeline.Delay{Wait: d, Spelling: pipeline.FormatDelay(d)}
	}
	return delayed.Exchange{
		Name: string(names), Vhost: c.Vhost, Type: "topic", MaxDelay: delay(longest), Precision: delay(unit),
		PolicyPriority: delayed.DefaultPolicyPriority,
	}
}

func newSidecar(t *testing.T, binary string) *contender {
	t.Helper()
	c := newDelayed(t, sidecar)
	c.mover = c.newSidecarProcess(t, binary)
	c.way = func(delay time.Duration) (exchange, key string, headers amqp.Table) {
		return names.Exchange(), address, amqp.Table{delaying.HeaderDelay: delay.Milliseconds()}
	}
	return c
}

// newPipe moves messages from one quorum queue to another.
func newPipe(t *testing.T) *contender {
	t.Helper()
	c := newContender(t, bare)
	c.hours = "out"
	c.declareQueue(t, "in", nil)
	c.declareQueue(t, c.hours, nil)
	c.mover = c.newPipeProcess(t, "in", c.hours)
	c.way = func(delay time.Duration) (exchange, key string, headers amqp.Table) {
		return "", "in", amqp.Table{delaying.HeaderDelay: delay.Milliseconds()}
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
	c := newContender(t, topic)
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
		if err := c.control.ExchangeBind(below, skipped+"0.#", name, false, nil); err != nil {
			t.Fatal(err)
		}
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
	c := newContender(t, fixed)
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
	if _, err := c.control.QueueDeclare(name, true, false, false, false, all); err != nil {
		t.Fatal(err)
	}
}

func (c *contender) declareExchange(t *testing.T, name string) {
	t.Helper()
	if err := c.control.ExchangeDeclare(name, "topic", true, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
}

func (c *contender) bind(t *testing.T, queue, key, exchange string) {
	t.Helper()
	if err := c.control.QueueBind(queue, key, exchange, false, nil); err != nil {
		t.Fatal(err)
	}
}

func (c *contender) look(t *testing.T, queue string) amqp.Queue {
	t.Helper()
	q, err := c.control.QueueDeclarePassive(queue, true, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	return q
}
