package worker_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

// series returns the pipeline's metrics by name and labels, as in messages_parked_total{reason=exhausted}. It leaves
// out the prefix, pipeline and vhost. Metrics of a work queue also count in the series without it.
func (r *running) series(t *testing.T) map[string]float64 {
	t.Helper()
	families, err := r.seen.Gatherer().Gather()
	require.NoError(t, err)
	values := map[string]float64{}
	for _, family := range families {
		name, ours := strings.CutPrefix(family.GetName(), "rabbitmq_retry_")
		for _, m := range family.GetMetric() {
			var labels, ofQueue []string
			for _, l := range m.GetLabel() {
				switch l.GetName() {
				case "kind", "name", "vhost":
				case "work_queue":
					ofQueue = []string{"work_queue=" + l.GetValue()}
				default:
					labels = append(labels, l.GetName()+"="+l.GetValue())
				}
			}
			if !ours {
				continue
			}
			value := m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			values[key(name, labels)] += value
			if len(ofQueue) > 0 {
				values[key(name, append(ofQueue, labels...))] = value
			}
		}
	}
	return values
}

func key(name string, labels []string) string {
	if len(labels) == 0 {
		return name
	}
	return name + "{" + strings.Join(labels, ",") + "}"
}

// awaitSeries waits until the metrics have these values.
func (r *running) awaitSeries(t *testing.T, want map[string]float64) {
	t.Helper()
	brokertest.Eventually(t, func() error {
		got := r.series(t)
		for _, name := range slices.Sorted(maps.Keys(want)) {
			if value, found := got[name]; !found || value != want[name] {
				return fmt.Errorf("%s is %v (found: %t), want %v; all of them: %v", name, value, found, want[name], got)
			}
		}
		return nil
	})
}

// awaitReady waits until the pipeline is ready, or, with a problem, until it is not ready for a reason with this text.
func (r *running) awaitReady(t *testing.T, problem string) {
	t.Helper()
	brokertest.Eventually(t, func() error {
		statuses := r.seen.Statuses()
		if len(statuses) != 1 || statuses[0].Ready != (problem == "") || !strings.Contains(statuses[0].Problem, problem) {
			return fmt.Errorf("%+v, want the problem %q", statuses, problem)
		}
		return nil
	})
}

func TestMetricsCountWhatBecomesOfMessages(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"0s", "100ms"}, 3, "orders.created")
	r := p.work(t)
	r.awaitReady(t, "")
	p.consume(t, "orders.created", nil)
	for range 5 {
		p.Publish(t, "", "orders.created", amqp.Publishing{})
	}
	p.Publish(t, "orders.dlx", "", amqp.Publishing{Headers: amqp.Table{"retry-queue": "orders.created", "retry": "never"}})
	p.Publish(t, "orders.dlx", "", amqp.Publishing{Headers: amqp.Table{"retry-queue": "orders.created", "large": strings.Repeat("x", 130_200)}})
	r.awaitSeries(t, map[string]float64{
		"messages_received_total":                                               5*3 + 2,
		"messages_redelivered_total":                                            0,
		"messages_retried_total{delay=0s}":                                      5,
		"messages_retried_total{delay=100ms}":                                   5,
		"messages_rescued_total":                                                0,
		"messages_parked_total{reason=exhausted}":                               5,
		"messages_parked_total{reason=unrecoverable}":                           1,
		"messages_parked_total{reason=malformed}":                               1, // left to the broker
		"messages_parked_total{reason=expired}":                                 0,
		"messages_parked_total{work_queue=orders.created,reason=exhausted}":     5,
		"messages_parked_total{work_queue=orders.created,reason=unrecoverable}": 1,
		"messages_retried_total{work_queue=orders.created,delay=100ms}":         5,
		"confirm_duration_seconds":                                              5*3 + 1,
		"messages_in_flight":                                                    0,
		"messages_in_backlog":                                                   0,
		"ready":                                                                 1,
		"connected":                                                             1,
		"consuming":                                                             1,
		"blocked":                                                               0,
		"session_restarts_total":                                                0,
		"config_generation":                                                     1,
		"config_last_reload_successful":                                         1,
	})
	r.stop(t)
	r.awaitReady(t, "the inbox is not consumed")
	r.awaitSeries(t, map[string]float64{"connected": 0, "consuming": 0})
	if _, found := r.series(t)["inbox_oldest_message_age_seconds"]; found {
		t.Error("a worker that does not consume knows how old the inbox is")
	}
}

