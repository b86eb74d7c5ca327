package retrypipeline_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/worker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/workerconfig"
)

// end is how the retries of a message ended.
type end struct {
	Queue, Reason string
	Count, Max    int64
}

// This test goes from the configuration to the failed queue. Terraform creates the pipelines, the sidecar reads Terraform's
// output, and consumers reject all messages.
func TestAcc_LimitsEndToEnd(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	config := pipelineHCL(b, `delays = ["50ms", "100ms"]`, `max_age = "1h"`, `force_destroy = true`, `work_queues = {
    "orders.plain" = { declare = true }
    "orders.fewer" = { declare = true, max_attempts = 2 }
    "orders.more"  = { declare = true, max_attempts = 5 }
  }`) +
		pipelineLabelled(b, "bills", "bills", `delays = ["50ms", "2h"]`, `max_age = "1h"`, `force_destroy = true`, `work_queues = { "bills.due" = { declare = true } }`) +
		`output "worker" { value = jsonencode({ pipelines = [rabbitmq_retry_pipeline.orders.worker, rabbitmq_retry_pipeline.bills.worker] }) }`
	want := map[string]end{
		"orders.plain": {"orders.plain", "exhausted", 3, 3},
		"orders.fewer": {"orders.fewer", "exhausted", 2, 2},
		"orders.more":  {"orders.more", "exhausted", 5, 5},
		// The second wait would end too late.
		"bills.due": {"bills.due", "too_old", 2, 3},
	}
	acceptTerraform(t, b, resource.TestStep{Config: config, Check: func(state *terraform.State) error {
		defer serve(t, b, workerConfigOf(t, state.RootModule().Outputs["worker"].Value), nil)()
		for queue := range want {
			rejectAll(t, b, queue)
			b.Publish(t, "", queue, amqp.Publishing{DeliveryMode: amqp.Persistent})
		}
		got := map[string]end{}
		brokertest.Eventually(t, func() error {
			for _, failed := range []string{"orders.failed", "bills.failed"} {
				if d, ok := b.Get(t, failed); ok {
					queue := d.Headers["retry-queue"].(string)
					got[queue] = end{queue, d.Headers["dead-letter-reason"].(string), d.Headers["retry-count"].(int64), d.Headers["retry-max-attempts"].(int64)}
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				return fmt.Errorf("given up:\n%s", diff)
			}
			return nil
		})
		return nil
	}})
}

// workerConfigOf reads the worker's configuration from Terraform's output.
func workerConfigOf(t *testing.T, output any) workerconfig.Config {
	t.Helper()
	parsed, err := workerconfig.Parse([]byte(fmt.Sprint(output)))
	require.NoError(t, err, output)
	return parsed
}

// serve runs the sidecar's worker until stop is called.
func serve(t *testing.T, b *brokertest.Broker, config workerconfig.Config, configs <-chan workerconfig.Config) (stop func()) {
	t.Helper()
	uri, err := amqpconn.ParseURI(b.URI)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- worker.Run(ctx, worker.Options{
			Config: config, Configs: configs, Prefetch: worker.DefaultPrefetch, Logger: slog.New(slog.DiscardHandler),
			Brokers: func() ([]amqpconn.URI, error) { return []amqpconn.URI{uri}, nil },
		})
	}()
	return func() {
		cancel()
		require.NoError(t, <-done)
	}
}

// rejectAll is a consumer that rejects all messages.
func rejectAll(t *testing.T, b *brokertest.Broker, queue string) {
	t.Helper()
	_, deliveries := b.Consume(t, queue, 0)
	go func() {
		for d := range deliveries {
			_ = d.Reject(false)
		}
	}()
}

// A schedule changes while messages are retried. The worker gets its new configuration before the first apply, after it, or
// only after the apply that removes the retired queues. In each case, no message is lost, or parked because its delay is
// unknown.
func TestAcc_NoChangeOfTheScheduleParks(t *testing.T) {
	t.Parallel()
	acctest.Require(t)
	const wait = `timeouts = { update = "1m" }`
	for name, c := range map[string]struct {
		after []string
		more  string
		// workerAt is the number of applies after which the worker gets the new configuration.
		workerAt int
	}{
		"other delays, worker first":                   {[]string{"150ms", "300ms"}, "", 0},
		"other delays, worker second":                  {[]string{"150ms", "300ms"}, "", 1},
		"other delays, worker last":                    {[]string{"150ms", "300ms"}, "", 2},
		"other delays at once, worker first":           {[]string{"150ms", "300ms"}, wait, 0},
		"other delays at once, worker last":            {[]string{"150ms", "300ms"}, wait, 2},
		"one delay stays, removed at once":             {[]string{"200ms", "400ms"}, wait, 1},
		"one delay stays, worker last":                 {[]string{"200ms", "400ms"}, "", 2},
		"one delay stays, removed at once, worker 1st": {[]string{"200ms", "400ms"}, wait, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tf := newCLI(t)
			tf.DeclareQueue(t, "work", "quorum", nil)
			before := []string{"100ms", "200ms"}
			config := func(delays []string) string {
				list, _ := json.Marshal(delays)
				return pipelineHCL(tf.Broker, "delays = "+string(list), `work_queues = { work = {} }`, c.more) +
					"output \"worker\" {\n  value = jsonencode({ pipelines = [rabbitmq_retry_pipeline.orders.worker] })\n}\n"
			}
			tf.applied(t, config(before))
			old := tf.workerConfig(t)
			r := retrying(t, tf.Broker, old)
			next := old
			next.Pipelines = slices.Clone(old.Pipelines)
			next.Pipelines[0].Delays = c.after
			for applied := range 3 {
				if applied == c.workerAt {
					r.configs <- next
				}
				switch applied {
				case 0:
					tf.applied(t, config(c.after))
				case 1:
					// If a worker still used the old delays, their queues would never be seen empty.
					r.paused.Store(c.workerAt > applied)
					tf.removeRetired(t, before, c.after)
					r.paused.Store(false)
				}
				r.awaitMore(t, c.workerAt <= applied || applied == 0)
			}
			r.requireAllRetried(t)
		})
	}
}

