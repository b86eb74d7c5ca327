//go:build bench

package bench

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delaying"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/terraformtest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/worker"
)

// Two of those who delay messages.
const (
	throughSidecar = "sidecar"
	straight       = "straight to the levels"
)

const (
	delayedNames = delayed.Names("bench")
	unit         = 100 * time.Millisecond
	longest      = 720 * time.Hour
	hour         = time.Hour
	// dueKey is the routing key of all messages. When they are due, it leads to the work queue.
	dueKey = "order.created"
	// deliver is the exchange for what is due, of those who have no delayed exchange.
	deliver = "deliver"
)

func delayMessages() int { return cmp.Or(*messages, 20_000) }

// delayer delays messages, in a vhost of its own.
type delayer struct {
	vhost

	// hours is the queue where messages that wait for an hour are first.
	hours string
	// to is where to publish a message that waits.
	to func(wait time.Duration) route
	// inbox is where a process takes messages from, if there is one, and move starts it.
	inbox string
	move  func() (stop func() usage)
}

func newDelayer(t *testing.T, name, hours string, objects topology.Topology) *delayer {
	t.Helper()
	d := &delayer{vhost: newVhost(t, name), hours: hours}
	d.create(objects)
	return d
}

// newDelayed makes a delayed exchange with a queue for what is due.
func newDelayed(t *testing.T, name string) (*delayer, delayed.Exchange) {
	t.Helper()
	d := newDelayer(t, name, delayedNames.Level(delayed.WayOf(hour, unit).Entry), topology.New())
	spec := delayed.Exchange{
		Name: string(delayedNames), Vhost: d.Vhost, Type: "topic", MaxDelay: spelled(longest), Precision: spelled(unit),
		PolicyPriority: delayed.DefaultPolicyPriority,
	}
	objects := spec.Expand()
	objects.Queues[workQueue] = topology.Queue{Type: topology.Quorum}
	objects.Bindings = append(objects.Bindings, topology.Binding{Source: delayedNames.DeliverExchange(), Destination: workQueue, RoutingKey: "#"})
	d.create(objects)
	return d, spec
}

func newThroughSidecar(t *testing.T) *delayer {
	t.Helper()
	d, spec := newDelayed(t, throughSidecar)
	binary := terraformtest.BuildSidecar(t)
	d.inbox = delayedNames.Inbox()
	d.move = func() func() usage {
		return d.startSidecar(binary, "delayed_exchanges", spec.Worker(), worker.DefaultPrefetch)
	}
	d.to = func(wait time.Duration) route {
		return route{delayedNames.Exchange(), dueKey, amqp.Table{delaying.HeaderDelay: wait.Milliseconds()}}
	}
	return d
}

// newPipe moves messages from one quorum queue to another.
func newPipe(t *testing.T) *delayer {
	t.Helper()
	objects := topology.New()
	objects.Queues["in"] = topology.Queue{Type: topology.Quorum}
	objects.Queues["out"] = topology.Queue{Type: topology.Quorum}
	d := newDelayer(t, barePipe, "out", objects)
	d.inbox = "in"
	d.move = func() func() usage {
		return startPart(t, &pipe{URI: d.VhostURI(), Queue: d.inbox, Key: d.hours, Messages: delayMessages(), Window: worker.DefaultPrefetch})
	}
	d.to = func(wait time.Duration) route {
		return route{"", d.inbox, amqp.Table{delaying.HeaderDelay: wait.Milliseconds()}}
	}
	return d
}

// newStraight has publishers who know the levels.
func newStraight(t *testing.T) *delayer {
	t.Helper()
	d, _ := newDelayed(t, straight)
	d.to = func(wait time.Duration) route {
		if wait <= 0 {
			return route{delayedNames.DeliverExchange(), dueKey, nil}
		}
		way := delayed.WayOf(wait, unit)
		headers := amqp.Table{}
		for bit, waits := range way.Bits {
			headers[bit] = waits
		}
		return route{delayedNames.Level(way.Entry), dueKey, headers}
	}
	return d
}

// newTopic has NServiceBus' levels: the routing key begins with a bit per level, and publishers know where to begin.
func newTopic(t *testing.T) *delayer {
	t.Helper()
	level := func(bit int) string { return fmt.Sprintf("level.%02d", bit) }
	bits, below := delayed.LevelCount(longest, unit), deliver
	objects := topology.New()
	objects.Exchanges[deliver] = topology.Exchange{Type: "topic"}
	objects.Queues[workQueue] = topology.Queue{Type: topology.Quorum}
	objects.Bindings = []topology.Binding{{Source: deliver, Destination: workQueue, RoutingKey: "#." + dueKey}}
	for bit := range bits {
		name, skipped := level(bit), strings.Repeat("*.", bits-1-bit)
		objects.Exchanges[name] = topology.Exchange{Type: "topic"}
		objects.Queues[name] = waiting(unit<<bit, below)
		objects.Bindings = append(objects.Bindings,
			topology.Binding{Source: name, Destination: name, RoutingKey: skipped + "1.#"},
			topology.Binding{Source: name, Destination: below, ToExchange: true, RoutingKey: skipped + "0.#"})
		below = name
	}
	d := newDelayer(t, "topic levels", level(delayed.WayOf(hour, unit).Entry.Bit), objects)
	d.to = func(wait time.Duration) route {
		digits := strings.Split(fmt.Sprintf("%0*b", bits, delayed.Units(wait, unit)), "")
		return route{level(bits - 1 - slices.Index(digits, "1")), strings.Join(digits, ".") + "." + dueKey, nil}
	}
	return d
}

// newFixed has a queue for a delay of an hour, and none for others.
func newFixed(t *testing.T) *delayer {
	t.Helper()
	objects := topology.New()
	objects.Exchanges[deliver] = topology.Exchange{Type: "topic"}
	objects.Queues["wait.1h"] = waiting(hour, deliver)
	d := newDelayer(t, "a queue per delay", "wait.1h", objects)
	d.to = func(time.Duration) route { return route{key: d.hours} }
	return d
}

// waiting is a queue where messages wait before they go to an exchange.
func waiting(wait time.Duration, exchange string) topology.Queue {
	return topology.Queue{Type: topology.Quorum, Arguments: topology.Arguments{
		"x-message-ttl": wait.Milliseconds(), "x-dead-letter-exchange": exchange,
		"x-dead-letter-strategy": topology.AtLeastOnce, "x-overflow": "reject-publish",
	}}
}

// Headers with the time of publishing, and the delay.
const (
	headerSent  = "bench-sent"
	headerDelay = "bench-delay"
)

// publish publishes so many messages at a rate, or as fast as it can if that is 0, with the delay that each has when its turn comes.
func (d *delayer) publish(n, perSecond int, delayOf func() time.Duration) error {
	return d.fill(n, *size, perSecond, func(int) route {
		wait := delayOf()
		r, headers := d.to(wait), amqp.Table{headerSent: time.Now().UnixNano(), headerDelay: wait.Milliseconds()}
		maps.Copy(headers, r.headers)
		return route{r.exchange, r.key, headers}
	})
}
