package retrypipeline_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
)

// counted is after how many deliveries brokers from 4.0 on dead-letter a message of a quorum queue, by default.
const counted = 21

// beingRetried applies a pipeline, and does what consumers do while the sidecar runs, if the engine has one.
func beingRetried(t *testing.T, b *brokertest.Broker, engine string, do func(), lines ...string) {
	t.Helper()
	if engine != "worker" {
		behaving(t, b, do, append(lines, fmt.Sprintf("engine = %q", engine))...)
		return
	}
	config := pipelineHCL(b, append(lines, "force_destroy = true")...) +
		`output "worker" { value = jsonencode({ pipelines = [rabbitmq_retry_pipeline.orders.worker] }) }`
	acctest.RunTerraform(t, acctest.Quick(), resource.TestStep{Config: config, Check: func(state *terraform.State) error {
		defer serve(t, b, state.RootModule().Outputs["worker"].Value.(string))()
		do()
		return nil
	}})
}

// The sidecar waits as configured, and the last delay goes on for as long as there are attempts.
func TestAccEveryRelease_WorkerDelays(t *testing.T) {
	t.Parallel()
	for _, queueType := range []string{"quorum", "classic"} {
		t.Run(queueType, func(t *testing.T) {
			t.Parallel()
			b := brokertest.New(t)
			b.DeclareQueue(t, "work", queueType, nil)
			beingRetried(t, b, "worker", func() {
				b.Publish(t, "", "work", persistent("rejected"))
				waits := failing(t, b, 5, func(d amqp.Delivery) error { return d.Nack(false, false) })
				waited(t, waits, ms(400), ms(1500), ms(200), ms(200))
				if m := parked(t, b, "rejected"); m.Headers["dead-letter-reason"] != "exhausted" || m.Headers["retry-count"] != int64(5) {
					t.Errorf("parked with %v", m.Headers)
				}
			}, `delays = ["400ms", "1500ms", "200ms"]`, `max_attempts = 5`, fmt.Sprintf("queue_type = %q", queueType),
				fmt.Sprintf("work_queues = { work = { type = %q } }", queueType))
		})
	}
}

// What is returned to the queue is not retried: it comes back at once. From 4.0 on the queue counts that, and the message is
// parked; from 4.3 on it counts basic.reject alone.
func TestAccEveryRelease_RequeueIsNoRetry(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"worker", "consumer"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			b := brokertest.New(t)
			if engine == "consumer" && !b.VersionAtLeast("4.0") {
				t.Skip("not supported by this release")
			}
			b.DeclareQueue(t, "work", "quorum", nil)
			beingRetried(t, b, engine, func() {
				reject := func(d amqp.Delivery) error { return d.Reject(true) }
				nack := func(d amqp.Delivery) error { return d.Nack(false, true) }
				comesBack(t, b, "rejected", b.VersionAtLeast("4.0"), reject)
				comesBack(t, b, "nacked", b.VersionAtLeast("4.0") && !b.VersionAtLeast("4.3"), nack)
			}, `delays = ["1h"]`, `work_queues = { work = {} }`)
		})
	}
}

// comesBack has a message returned to the queue until that has counted enough, or twice as often if it does not count.
func comesBack(t *testing.T, b *brokertest.Broker, body string, counts bool, fail func(amqp.Delivery) error) {
	t.Helper()
	b.Publish(t, "", "work", persistent(body))
	if counts {
		failing(t, b, counted, fail)
		parked(t, b, body)
	} else {
		n := 0
		failing(t, b, 2*counted, func(d amqp.Delivery) error {
			if n++; n == 2*counted {
				return d.Ack(false)
			}
			return fail(d)
		})
	}
}

// A consumer that does not count gets the message again, however often: the queue's delivery limit does not end it.
func TestAccEveryRelease_ConsumersDoNotCount(t *testing.T) {
	t.Parallel()
	for call, fail := range map[string]func(amqp.Delivery) error{
		"nack":   func(d amqp.Delivery) error { return d.Nack(false, false) },
		"reject": func(d amqp.Delivery) error { return d.Reject(false) },
	} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			b := brokertest.New(t)
			if !b.VersionAtLeast("4.0") {
				t.Skip("not supported by this release")
			}
			b.DeclareQueue(t, "work", "quorum", nil)
			beingRetried(t, b, "consumer", func() {
				const times = counted + 5
				b.Publish(t, "", "work", persistent("never parked"))
				n := 0
				waits := failing(t, b, times, func(d amqp.Delivery) error {
					if n++; n == times {
						return d.Ack(false)
					}
					return fail(d)
				})
				waited(t, waits, slices.Repeat([]time.Duration{ms(100)}, times-1)...)
			}, `delays = ["100ms"]`, `max_attempts = 2`, `work_queues = { work = {} }`)
		})
	}
}
