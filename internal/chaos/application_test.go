//go:build chaos

package chaos

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
)

// rejectedShare of the attempts fails.
const rejectedShare = 0.3

// workQueues are the application's own.
var workQueues = []string{"created", "paid", "shipped"}

// application publishes, consumes and rejects, and calls the management API.
type application struct {
	*brokertest.Broker
	seed   uint64
	ledger *ledger
	nodes  []*node

	producers, consumers, management *proxy
}

func newApplication(t *testing.T, seed uint64) *application {
	t.Helper()
	a := &application{seed: seed, ledger: newLedger(), nodes: cluster(t)}
	var amqp, management []string
	for _, n := range a.nodes {
		amqp, management = append(amqp, n.amqp), append(management, n.management)
	}
	a.producers, a.consumers = newProxy(t, "producers", amqp...), newProxy(t, "consumers", amqp...)
	a.management = newProxy(t, "management", management...)
	a.Broker = brokertest.New(t)
	a.Endpoint = "http://" + a.management.address
	for _, queue := range workQueues {
		a.Request(t, http.MethodPut, a.Path("queues", queue), map[string]any{"durable": true, "arguments": map[string]any{"x-queue-type": "quorum"}})
	}
	return a
}

// uri is the way to the cluster through a proxy, without a vhost.
func (a *application) uri(p *proxy) string {
	return strings.Replace(a.URI, a.nodes[0].amqp, p.address, 1)
}

// rejects decides about an attempt in the same way each time that it is delivered.
func (a *application) rejects(id string, count int64) bool {
	hash := fnv.New64a()
	_, _ = fmt.Fprintf(hash, "%s %d", id, count)
	return rand.New(rand.NewPCG(a.seed, hash.Sum64())).Float64() < rejectedShare
}

// startConsumers returns what ends them.
func (a *application) startConsumers(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for range 2 {
		running.Go(func() { a.always(ctx, a.consumers, a.consume) })
	}
	return func() { cancel(); running.Wait() }
}

// startProducers returns what ends them, after the last confirm.
func (a *application) startProducers(t *testing.T, perSecond int) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for _, name := range []string{"a", "b"} {
		running.Go(func() { a.always(ctx, a.producers, a.produce(name, perSecond/2)) })
	}
	return func() { cancel(); running.Wait() }
}

// startCollecting takes what is parked, and returns what ends that.
func (a *application) startCollecting(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var collecting sync.WaitGroup
	collecting.Go(func() { a.always(ctx, a.consumers, a.collectFailed) })
	return func() { cancel(); collecting.Wait() }
}

// drain waits until every message has ended, or the broker has held nothing for so long that nothing
// can come any more.
func (a *application) drain(t *testing.T, quiet, atMost time.Duration) {
	t.Helper()
	defer a.startCollecting(t)()
	began := time.Now()
	emptySince := began
	for {
		held, err := a.holding(t.Context())
		if err != nil || len(held) > 0 {
			emptySince = time.Now()
		}
		empty := time.Since(emptySince)
		if _, left := a.ledger.sent(); left == 0 && empty > time.Second || empty > quiet {
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
