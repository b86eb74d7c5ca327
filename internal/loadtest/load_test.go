//go:build load

package loadtest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/terraformtest"
)

// drainTime is how long what is left may take at the end: a dead letter whose target refused it is
// tried again after up to six minutes.
const drainTime = 7 * time.Minute

// load is an application that publishes, consumes and rejects.
type load struct {
	*brokertest.Broker
	ledger    *ledger
	modes     modes
	consumers map[string]*amqp.Channel
}

func TestChangesUnderLoadLoseNothing(t *testing.T) {
	t.Parallel()
	l := &load{Broker: brokertest.New(t), ledger: newLedger(), consumers: map[string]*amqp.Channel{}}
	for _, queue := range ownQueues {
		l.Request(t, http.MethodPut, l.Path("queues", queue), map[string]any{"durable": true, "arguments": map[string]any{"x-queue-type": "quorum"}})
	}
	tf := terraformtest.New(t, terraformtest.BuildProvider(t))
	worker := &sidecar{binary: terraformtest.BuildSidecar(t), uri: l.URI, dir: t.TempDir()}

	tf.Write(t, "main.tf", steps[0].config(l.Vhost))
	tf.Run(t, "apply", "-auto-approve", "-input=false", "-no-color")
	worker.restart(t, tf.Run(t, "output", "-raw", "worker"))
	l.collectFailed(t, "load.failed")
	l.modes.set(steps[0].modes)
	l.follow(t)
	ctx, stop := context.WithCancel(t.Context())
	var publishing sync.WaitGroup
	publishing.Go(func() { l.publish(ctx, t) })
	before := steps[0]
	for _, s := range steps[1:] {
		if testing.Short() && !s.short {
			continue
		}
		l.change(t, tf, worker, before, s)
		before = s
	}
	l.awaitMore(t, 5*perSecond)
	stop()
	publishing.Wait()
	l.drain(t)
	worker.stop(t)
	t.Log(l.ledger.balance("lost"))
	for i, id := range l.ledger.missing() {
		if i < 20 {
			t.Errorf("lost: %s", id)
		}
	}
}

// change applies a step amid the load, and has the sidecar follow some time later.
func (l *load) change(t *testing.T, tf *terraformtest.CLI, worker *sidecar, before, s step) {
	t.Helper()
	l.awaitMore(t, 2*perSecond)
	between := during(before.modes, s.modes)
	if modes, some := drained(before.modes, between); some {
		l.modes.set(modes)
		l.awaitMore(t, 6*perSecond) // longer than the longest delay
	}
	l.modes.set(between)
	l.follow(t)
	tf.Write(t, "main.tf", s.config(l.Vhost))
	began := time.Now()
	_, err := tf.Try(t.Context(), "apply", "-auto-approve", "-input=false", "-no-color")
	if err != nil {
		t.Fatalf("%s: %v\n%s", s.what, err, l.ledger)
	}
	t.Logf("%s: %.1f s; %s", s.what, time.Since(began).Seconds(), l.ledger)
	l.modes.set(s.modes)
	l.follow(t)
	l.awaitMore(t, 2*perSecond)
	worker.restart(t, tf.Run(t, "output", "-raw", "worker"))
}

// awaitMore waits until so many more messages are published.
func (l *load) awaitMore(t *testing.T, n int) {
	t.Helper()
	want := l.ledger.sent() + n
	brokertest.Eventually(t, time.Minute, func() error {
		if have := l.ledger.sent(); have < want {
			return fmt.Errorf("%d of %d messages published", have, want)
		}
		return nil
	})
}

// drain waits until every message has ended, or nothing is left to wait for.
func (l *load) drain(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(drainTime); time.Now().Before(deadline) && len(l.ledger.missing()) > 0; {
		time.Sleep(200 * time.Millisecond)
	}
	brokertest.Eventually(t, time.Minute, func() error { // counts lag behind
		for _, q := range l.queues(t) {
			if q.Messages > 0 {
				return fmt.Errorf("%s holds %d messages; %s", q.Name, q.Messages, l.ledger)
			}
		}
		return nil
	})
}

type queueState struct {
	Name     string `json:"name"`
	Messages int    `json:"messages"`
}

func (l *load) queues(t *testing.T) []queueState {
	t.Helper()
	var all []queueState
	_, answer := l.Request(t, http.MethodGet, l.Path("queues"), nil)
	if err := json.Unmarshal(answer, &all); err != nil {
		t.Fatal(err)
	}
	return all
}
