//go:build load

package worker_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/worker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/workerconfig"
)

// stops is how often a worker is stopped.
const stops = 20

// A worker that is stopped again and again, whatever it is doing, loses nothing and doubles nothing.
func TestLoadStops(t *testing.T) {
	t.Parallel()
	interrupted(t, func(t *testing.T, p *testPipeline) {
		t.Helper()
		for range stops {
			w := p.start(t)
			time.Sleep(rand.N(time.Second))
			if code := w.End(t, syscall.SIGTERM); code != 0 {
				t.Errorf("exit code %d, want 0:\n%s", code, w.Log)
			}
		}
	})
}

// The same if the pipeline leaves the configuration, and is back before the worker has stopped, or after it.
func TestLoadRemovals(t *testing.T) {
	t.Parallel()
	interrupted(t, func(t *testing.T, p *testPipeline) {
		t.Helper()
		configs := make(chan workerconfig.Config)
		var with, without workerconfig.Config
		r := p.workWith(t, p.URI, p.spec.Worker(), func(_ context.Context, o *worker.Options) { with, o.Configs = o.Config, configs })
		for range stops {
			time.Sleep(rand.N(time.Second))
			configs <- without
			time.Sleep(rand.N(time.Second))
			configs <- with
		}
		r.stop(t)
		if strings.Contains(r.Log.String(), "level=ERROR") {
			t.Errorf("log:\n%s", r.Log)
		}
	})
}

// interrupted has a pipeline worked on under load, and expects each message to come once.
func interrupted(t *testing.T, work func(*testing.T, *testPipeline)) {
	t.Helper()
	for _, queueType := range []string{topology.Quorum, topology.Classic} {
		t.Run(queueType, func(t *testing.T) {
			t.Parallel()
			p := newPipelineOf(t, newSpec(queueType, []string{"100ms"}, 3, "orders.created"))
			a := p.collect(t, "orders.created")
			published := p.keepFilling(t)
			work(t, p)
			n := published()
			p.work(t)
			a.awaitAtLeast(t, n)
			t.Logf("RabbitMQ %s: %d of %d messages are doubled after %d stops", p.Version, a.copies(), n, stops)
			if a.copies() > 0 {
				t.Error("want none")
			}
		})
	}
}

// keepFilling publishes to the inbox, so that there is always something, until the function that it returns is called. That
// returns how many there were.
func (p *testPipeline) keepFilling(t *testing.T) (stop func() int) {
	t.Helper()
	const ahead = 5000
	ctx, cancel := context.WithCancel(t.Context())
	var publishing sync.WaitGroup
	n := 0
	publishing.Go(func() {
		ch := p.Channel(t)
		if err := ch.Confirm(false); err != nil {
			t.Error(err)
		}
		for ; ctx.Err() == nil; n++ {
			m := amqp.Publishing{
				MessageId: fmt.Sprint(n), DeliveryMode: amqp.Persistent, Headers: amqp.Table{"retry-queue": "orders.created"},
			}
			confirm, err := ch.PublishWithDeferredConfirm(p.names.DeadLetterExchange(), "key", true, false, m)
			if err != nil {
				t.Error(err)
				return
			}
			if n%100 != 99 {
				continue
			}
			confirm.Wait()
			for ctx.Err() == nil && p.ready(t, ch) > ahead {
				time.Sleep(10 * time.Millisecond)
			}
		}
	})
	return func() int {
		cancel()
		publishing.Wait()
		return n
	}
}

func (p *testPipeline) ready(t *testing.T, ch *amqp.Channel) int {
	t.Helper()
	inbox, err := ch.QueueDeclarePassive(p.names.Inbox(), true, false, false, false, nil)
	if err != nil {
		t.Error(err)
	}
	return inbox.Messages
}
