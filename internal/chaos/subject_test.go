//go:build chaos

package chaos

import (
	"context"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// subject is the resource that must lose nothing, with what its applications do.
type subject interface {
	// hcl is its configuration, with the sidecar's as the output `worker`.
	hcl() string
	// next has hcl be another configuration, and describes it.
	next() string
	// vital are patterns of the queues whose leaders die.
	vital() []string
	// operations are what else people do with it.
	operations(c *chaos) []fault

	// message is what a producer publishes under an id, the count of its messages.
	message(id string, count int) (exchange, key string, m amqp.Publishing)
	// handle gets what comes to a work queue, collect what comes to the queue where messages are parked. They have nobody to
	// tell about an error: the connection is lost then, and the message comes again.
	handle(queue string, d amqp.Delivery)
	collect(d amqp.Delivery)
	parking() string
}

// startConsumers returns what ends them.
func (c *chaos) startConsumers(t *testing.T) (stop func()) {
	t.Helper()
	return c.start(t, c.consumers, c.consume, c.consume)
}

// startProducers returns what ends them, after the last confirm.
func (c *chaos) startProducers(t *testing.T, perSecond int) (stop func()) {
	t.Helper()
	return c.start(t, c.producers, c.produce("a", perSecond/2), c.produce("b", perSecond/2))
}

// startCollecting takes what is parked, and returns what ends that.
func (c *chaos) startCollecting(t *testing.T) (stop func()) {
	t.Helper()
	return c.start(t, c.consumers, c.collectParked)
}

func (c *chaos) start(t *testing.T, p *proxy, clients ...func(context.Context, *amqp.Connection) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for _, client := range clients {
		running.Go(func() { c.always(ctx, p, client) })
	}
	return func() { cancel(); running.Wait() }
}

// drain waits until every message has ended, or the broker has held nothing for so long that nothing
// can come any more.
func (c *chaos) drain(t *testing.T, quiet, atMost time.Duration) {
	t.Helper()
	defer c.startCollecting(t)()
	began := time.Now()
	emptySince := began
	for {
		held, err := c.holding(t.Context())
		if err != nil || len(held) > 0 {
			emptySince = time.Now()
		}
		empty := time.Since(emptySince)
		if _, left := c.ledger.sent(); left == 0 && empty > time.Second || empty > quiet {
			t.Logf("drained in %s", time.Since(began).Round(time.Second))
			return
		}
		if time.Since(began) > atMost {
			t.Errorf("after %s there are still messages: %v %v", atMost, held, err)
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
}
