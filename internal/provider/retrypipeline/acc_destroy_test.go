package retrypipeline_test

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

func TestAcc_ForceDestroyDeletesWhatIsHeld(t *testing.T) {
	t.Parallel()
	brokertest.QueueTypes(t, func(t *testing.T, queueType string) {
		b := brokertest.New(t)
		b.DeclareQueue(t, "work", queueType, nil)
		config := pipelineHCL(b, `delays = ["1h"]`, `queue_type = "`+queueType+`"`, `force_destroy = true`, `work_queues = { "work" = { type = "`+queueType+`" } }`)
		accept(t, b,
			resource.TestStep{Config: config},
			resource.TestStep{PreConfig: func() {
				b.Publish(t, "orders.failed", "", persistent("parked"))
				b.Publish(t, "orders.retry", "delay:1h", persistent("waiting"))
			}, RefreshState: true},
		)
	})
}

// A destroy with a timeout continues as soon as the remaining messages are gone.
func TestAcc_DestroyWaitsUntilQueuesAreDrained(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	config := pipelineHCL(b, `delays = ["5s"]`, `timeouts = { delete = "3m" }`)
	accept(t, b,
		resource.TestStep{Config: config},
		resource.TestStep{
			PreConfig: func() {
				b.Publish(t, "orders.failed", "", persistent("parked"))
				// By then, the destroy has waited for 15 s, after which it would refuse.
				time.AfterFunc(25*time.Second, func() {
					b.Request(t, http.MethodDelete, b.Path("queues", "orders.failed")+"/contents", nil)
				})
			},
			Config: config, Destroy: true,
		},
	)
}

// With timeouts.update, the apply itself waits until queues that left the schedule are drained.
func TestAccEveryRelease_UpdateWaitsForRetiredQueues(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	wait := `timeouts = { update = "2m" }`
	accept(t, b,
		resource.TestStep{Config: pipelineHCL(b, `delays = ["5s", "15s"]`, wait)},
		resource.TestStep{
			PreConfig: func() {
				b.Publish(t, "orders.retry", "delay:15s", persistent("waiting"))
				acctest.AwaitCount(t, b, "orders.retry.15s", 1)
			},
			Config:            pipelineHCL(b, `delays = ["5s"]`, wait),
			ConfigStateChecks: []statecheck.StateCheck{statecheck.ExpectKnownValue(address, tfjsonpath.New("retired_queues"), knownvalue.MapSizeExact(0))},
		},
		resource.TestStep{
			PreConfig: func() {
				// The message came back through the return exchange, which has no binding to a work queue.
				takes(t, b, "orders.inbox", "waiting")
				if status, _ := b.Request(t, http.MethodGet, b.Path("queues", "orders.retry.15s"), nil); status != http.StatusNotFound {
					t.Errorf("the retired queue is still there: %d", status)
				}
			},
			Config: pipelineHCL(b, `delays = ["5s"]`, wait),
		},
	)
}

// A worker gets the new schedule after the apply. If none of its delays stayed bound, it could not delay any message.
func TestAcc_ReplacedScheduleKeepsTheOldQueuesForAnotherApply(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	wait := `timeouts = { update = "2m" }`
	bound := func(delay string) bool {
		status, found := b.Request(t, http.MethodGet, b.Path("bindings", "e", "orders.retry", "q", "orders.retry."+delay), nil)
		return status == http.StatusOK && strings.Contains(string(found), "delay:"+delay)
	}
	after := pipelineHCL(b, `delays = ["0s", "2s", "4s"]`, wait)
	accept(t, b,
		resource.TestStep{Config: pipelineHCL(b, `delays = ["0s", "1s", "3s"]`, wait)},
		resource.TestStep{
			Config: after,
			Check: func(*terraform.State) error {
				for _, delay := range []string{"1s", "2s", "3s", "4s"} {
					if !bound(delay) {
						t.Errorf("%s is not bound", delay)
					}
				}
				return nil
			},
			ConfigStateChecks: []statecheck.StateCheck{
				statecheck.ExpectKnownValue(address, tfjsonpath.New("retired_queues"), knownvalue.MapSizeExact(2)),
			},
			ExpectNonEmptyPlan: true, // it removes queues that were seen to be empty
		},
		resource.TestStep{
			Config: after,
			Check: func(*terraform.State) error {
				if bound("1s") || bound("3s") {
					t.Error("the old delays are still bound")
				}
				return nil
			},
		},
	)
}

