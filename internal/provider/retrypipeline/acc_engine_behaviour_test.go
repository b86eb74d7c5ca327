package retrypipeline_test

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

// behaving applies a pipeline, and then acts as consumers.
func behaving(t *testing.T, b *brokertest.Broker, do func(), lines ...string) {
	t.Helper()
	config := pipelineHCL(b, append(lines, "force_destroy = true")...)
	acctest.Run(t, acctest.Quick(), resource.TestStep{Config: config, Check: func(*terraform.State) error { do(); return nil }})
}

// failing consumes the work queue, and makes a message fail this many times by this call. It returns the waits between
// deliveries.
func failing(t *testing.T, b *brokertest.Broker, times int, fail func(amqp.Delivery) error) []time.Duration {
	t.Helper()
	ch := b.Channel(t)
	defer func() { _ = ch.Close() }()
	deliveries, err := ch.Consume("work", "failing", false, false, false, false, nil)
	require.NoError(t, err)
	var waits []time.Duration
	last := time.Time{}
	for range times {
		d := brokertest.Receive(t, deliveries)
		if !last.IsZero() {
			waits = append(waits, time.Since(last))
		}
		last = time.Now()
		require.NoError(t, fail(d))
	}
	return waits
}

// failingBut is [failing] for a message that succeeds the last time.
func failingBut(t *testing.T, b *brokertest.Broker, times int, fail func(amqp.Delivery) error) []time.Duration {
	t.Helper()
	n := 0
	return failing(t, b, times, func(d amqp.Delivery) error {
		if n++; n == times {
			return d.Ack(false)
		}
		return fail(d)
	})
}

// workingWith is a vhost with the queue "work", on a release that has the engine.
func workingWith(t *testing.T, engine, queueType string) *brokertest.Broker {
	t.Helper()
	b := brokertest.New(t)
	b.Needs(t, brokertest.Engine(engine))
	b.DeclareQueue(t, "work", queueType, nil)
	return b
}

// waited fails if a wait was shorter than configured.
func waited(t *testing.T, got []time.Duration, want ...time.Duration) {
	t.Helper()
	const early = 50 * time.Millisecond
	if len(got) != len(want) {
		t.Fatalf("waited %v instead of %v", got, want)
	}
	for i := range want {
		if got[i] < want[i]-early {
			t.Errorf("waited %v instead of %v", got, want)
		}
	}
}

// parked waits for the message in the failed queue, and until the work queue is empty.
func parked(t *testing.T, b *brokertest.Broker, body string) amqp.Delivery {
	t.Helper()
	var found amqp.Delivery
	brokertest.Eventually(t, func() error {
		m, ok := b.Get(t, "orders.failed")
		if found = m; !ok || string(m.Body) != body {
			return fmt.Errorf("got %q, %t from the failed queue, want %q", m.Body, ok, body)
		}
		return nil
	})
	acctest.AwaitCount(t, b, "work", 0)
	return found
}

func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }

// The queue counts and delays rejected messages, up to the last delay, and then parks them.
func TestAcc_NativeDelays(t *testing.T) {
	t.Parallel()
	b := workingWith(t, "native", "quorum")
	behaving(t, b, func() {
		b.Publish(t, "", "work", persistent("returned"))
		waits := failing(t, b, 5, func(d amqp.Delivery) error { return d.Reject(true) })
		waited(t, waits, ms(400), ms(800), ms(1200), ms(1200))
		if m := parked(t, b, "returned"); m.Headers["x-last-death-reason"] != "delivery_limit" {
			t.Errorf("parked for %v", m.Headers["x-last-death-reason"])
		}
	}, `engine = "native"`, `delays = ["400ms", "800ms", "1200ms"]`, `max_attempts = 5`, `work_queues = { work = {} }`)
}

// A dead letter from another call is parked at once. A message that is returned without a count comes back indefinitely.
func TestAcc_NativeWrongCalls(t *testing.T) {
	t.Parallel()
	b := workingWith(t, "native", "quorum")
	behaving(t, b, func() {
		b.Publish(t, "", "work", persistent("dead at once"))
		failing(t, b, 1, func(d amqp.Delivery) error { return d.Nack(false, false) })
		parked(t, b, "dead at once")
		b.Publish(t, "", "work", persistent("never counted"))
		waits := failingBut(t, b, 8, func(d amqp.Delivery) error { return d.Nack(false, true) })
		waited(t, waits, slices.Repeat([]time.Duration{ms(200)}, 7)...)
	}, `engine = "native"`, `delays = ["200ms", "400ms"]`, `work_queues = { work = {} }`)
}