func TestMetricsCountRescuesAndReturns(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"100ms"}, 3, "orders.created", "orders.gone")
	for _, queue := range []string{"orders.created", "orders.gone"} {
		if err := p.Channel(t).QueueUnbind(queue, "return:"+queue, "orders.return", amqp.Table{pipeline.DeclaredArgument: "orders"}); err != nil {
			t.Fatal(err)
		}
	}
	p.set(t, http.MethodDelete, p.Path("queues", "orders.gone"), nil)
	r := p.work(t)
	for _, queue := range []string{"orders.created", "orders.gone"} {
		p.Publish(t, "orders.dlx", "", amqp.Publishing{Headers: amqp.Table{"retry-queue": queue}})
	}
	r.awaitSeries(t, map[string]float64{
		"messages_received_total":                           4,
		"messages_retried_total{delay=100ms}":               2,
		"messages_rescued_total":                            1,
		"publishes_returned_total{exchange=amq.default}":    1,
		"publishes_returned_total{exchange=orders.retry}":   0,
		"messages_parked_total{reason=unknown_queue}":       1,
		"messages_rescued_total{work_queue=orders.created}": 1,
		// The queue is in the configuration, although the broker no longer has it.
		"messages_parked_total{work_queue=orders.gone,reason=unknown_queue}": 1,
	})
}

// A message that the broker refuses is kept, and the pipeline is not ready. Afterwards, it is ready again.
func TestBacklogIsSeen(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"100ms"}, 2, "orders.created")
	p.fillRetryQueue(t)
	p.Publish(t, "", "orders.created", amqp.Publishing{MessageId: "m"})
	p.rejectOne(t)
	time.Sleep(2 * time.Second) // so that the message has an age
	r := p.work(t)
	r.awaitReady(t, "1 message(s) kept unacknowledged")
	kept := r.series(t)
	if age := kept["inbox_oldest_message_age_seconds"]; age < 1 || age > 60 || kept["messages_in_backlog"] != 1 || kept["messages_in_flight"] != 1 {
		t.Errorf("%v", kept)
	}
	if nacks := kept["publishes_nacked_total{exchange=orders.retry}"]; nacks < 1 || kept["confirm_duration_seconds"] < nacks {
		t.Errorf("%v", kept)
	}

	r.Log.Await(t, "messages take another delay", 1) // and there is none
	for p.await(t, "orders.retry.100ms").MessageId != "m" {
	}
	r.awaitReady(t, "")
	healed := r.series(t)
	if healed["messages_in_backlog"] != 0 || healed["messages_retried_total{delay=100ms}"] != 1 || healed["session_restarts_total"] != 0 {
		t.Errorf("%v", healed)
	}
}

// Messages that wait for a missing exchange count as backlog, too. They count as returned when the exchange is back
// without its binding.
func TestMissingExchangeIsSeen(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"100ms"}, 2, "orders.created")
	p.set(t, http.MethodDelete, p.Path("exchanges", "orders.failed"), nil)
	p.fillInbox(t, 20, toPark)
	r := p.work(t)
	r.awaitReady(t, "20 message(s) kept unacknowledged")
	p.set(t, http.MethodPut, p.Path("exchanges", "orders.failed"), map[string]any{"type": "fanout", "durable": true})
	brokertest.Eventually(t, func() error {
		now := r.series(t)
		if now["messages_in_backlog"] != 20 || now["publishes_returned_total{exchange=orders.failed}"] == 0 {
			return fmt.Errorf("%v", now)
		}
		return nil
	})
	p.Create(t, p.spec.Expand())
	r.awaitReady(t, "")
	r.awaitSeries(t, map[string]float64{"messages_parked_total{reason=exhausted}": 20, "messages_in_backlog": 0})
}

