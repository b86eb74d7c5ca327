package retrypipeline_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
)

const waits = `timeouts = { update = "5m", delete = "5m" }`

// Messages of a queue that nobody consumes do not drain: the plan says so, and the apply does not wait for them. It waits for
// those of a queue with a consumer and of retired queues, and logs their names.
func TestAccEveryRelease_OnlyWhatDrainsIsWaitedFor(t *testing.T) {
	t.Parallel()
	acctest.Require(t)
	const failing = `work_queues = { paid = { declare = true, failed_queue = { name = "team.failed" } } }`
	for name, test := range map[string]struct {
		queue, remedy, after string
		arguments            []string
	}{
		"work queue":   {"paid", "consume or move its messages", `work_queues = {}`, nil},
		"failed queue": {"team.failed", "rabbitmq-retry failed", `work_queues = { paid = { declare = true } }`, nil},
		"destroy":      {"paid", "consume or move its messages", failing, []string{"-destroy"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tf := newCLI(t)
			tf.configure(t, pipelineHCL(tf.Broker, `delays = ["5s"]`, failing, waits))
			tf.apply(t)
			tf.Publish(t, "", test.queue, persistent("held"))
			acctest.AwaitCount(t, tf.Broker, test.queue, 1)
			tf.configure(t, pipelineHCL(tf.Broker, `delays = ["6s"]`, test.after, waits))
			words := []string{"would lose messages", test.queue + ": 1 message", test.queue + ": " + test.remedy}
			printed := tf.plan(t, test.arguments...)
			for _, want := range words {
				if !strings.Contains(printed, want) {
					t.Errorf("the plan does not say %q:\n%s", want, printed)
				}
			}
			// An apply that waits goes through once the queue is empty.
			emptied := time.AfterFunc(time.Minute, func() {
				tf.Request(t, http.MethodDelete, tf.Path("queues", test.queue)+"/contents", nil)
			})
			tf.refuses(t, saved, words...)
			emptied.Stop()
			if _, held := tf.Get(t, test.queue); !held {
				t.Error("the message is gone")
			}
			for _, queue := range acctest.Names(t, tf.Broker, "queues") {
				if queue == "orders.retry.6s" {
					t.Error("something was changed before the refusal")
				}
			}
		})
	}
	t.Run("consumer and retired queue", func(t *testing.T) {
		t.Parallel()
		tf := newReleasedCLI(t)
		tf.configure(t, pipelineHCL(tf.Broker, `delays = ["5s", "90s"]`, failing, waits))
		tf.apply(t)
		consuming := tf.Channel(t)
		deliveries, err := consuming.Consume("paid", "slow", false, false, false, false, nil)
		require.NoError(t, err)
		awaitConsumers(t, tf.Broker, "paid", 1)
		tf.Publish(t, "", "paid", persistent("consumed"))
		acctest.AwaitCount(t, tf.Broker, "paid", 1)
		tf.Publish(t, "orders.retry", "delay:1m30s", persistent("waiting"))
		// It waits for longer than a report of what is gone lasts.
		time.AfterFunc(25*time.Second, func() {
			if err := (<-deliveries).Ack(false); err != nil {
				t.Error(err)
			}
			if err := consuming.Cancel("slow", false); err != nil {
				t.Error(err)
			}
		})
		tf.configure(t, pipelineHCL(tf.Broker, `delays = ["5s"]`, `work_queues = {}`, waits))
		tf.Env = append(tf.Env, "TF_LOG=INFO")
		printed := tf.apply(t)
		for _, want := range []string{
			`waiting until these queues hold no messages:`, `paid="1 message"`, `paid="no messages seen`,
			`orders.retry.1m30s="1 message"`, `orders.retry.1m30s="no messages seen`,
		} {
			if !strings.Contains(printed, want) {
				t.Errorf("the log does not say %q:\n%s", want, printed)
			}
		}
		brokertest.Eventually(t, func() error { return arrived(t, tf.Broker, "orders.inbox", "waiting") })
		for _, queue := range acctest.Names(t, tf.Broker, "queues") {
			if queue == "paid" || queue == "team.failed" || queue == "orders.retry.1m30s" {
				t.Errorf("%s is still there", queue)
			}
		}
	})
}