// Without a sidecar, a message with priority 0 keeps it. RabbitMQ 4.3 would treat a message without a priority as 4.
func TestAccEveryRelease_PriorityZeroWithoutSidecar(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"native", "consumer"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			b := workingWith(t, "native", "quorum") // earlier releases do not tell the two apart
			behaving(t, b, func() {
				for _, priority := range []int{0, 1} {
					b.Call(t, http.MethodPost, b.Path("exchanges", "amq.default")+"/publish", map[string]any{
						"properties": map[string]any{"delivery_mode": 2, "priority": priority}, "routing_key": "work",
						"payload": fmt.Sprint("priority ", priority), "payload_encoding": "string",
					}, nil)
				}
				rejectNext(t, b, "work", 2, engine == "native")
				awaitReady(t, b, "work", 2)
				takes(t, b, "work", "priority 1")
				takes(t, b, "work", "priority 0")
			}, fmt.Sprintf("engine = %q", engine), `delays = ["1s"]`, `work_queues = { work = {} }`)
		})
	}
}

// A consumer that crashes has used an attempt.
func TestAcc_NativeCrashes(t *testing.T) {
	t.Parallel()
	b := workingWith(t, "native", "quorum")
	behaving(t, b, func() {
		b.Publish(t, "", "work", persistent("deadly"))
		for range 3 {
			crash(t, b, 1)
		}
		parked(t, b, "deadly")
	}, `engine = "native"`, `delays = ["200ms"]`, `max_attempts = 3`, `work_queues = { work = {} }`)
}

// A message that a queue delays prevents the queue's deletion, although only the count of all messages includes it. A queue
// that leaves the pipeline keeps such a message, and delivers it.
func TestAcc_NativeDelaysAreContents(t *testing.T) {
	t.Parallel()
	b := workingWith(t, "native", "quorum")
	config := func(wait, queues string) string {
		return pipelineHCL(b, `engine = "native"`, fmt.Sprintf("delays = [%q]", wait), fmt.Sprintf("work_queues = { %s }", queues))
	}
	accept(t, b,
		resource.TestStep{Config: config("10s", `work = {}, own = { declare = true }`)},
		resource.TestStep{
			PreConfig: func() {
				for queue, body := range map[string]string{"own": "kept", "work": "released"} {
					b.Publish(t, "", queue, persistent(body))
					rejectNext(t, b, queue, 1, true)
				}
				if _, ok := b.Get(t, "own"); ok {
					t.Error("the message is not delayed")
				}
				acctest.AwaitCount(t, b, "own", 1)
			},
			Config: config("10s", `work = {}, own = { declare = true }`), Destroy: true,
			ExpectError: regexp.MustCompile(`(?s)would lose messages.*own: 1 message`),
		},
		resource.TestStep{Config: config("10s", `own = { declare = true }`)},
		resource.TestStep{
			PreConfig: func() { expectIn(t, b, "work", "released"); expectIn(t, b, "own", "kept") },
			Config:    config("10s", ""),
		},
	)
}

// attemptsBefore reads how often the queue rejected the message before, as a consumer does that counts attempts.
func attemptsBefore(d amqp.Delivery, queue string) int64 {
	deaths, _ := d.Headers["x-death"].([]any)
	for _, each := range deaths {
		if death, ok := each.(amqp.Table); ok && death["queue"] == queue && death["reason"] == "rejected" {
			count, _ := death["count"].(int64)
			return count
		}
	}
	return 0
}

// countingConsumer rejects a message until it was delivered this many times, and then parks it.
func countingConsumer(t *testing.T, b *brokertest.Broker, attempts int64) func(amqp.Delivery) error {
	t.Helper()
	return func(d amqp.Delivery) error {
		if attemptsBefore(d, "work")+1 < attempts {
			return d.Nack(false, false)
		}
		b.Publish(t, "orders.failed.route", "failed:work", amqp.Publishing{Headers: d.Headers, DeliveryMode: amqp.Persistent, Body: d.Body})
		return d.Ack(false)
	}
}