// The apply's timeout decides which queues the plan removes. So both are known or both are unknown.
func TestAcc_WaitThatIsKnownLater(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	config := func(wait, delays string) string {
		return "resource \"terraform_data\" \"wait\" {\n  input = \"" + wait + "\"\n}\n" +
			pipelineHCL(b, `delays = [`+delays+`]`, `timeouts = { update = terraform_data.wait.output }`)
	}
	acceptTerraform(t, b,
		resource.TestStep{Config: config("1m", `"5s", "15s"`)},
		resource.TestStep{Config: config("2m", `"5s"`)},
		resource.TestStep{Config: config("2m", `"5s"`), ConfigPlanChecks: unchanged},
	)
}

func TestAccEveryRelease_DestroyRefusesWhileTheFailedQueueHoldsMessages(t *testing.T) {
	t.Parallel()
	brokertest.QueueTypes(t, func(t *testing.T, queueType string) {
		b := brokertest.WithQueues(t, "work")
		config := pipelineHCL(b, `delays = ["5s"]`, fmt.Sprintf("queue_type = %q", queueType), `work_queues = { "work" = {} }`)
		accept(t, b,
			resource.TestStep{Config: config},
			resource.TestStep{
				PreConfig:   func() { b.Publish(t, "orders.failed", "k", persistent("parked")) },
				Config:      config,
				Destroy:     true,
				ExpectError: regexp.MustCompile(`(?s)would lose messages.*orders\.failed: 1 message`),
			},
			// All objects are back.
			resource.TestStep{Config: config, ConfigPlanChecks: unchanged},
			resource.TestStep{
				PreConfig: func() { takes(t, b, "orders.failed", "parked") },
				Config:    config,
			},
		)
	})
}

// Messages that a full queue has refused wait for that queue, and would be lost.
func TestAccEveryRelease_DestroyRefusesWhileAQueueRefusesMessages(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	b.DeclareQueue(t, "audit", "classic", map[string]any{"x-max-length": 0, "x-overflow": "reject-publish"})
	config := pipelineHCL(b, `delays = ["5s"]`)
	accept(t, b,
		resource.TestStep{Config: config},
		resource.TestStep{
			PreConfig: func() {
				bound("orders.failed", "audit", "", nil)(t, b)
				b.Publish(t, "", "orders.retry.0.refused", persistent("refused"))
				brokertest.Eventually(t, func() error {
					if m, ok := b.Get(t, "orders.failed"); !ok || string(m.Body) != "refused" {
						return errors.New("the failed queue has nothing")
					}
					return nil
				})
			},
			Config:      config,
			Destroy:     true,
			ExpectError: regexp.MustCompile(`(?s)would lose messages.*orders\.retry\.0\.refused: 1 message.*make\s+room\s+in\s+the\s+queue\s+behind`),
		},
		resource.TestStep{
			PreConfig: func() {
				for _, queue := range []string{"audit", "orders.retry.0.refused"} {
					deleted("queues", queue)(t, b)
				}
			},
			Config: config,
		},
	)
}

