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
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/terraformtest"
)

// drainTime is how long what is left may take at the end: a dead letter whose target refused it is
// tried again after up to six minutes.
const drainTime = 7 * time.Minute

// applying are the words of an apply.
var applying = []string{"apply", "-auto-approve", "-input=false", "-no-color"}

// load is an application that publishes, consumes and rejects.
type load struct {
	*brokertest.Broker
	ledger    *ledger
	modes     modes
	consumers map[string]*amqp.Channel
}

func TestChangesUnderLoadLoseNothing(t *testing.T) {
	t.Parallel()
	l := newLoad(t, ownQueues...)
	tf := terraformtest.New(t, terraformtest.BuildProvider(t))
	worker := &sidecar{uri: l.URI, dir: t.TempDir()}

	tf.Write(t, "main.tf", steps[0].config(l.Vhost))
	tf.Run(t, applying...)
	worker.restart(t, tf.Run(t, "output", "-raw", "worker"))
	l.collectFailed(t, "load.failed")
	l.modes.set(steps[0].modes)
	l.follow(t)
	stop := l.startPublishing(t)
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
	l.drain(t)
	worker.stop(t)
	l.requireNothingLost(t)
}

// newLoad makes the application's own queues.
func newLoad(t *testing.T, queues ...string) *load {
	t.Helper()
	l := &load{Broker: brokertest.New(t), ledger: newLedger(), consumers: map[string]*amqp.Channel{}}
	for _, queue := range queues {
		l.Request(t, http.MethodPut, l.Path("queues", queue), map[string]any{"durable": true, "arguments": map[string]any{"x-queue-type": "quorum"}})
	}
	return l
}

// startPublishing publishes until stop is called, which waits for the last confirms.
func (l *load) startPublishing(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var publishing sync.WaitGroup
	ch := l.publishingChannel(t)
	publishing.Go(func() { l.publish(ctx, t, ch) })
	return func() {
		cancel()
		publishing.Wait()
	}
}

func (l *load) requireNothingLost(t *testing.T) {
	t.Helper()
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
	_, err := tf.Try(t.Context(), applying...)
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
	brokertest.Eventually(t, func() error {
		if have := l.ledger.sent(); have < want {
			return fmt.Errorf("%d of %d messages published", have, want)
		}
		return nil
	})
}

// drain waits until every message has ended and the broker says that nothing is left, or for as long as
// there may be something to wait for.
func (l *load) drain(t *testing.T) {
	t.Helper()
	deadline := time.Now().Add(drainTime)
	for len(l.ledger.missing()) > 0 || len(l.holding(t)) > 0 {
		if time.Now().After(deadline) {
			t.Errorf("after %s there are still messages: %v", drainTime, l.holding(t))
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// holding lists the queues with messages by name. Counts lag behind.
func (l *load) holding(t *testing.T) map[string]int {
	t.Helper()
	var all []struct {
		Name     string `json:"name"`
		Messages int    `json:"messages"`
	}
	_, answer := l.Request(t, http.MethodGet, l.Path("queues"), nil)
	require.NoError(t, json.Unmarshal(answer, &all))
	held := map[string]int{}
	for _, q := range all {
		if q.Messages > 0 {
			held[q.Name] = q.Messages
		}
	}
	return held
}