// Consumers count attempts from the broker's headers. Messages that die otherwise are parked without delaying others. So
// forty expired messages, and forty whose consumers crashed, delay no rejected message.
func TestAccEveryRelease_ConsumersCount(t *testing.T) {
	t.Parallel()
	const each = 40
	brokertest.QueueTypes(t, func(t *testing.T, queueType string) {
		b := workingWith(t, "consumer", queueType)
		settings := fmt.Sprintf("type = %q", queueType)
		if queueType == "quorum" {
			settings += `, policy_definition_json = jsonencode({ "delivery-limit" = 1 })`
		}
		behaving(t, b, func() {
			for range each {
				b.Publish(t, "", "work", amqp.Publishing{DeliveryMode: amqp.Persistent, Expiration: "1", Body: []byte("expired")})
			}
			acctest.AwaitCount(t, b, "orders.failed", each)
			for range each {
				b.Publish(t, "", "work", persistent("crashed"))
			}
			for range 2 {
				crash(t, b, each)
			}
			if queueType == "quorum" {
				acctest.AwaitCount(t, b, "orders.failed", 2*each)
			} else {
				failing(t, b, each, func(d amqp.Delivery) error { return d.Ack(false) })
			}
			_, err := b.Channel(t).QueuePurge("orders.failed", false)
			require.NoError(t, err)
			b.Publish(t, "", "work", persistent("rejected"))
			waits := failing(t, b, 3, countingConsumer(t, b, 3))
			waited(t, waits, ms(700), ms(700))
			m := parked(t, b, "rejected")
			if count := attemptsBefore(m, "work"); count != 2 {
				t.Errorf("parked after %d rejections: %v", count, m.Headers)
			}
		}, `engine = "consumer"`, `delays = ["700ms"]`, `max_attempts = 3`, fmt.Sprintf("queue_type = %q", queueType),
			fmt.Sprintf("work_queues = { work = { %s } }", settings))
	})
}

// A pipeline's one delay changes in place. Messages in the old queue come back from there, and the queue is deleted once it
// is empty.
func TestAccEveryRelease_ConsumersScheduleChanges(t *testing.T) {
	t.Parallel()
	b := workingWith(t, "consumer", "quorum")
	config := func(wait string) string {
		return pipelineHCL(b, `engine = "consumer"`, fmt.Sprintf("delays = [%q]", wait), `work_queues = { work = {} }`)
	}
	accept(t, b,
		resource.TestStep{Config: config("15s")},
		resource.TestStep{
			PreConfig: func() { reject(t, b, "work", "in the old queue"); acctest.AwaitCount(t, b, "orders.retry.15s", 1) },
			Config:    config("1s"),
		},
		resource.TestStep{
			PreConfig: func() {
				reject(t, b, "work", "in the new queue")
				expectIn(t, b, "work", "in the new queue", "in the old queue")
				acctest.AwaitCount(t, b, "orders.retry.15s", 0)
			},
			Config: config("1s"),
		},
		resource.TestStep{PreConfig: func() { there(t, b, false, "queues", "orders.retry.15s") }, Config: config("1s")},
	)
}

// crash takes this many messages and ends without an answer.
func crash(t *testing.T, b *brokertest.Broker, messages int) {
	t.Helper()
	ch := b.Channel(t)
	deliveries, err := ch.Consume("work", "crashing", false, false, false, false, nil)
	require.NoError(t, err)
	for range messages {
		brokertest.Receive(t, deliveries)
	}
	require.NoError(t, ch.Close())
}

// If the work queue of a waiting message is gone, the message is parked. It does not block others in the retry queue.
func TestAccEveryRelease_ConsumersQueueIsGone(t *testing.T) {
	t.Parallel()
	b := workingWith(t, "consumer", "quorum")
	b.DeclareQueue(t, "gone", "quorum", nil)
	behaving(t, b, func() {
		reject(t, b, "gone", "of a queue that is gone")
		awaitReady(t, b, "orders.retry.3s", 1) // or it would be deleted with the queue, as a pending dead letter
		deleted("queues", "gone")(t, b)
		b.Publish(t, "", "work", persistent("still there"))
		waits := failing(t, b, 2, func(d amqp.Delivery) error {
			if attemptsBefore(d, "work") > 0 {
				return d.Ack(false)
			}
			return d.Nack(false, false)
		})
		waited(t, waits, ms(3000))
		parked(t, b, "of a queue that is gone")
		b.DeclareQueue(t, "gone", "quorum", nil)
		bound("orders.return", "gone", "return:gone", nil)(t, b)
	}, `engine = "consumer"`, `delays = ["3s"]`, `work_queues = { work = {}, gone = {} }`)
}