// A quorum work queue holds dead letters that their target does not accept. Deleting its policy would delete them.
func TestAccEveryRelease_DetachAndDestroyRefuseWhileAWorkQueueHoldsDeadLetters(t *testing.T) {
	t.Parallel()
	b := brokertest.WithQueues(t, "work")
	attached := pipelineHCL(b, `delays = ["5s"]`, `work_queues = { "work" = {} }`)
	accept(t, b,
		resource.TestStep{Config: attached},
		resource.TestStep{
			PreConfig: func() {
				unbound("orders.dlx", "orders.inbox")(t, b)
				unbound("orders.failed", "orders.failed")(t, b)
				reject(t, b, "work", "rejected")
			},
			Config:      pipelineHCL(b, `delays = ["5s"]`),
			ExpectError: regexp.MustCompile(`(?s)would lose messages.*work: 1 dead letter`),
		},
		resource.TestStep{
			Config:      attached,
			Destroy:     true,
			ExpectError: regexp.MustCompile(`(?s)would lose messages.*work: 1 dead letter`),
		},
		// The repair restores the bindings, and makes the broker try again at once instead of minutes later.
		resource.TestStep{Config: attached},
		resource.TestStep{PreConfig: func() { emptyInbox(t, b, 1) }, Config: attached},
	)
}

func TestAcc_RemovingADeclaredQueueThatHoldsMessagesIsRefused(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	with := pipelineHCL(b, `delays = ["5s"]`, `work_queues = { "paid" = { declare = true } }`)
	without := pipelineHCL(b, `delays = ["5s"]`)
	accept(t, b,
		resource.TestStep{Config: with},
		resource.TestStep{
			PreConfig:   func() { b.Publish(t, "", "paid", persistent("order")) },
			Config:      without,
			ExpectError: regexp.MustCompile(`(?s)not empty.*paid: 1 message`),
		},
		// The refused change has changed nothing, so the queue is still attached.
		resource.TestStep{Config: with, ConfigPlanChecks: unchanged},
		resource.TestStep{
			PreConfig: func() { takes(t, b, "paid", "order") },
			Config:    without,
		},
		resource.TestStep{
			PreConfig: func() { there(t, b, false, "queues", "paid") },
			Config:    without,
		},
	)
}

// If an application publishes to a queue and consumes it, the queue's immutable arguments cannot change.
func TestAcc_ChangingArgumentsOfAQueueInUseIsRefused(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	before := pipelineHCL(b, `delays = ["5s"]`, `work_queues = { "paid" = { declare = true } }`)
	after := pipelineHCL(b, `delays = ["5s"]`, `work_queues = { "paid" = { declare = true, arguments_json = jsonencode({ x-single-active-consumer = true }) } }`)
	var consumer *amqp.Channel
	unchanged := resource.TestStep{Config: before, ConfigPlanChecks: unchanged}
	accept(t, b,
		resource.TestStep{Config: before},
		resource.TestStep{
			PreConfig:   func() { bound("amq.topic", "paid", "#", nil)(t, b) },
			Config:      after,
			ExpectError: regexp.MustCompile(`(?s)Bindings of others.*amq\.topic -> paid`),
		},
		unchanged,
		resource.TestStep{
			PreConfig: func() {
				unbound("amq.topic", "paid")(t, b)
				consumer, _ = b.Consume(t, "paid", 0)
				awaitReported(t, b, "paid", "consumers", 1.0)
			},
			Config:      after,
			ExpectError: regexp.MustCompile(`(?s)would lose messages.*paid: 1 consumer`),
		},
		unchanged,
		resource.TestStep{
			PreConfig: func() {
				_ = consumer.Close()
				awaitReported(t, b, "paid", "consumers", 0.0)
			},
			Config: after,
		},
	)
}