// workerConfig is the worker's configuration from Terraform's output.
func (tf *cli) workerConfig(t *testing.T) workerconfig.Config {
	t.Helper()
	output, code := tf.run(t, "show", "-json")
	var shown struct {
		Values struct {
			Outputs struct {
				Worker struct{ Value string }
			}
		}
	}
	if err := json.Unmarshal([]byte(output), &shown); err != nil || code != 0 {
		t.Fatalf("%v\n%s", err, output)
	}
	return workerConfigOf(t, shown.Values.Outputs.Worker.Value)
}

// removeRetired applies until no queue of the old schedule is left.
func (tf *cli) removeRetired(t *testing.T, before, after []string) {
	t.Helper()
	brokertest.Eventually(t, func() error {
		for _, delay := range before {
			status, _ := tf.Request(t, http.MethodGet, tf.Path("queues", "orders.retry."+delay), nil)
			if status == http.StatusOK && !slices.Contains(after, delay) {
				tf.apply(t)
				return fmt.Errorf("the queue of %s is still there", delay)
			}
		}
		return nil
	})
}

// retries are messages that succeed at their third delivery.
type retries struct {
	*brokertest.Broker
	configs   chan workerconfig.Config
	mutex     sync.Mutex
	succeeded map[string]int
	paused    atomic.Bool
	stop      context.CancelFunc
	published chan int
}

// retrying runs a worker, a publisher of some messages per second, and a consumer.
func retrying(t *testing.T, b *brokertest.Broker, config workerconfig.Config) *retries {
	t.Helper()
	r := &retries{Broker: b, configs: make(chan workerconfig.Config), succeeded: map[string]int{}, published: make(chan int, 1)}
	t.Cleanup(serve(t, b, config, r.configs))
	deliveries, err := b.Channel(t).Consume("work", "", false, false, false, false, nil)
	require.NoError(t, err)
	go r.consume(deliveries)
	publishing, stop := context.WithCancel(t.Context())
	r.stop = stop
	ch := b.Channel(t)
	go func() {
		n := 0
		for tick := time.NewTicker(200 * time.Millisecond); publishing.Err() == nil; <-tick.C {
			if r.paused.Load() {
				continue
			}
			if err := ch.Publish("", "work", false, false, amqp.Publishing{DeliveryMode: amqp.Persistent, MessageId: fmt.Sprint(n)}); err != nil {
				t.Error(err)
			}
			n++
		}
		r.published <- n
	}()
	return r
}

func (r *retries) consume(deliveries <-chan amqp.Delivery) {
	for d := range deliveries {
		if count, _ := d.Headers["retry-count"].(int64); count < 2 {
			_ = d.Reject(false)
			continue
		}
		r.mutex.Lock()
		r.succeeded[d.MessageId]++
		r.mutex.Unlock()
		_ = d.Ack(false)
	}
}

// awaitMore waits until more messages have succeeded, or for a moment if they need not.
func (r *retries) awaitMore(t *testing.T, must bool) {
	t.Helper()
	before := r.count()
	if !must {
		time.Sleep(2 * time.Second)
		return
	}
	brokertest.Eventually(t, func() error {
		if r.count() < before+5 {
			return errors.New("no more messages succeed")
		}
		return nil
	})
}

func (r *retries) count() int {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return len(r.succeeded)
}

// requireAllRetried stops the publisher, and checks that each message succeeds once and none is parked.
func (r *retries) requireAllRetried(t *testing.T) {
	t.Helper()
	r.stop()
	published := <-r.published
	brokertest.Eventually(t, func() error {
		if m, parked := r.Get(t, "orders.failed"); parked {
			t.Fatalf("parked: %v", m.Headers)
		}
		if r.count() != published {
			return fmt.Errorf("%d of %d messages have succeeded", r.count(), published)
		}
		return nil
	})
	var doubled []string
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for id, times := range r.succeeded {
		if times > 1 {
			doubled = append(doubled, id)
		}
	}
	if len(doubled) > 0 {
		t.Errorf("doubled: %s", strings.Join(doubled, ", "))
	}
	t.Logf("%d messages succeeded", published)
}