// A queue moves between pipelines with different engines. Messages that wait in the old pipeline come back, and new failures
// go through the new pipeline.
func TestAccEveryRelease_WorkQueueMovesBetweenEngines(t *testing.T) {
	t.Parallel()
	engines := []string{"worker", "consumer", "native"}
	for _, from := range engines {
		for _, to := range engines {
			if from == to {
				continue
			}
			t.Run(from+" to "+to, func(t *testing.T) {
				t.Parallel()
				b := brokertest.New(t)
				b.Needs(t, brokertest.Engine(from), brokertest.Engine(to))
				b.DeclareQueue(t, "work", "quorum", nil)
				of := func(name, engine, settings string) string {
					return pipelineNamed(b, name, fmt.Sprintf("engine = %q", engine), "work_queues = { "+settings+" }")
				}
				old, takesOver := of("old", from, "work = {}"), of("new", to, `work = { take_over_from = "old" }`)
				acceptQuickly(t, b,
					resource.TestStep{Config: old},
					resource.TestStep{Config: old + takesOver},
					resource.TestStep{PreConfig: func() { expectRejectedBy(t, b, "new", to) }, Config: of("old", from, "") + takesOver},
					resource.TestStep{Config: of("old", from, "") + of("new", to, "work = {}")},
					resource.TestStep{PreConfig: func() { expectRejectedBy(t, b, "new", to) }, Config: of("new", to, "work = {}")},
				)
			})
		}
	}
}

// expectRejectedBy rejects a message, and expects it in the queue that this engine uses.
func expectRejectedBy(t *testing.T, b *brokertest.Broker, name, engine string) {
	t.Helper()
	body := "to " + name + " " + strings.ToLower(t.Name())
	reject(t, b, "work", body)
	expectIn(t, b, name+map[string]string{"worker": ".inbox", "native": ".failed", "consumer": ".retry.1s"}[engine], body)
}

// If a work queue has its own failed queue, the broker or its consumer parks messages there. Other work queues use the
// pipeline's failed queue.
func TestAccEveryRelease_FailedQueueWithoutWorker(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"native", "consumer"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			b := workingWith(t, engine, "quorum")
			fail := countingConsumer(t, b, 3)
			if engine == "native" {
				fail = func(d amqp.Delivery) error { return d.Reject(true) }
			}
			b.DeclareQueue(t, "work.theirs", "quorum", amqp.Table{"x-delivery-limit": 1000})
			config := func(settings string) string {
				return pipelineHCL(b, fmt.Sprintf("engine = %q", engine), `delays = ["200ms"]`, `max_attempts = 3`,
					fmt.Sprintf("work_queues = { work = { %s } }", settings))
			}
			failed := func(queue, body string) func() {
				return func() {
					b.Publish(t, "", "work", persistent(body))
					failing(t, b, 3, fail)
					expectIn(t, b, queue, body)
					acctest.AwaitCount(t, b, "work", 0)
				}
			}
			const own = `failed_queue = { name = "failures" }`
			acceptQuickly(t, b,
				resource.TestStep{Config: config(own)},
				resource.TestStep{PreConfig: failed("failures", "own"), Config: config("")},
				resource.TestStep{PreConfig: failed("orders.failed", "pipeline's"), Config: config(own)},
				resource.TestStep{
					PreConfig: func() {
						b.Publish(t, "", "failures", persistent("kept"))
						acctest.AwaitCount(t, b, "failures", 1)
					},
					Config: config(""), ExpectError: regexp.MustCompile(`(?s)would\s+lose\s+messages.*failures: 1 message`),
				},
				resource.TestStep{
					PreConfig: func() { expectIn(t, b, "failures", "kept"); acctest.AwaitCount(t, b, "failures", 0) },
					Config:    config(`failed_queue = { name = "work.theirs", declare = false }`),
				},
				isImported(b),
				resource.TestStep{PreConfig: failed("work.theirs", "theirs"), Config: config("")},
			)
		})
	}
}
