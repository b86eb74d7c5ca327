package worker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/sidecartest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/worker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/workerconfig"
)

// start runs the command with the delayed exchange's configuration, and waits until it consumes.
func (e *testExchange) start(t *testing.T) *sidecartest.Process {
	t.Helper()
	return sidecartest.Start(t, []string{"RABBITMQ_URI=" + e.URI, "RABBITMQ_RETRY_CONFIG_JSON=" + string(exchangesOf(t, e.spec.Worker()))})
}

// A sidecar that is stopped again and again loses nothing, doubles nothing and delivers nothing early; one that is killed loses
// nothing and delivers nothing early.
func TestStopsAndKillsOfADelayedExchange(t *testing.T) {
	t.Parallel()
	for name, signal := range map[string]syscall.Signal{"stops": syscall.SIGTERM, "kills": syscall.SIGKILL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const batches, batch = 6, 500
			queues := []string{"eu.mail", "us.mail"}
			e := newExchange(t, "1h", "100ms", queues...)
			deliveries := e.collect(t, queues...)
			sent := map[string]due{}
			for i := range batches {
				p := e.start(t)
				maps.Copy(sent, e.publishMany(t, fmt.Sprint(i, "-"), batch, 5*time.Second, queues...))
				time.Sleep(rand.N(200 * time.Millisecond))
				if code := p.End(t, signal); signal == syscall.SIGTERM && code != 0 {
					t.Errorf("exit code %d:\n%s", code, p.Log)
				}
			}
			e.work(t)
			duplicates := awaitDue(t, sent, deliveries)
			t.Logf("RabbitMQ %s: %d of %d messages are doubled", e.Version, duplicates, len(sent))
			if signal == syscall.SIGTERM && duplicates > 0 {
				t.Error("want none")
			}
		})
	}
}

// A pipeline and delayed exchanges live in one vhost and one process, whatever their names have in common.
func TestPipelineAndDelayedExchangesInOneProcess(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "events", []string{"100ms"}, 3, "work")
	first := newExchangeIn(t, p.testVhost, "events", "1m", "100ms", "first")
	second := newExchangeIn(t, p.testVhost, "events.more", "1m", "70ms", "second")
	// What is due goes to the pipeline's work queue as well.
	require.NoError(t, p.Channel(t).QueueBind("work", "work", first.names.DeliverExchange(), false, nil))
	configured, err := json.Marshal(map[string]any{
		"pipelines": []pipeline.Worker{p.spec.Worker()}, "delayed_exchanges": []delayed.Worker{first.spec.Worker(), second.spec.Worker()},
	})
	require.NoError(t, err)
	r := p.workOn(t, p.URI, configured, func(context.Context, *worker.Options) {})
	r.Log.Await(t, "msg=consuming", 3)
	brokertest.Eventually(t, func() error {
		statuses := r.seen.Statuses()
		for _, s := range statuses {
			if !s.Ready {
				return fmt.Errorf("%+v", statuses)
			}
		}
		if len(statuses) != 3 || statuses[0].Kind != workerconfig.Pipeline || statuses[1].Kind != workerconfig.DelayedExchange || statuses[2].Name != "events.more" {
			return fmt.Errorf("%+v", statuses)
		}
		return nil
	})
	c := p.consume(t, "work", nil)
	first.publish(t, "work", 300, amqp.Publishing{MessageId: "a"})
	first.publish(t, "first", 300, amqp.Publishing{MessageId: "b"})
	second.publish(t, "second", 300, amqp.Publishing{MessageId: "c"})
	if d := p.await(t, "first"); d.MessageId != "b" {
		t.Errorf("%+v", d)
	}
	if d := p.await(t, "second"); d.MessageId != "c" {
		t.Errorf("%+v", d)
	}
	if d := p.awaitFailed(t, "exhausted"); d.MessageId != "a" || d.Headers["x-delay"] != int32(-300) {
		t.Errorf("%+v", d)
	}
	if n := len(c.deliveries()); n != 3 {
		t.Errorf("%d deliveries, want 3", n)
	}
}

// A reload starts what is new, and lets what left finish. Nothing else is touched.
func TestReloadAddsAndRemovesDelayedExchanges(t *testing.T) {
	t.Parallel()
	a := newExchange(t, "1m", "100ms", "a")
	b := newExchangeIn(t, a.testVhost, "other", "1m", "100ms", "b")
	parse := func(workers ...delayed.Worker) workerconfig.Config {
		config, err := workerconfig.Parse(exchangesOf(t, workers...))
		require.NoError(t, err)
		return config
	}
	configs := make(chan workerconfig.Config)
	r := a.workWith(t, func(_ context.Context, o *worker.Options) { o.Configs = configs })
	deliveries := a.collect(t, "a", "b")
	r.awaitReady(t, "")
	configs <- parse(a.spec.Worker(), b.spec.Worker())
	r.Log.Await(t, "msg=consuming", 2)
	sent := a.publishMany(t, "a-", 300, 2*time.Second, "a")
	maps.Copy(sent, b.publishMany(t, "b-", 300, 2*time.Second, "b"))
	configs <- parse(b.spec.Worker())
	r.Log.Await(t, "msg=stopped", 1)
	maps.Copy(sent, a.publishMany(t, "later-", 100, time.Second, "a"))
	configs <- parse(a.spec.Worker(), b.spec.Worker())
	if n := awaitDue(t, sent, deliveries); n > 0 {
		t.Errorf("%d messages came twice", n)
	}
	if n := r.Log.Count("msg=consuming"); n != 3 {
		t.Errorf("%d sessions, want 3:\n%s", n, r.Log)
	}
}

// A check says what is missing of each.
func TestCheckOfADelayedExchange(t *testing.T) {
	t.Parallel()
	e := newExchange(t, "1m", "1s")
	permissions := delayed.WorkerPermissions(e.names)
	user, password := e.User(t, "", permissions.Configure, permissions.Write, permissions.Read)
	check := func() (string, error) {
		var out strings.Builder
		config, err := workerconfig.Parse(exchangesOf(t, e.spec.Worker()))
		require.NoError(t, err)
		err = worker.Check(t.Context(), worker.Options{Config: config, Brokers: brokersAt(t, withUser(t, e.URI, user, password))}, &out)
		return out.String(), err
	}
	if out, err := check(); err != nil || !strings.Contains(out, `delayed exchange "events" in vhost "`+e.Vhost+`": ok: events.delay.inbox has 0 messages`) {
		t.Errorf("%s, %v", out, err)
	}
	for _, exchange := range []string{"events.delay.1s.5", "events.delay.unrouted", "events.deliver"} {
		e.set(t, http.MethodDelete, e.Path("exchanges", exchange), nil)
		if out, err := check(); err == nil || !strings.Contains(out, "error: look for the queue ") || !strings.Contains(out, "no exchange '"+exchange+"'") {
			t.Errorf("without %s: %s, %v", exchange, out, err)
		}
	}
	e.set(t, http.MethodDelete, e.Path("queues", e.names.Inbox()), nil)
	if out, err := check(); err == nil || !strings.Contains(out, "error: look for the queue ") {
		t.Errorf("%s, %v", out, err)
	}
}