// If the repair of a queue is refused, the exchanges and all of their bindings stay.
func TestAcc_RefusedRepairKeepsForeignBindings(t *testing.T) {
	t.Parallel()
	b := brokertest.WithQueues(t, "work.audit")
	config := pipelineHCL(b, `delays = ["5s"]`)
	accept(t, b,
		resource.TestStep{Config: config},
		resource.TestStep{
			PreConfig: func() {
				deleted("exchanges", "orders.dlx")(t, b)
				b.Call(t, http.MethodPut, b.Path("exchanges", "orders.dlx"), map[string]any{"type": "fanout", "durable": true}, nil)
				bound("orders.dlx", "work.audit", "", nil)(t, b)
				remade("orders.failed", map[string]any{"x-delivery-limit": 7})(t, b)
				bound("orders.failed", "orders.failed", "", nil)(t, b)
				b.Publish(t, "orders.failed", "k", persistent("parked"))
			},
			Config:      config,
			ExpectError: regexp.MustCompile(`(?s)would lose messages.*orders\.failed: 1 message`),
		},
		resource.TestStep{
			PreConfig: func() { takes(t, b, "orders.failed", "parked") },
			Config:    config,
		},
		resource.TestStep{
			PreConfig: func() {
				b.Publish(t, "orders.dlx", "k", persistent("seen"))
				takes(t, b, "work.audit", "seen")
				takes(t, b, "orders.inbox", "seen")
			},
			Config: config,
		},
	)
}

const waits = `timeouts = { update = "5m", delete = "5m" }`

// If a queue has no consumer, its messages do not drain: the plan says so, and the apply does not wait for them. The apply
// waits for queues with a consumer and for retired queues, and logs their names.
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
			tf.applied(t, pipelineHCL(tf.Broker, `delays = ["5s"]`, failing, waits))
			tf.Publish(t, "", test.queue, persistent("held"))
			acctest.AwaitCount(t, tf.Broker, test.queue, 1)
			tf.configure(t, pipelineHCL(tf.Broker, `delays = ["6s"]`, test.after, waits))
			words := []string{"would lose messages", test.queue + ": 1 message", test.queue + ": " + test.remedy}
			printed := tf.plan(t, test.arguments...)
			for _, want := range words {
				mentions(t, printed, want)
			}
			// A waiting apply continues once the queue is empty.
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
		tf.applied(t, pipelineHCL(tf.Broker, `delays = ["5s", "90s"]`, failing, waits))
		consuming := tf.Channel(t)
		deliveries, err := consuming.Consume("paid", "slow", false, false, false, false, nil)
		require.NoError(t, err)
		awaitReported(t, tf.Broker, "paid", "consumers", 1.0)
		tf.Publish(t, "", "paid", persistent("consumed"))
		acctest.AwaitCount(t, tf.Broker, "paid", 1)
		tf.Publish(t, "orders.retry", "delay:1m30s", persistent("waiting"))
		// The apply waits longer than the broker reports deleted objects.
		time.AfterFunc(25*time.Second, func() {
			if err := errors.Join((<-deliveries).Ack(false), consuming.Cancel("slow", false)); err != nil {
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
			mentions(t, printed, want)
		}
		expectIn(t, tf.Broker, "orders.inbox", "waiting")
		for _, queue := range acctest.Names(t, tf.Broker, "queues") {
			if queue == "paid" || queue == "team.failed" || queue == "orders.retry.1m30s" {
				t.Errorf("%s is still there", queue)
			}
		}
	})
}

// A queue's arguments cannot change. If a released queue is declared again with other arguments, it is not replaced.
func TestAcc_ReleasedQueueIsNeverReplaced(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	config := func(workQueue string) string {
		return pipelineHCL(b, `delays = ["5s"]`, `work_queues = { "work" = `+workQueue+` }`)
	}
	acceptQuickly(t, b,
		resource.TestStep{Config: config(`{ declare = true }`)},
		resource.TestStep{Config: config(`{}`)},
		resource.TestStep{
			PreConfig:   func() { b.Publish(t, "", "work", persistent("kept")) },
			Config:      config(`{ declare = true, arguments_json = jsonencode({ "x-single-active-consumer" = true }) }`),
			ExpectError: regexp.MustCompile(`(?s)Work queues exist already.*"work" = \{\}`),
		},
		resource.TestStep{
			PreConfig: func() { takes(t, b, "work", "kept") },
			Config:    config(`{ declare = true }`),
		},
		resource.TestStep{Config: config(`{}`)},
	)
}