func TestReadinessFollowsTheInbox(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"100ms"}, 2, "orders.created")
	r := p.work(t)
	r.awaitReady(t, "")
	p.set(t, http.MethodDelete, p.Path("queues", "orders.inbox"), nil)
	r.awaitReady(t, "no queue 'orders.inbox'")
	r.awaitSeries(t, map[string]float64{"consuming": 0})
	p.Create(t, p.spec.Expand())
	r.awaitReady(t, "")
	require.GreaterOrEqual(t, r.series(t)["session_restarts_total"], 1.0)
	p.Publish(t, "orders.dlx", "", toPark(0))
	p.awaitFailed(t, "exhausted")
}

func TestReadinessFollowsTheConnection(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"100ms"}, 2, "orders.created")
	user, password := p.User(t, "", "^$", ".*", ".*")
	r := p.workAs(t, withUser(t, p.URI, user, password), p.spec.Worker())
	r.awaitReady(t, "")
	permissions := p.Path("permissions", user)
	p.set(t, http.MethodDelete, permissions, nil)
	p.closeConnection(t, "rabbitmq-retry orders consume")
	r.awaitReady(t, "connect to amqp://")
	for _, status := range r.seen.Statuses() {
		if status.State != "disconnected" || strings.Contains(status.Problem, password) {
			t.Errorf("%+v", status)
		}
	}
	r.awaitSeries(t, map[string]float64{"connected": 0, "consuming": 0})
	p.set(t, http.MethodPut, permissions, map[string]string{"configure": "^$", "write": ".*", "read": ".*"})
	r.awaitReady(t, "")
}

// A loop that hangs in a write cannot report it.
func TestHangingSessionIsSeen(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"100ms"}, 2, "orders.created")
	var hanging atomic.Bool
	readAgain := make(chan struct{})
	r := p.workAs(t, p.throughProxy(t, &proxy{rewrite: func([]byte) {
		if hanging.Load() {
			<-readAgain
		}
	}}), p.spec.Worker())
	r.awaitReady(t, "")
	a := p.collect(t, "orders.created")
	p.endRamp(t, a)
	hanging.Store(true)
	body := make([]byte, 1<<20)
	p.fillInbox(t, 40, func(int) amqp.Publishing {
		return amqp.Publishing{Body: body, Headers: amqp.Table{"retry-queue": "orders.created"}}
	})
	r.awaitReady(t, "the session has been silent for 1")
	hanging.Store(false)
	close(readAgain)
	r.awaitReady(t, "")
	a.awaitAtLeast(t, 40+rampMessages)
}

// No label comes from a message, since messages could otherwise make the metrics grow indefinitely.
func TestMessagesMakeNoLabels(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"100ms"}, 2, "orders.created")
	r := p.work(t)
	r.awaitReady(t, "")
	before := slices.Sorted(maps.Keys(r.series(t)))
	const messages = 50
	p.fillInbox(t, messages, func(i int) amqp.Publishing {
		hostile := fmt.Sprintf("hostile %d\n\"}", i)
		return amqp.Publishing{MessageId: hostile, Headers: amqp.Table{
			"retry-queue": hostile, "retry-reason": hostile, "dead-letter-reason": hostile, "retry-pipeline": hostile,
			"retry-after-ms": int64(i), "x-death": []any{amqp.Table{
				"queue": hostile, "reason": hostile, "exchange": hostile, "time": time.Unix(int64(i), 0),
			}},
		}}
	})
	brokertest.Eventually(t, func() error {
		if n := r.series(t)["messages_received_total"]; n < messages {
			return fmt.Errorf("%v messages received", n)
		}
		return nil
	})
	if after := slices.Sorted(maps.Keys(r.series(t))); !slices.Equal(before, after) {
		t.Errorf("before:\n%v\nafter:\n%v", before, after)
	}
}
