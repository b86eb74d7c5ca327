package retrypipeline_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

// A queue moves from one pipeline to another in three applies. At each moment one of them receives rejected messages. The old
// pipeline stays bound until no message waits in it.
func TestAccEveryRelease_WorkQueueMovesWithoutAGap(t *testing.T) {
	t.Parallel()
	b := brokertest.WithQueues(t, "work")
	has, hasNot := `work_queues = { work = {} }`, `work_queues = {}`
	takesOver := `work_queues = { work = { take_over_from = "old" } }`
	detached := func(drained bool) statecheck.StateCheck {
		return statecheck.ExpectKnownValue("rabbitmq_retry_pipeline.old", tfjsonpath.New("detached_queues"), knownvalue.MapExact(map[string]knownvalue.Check{
			"work": knownvalue.ObjectExact(map[string]knownvalue.Check{"drained": knownvalue.Bool(drained)}),
		}))
	}
	waiting := amqp.Publishing{
		DeliveryMode: amqp.Persistent, Body: []byte("waiting"), Expiration: "1", Headers: amqp.Table{"CC": []any{"delay:1s", "return:work"}},
	}
	accept(t, b,
		resource.TestStep{Config: pipelineNamed(b, "old", has)},
		resource.TestStep{
			PreConfig: func() { reject(t, b, "work", "to the old one"); expectIn(t, b, "old.inbox", "to the old one") },
			Config:    pipelineNamed(b, "old", has) + pipelineNamed(b, "new", takesOver),
		},
		// Import reads the mark.
		resource.TestStep{
			Config:       pipelineNamed(b, "old", has) + pipelineNamed(b, "new", takesOver),
			ResourceName: "rabbitmq_retry_pipeline.new", ImportState: true, ImportStateId: importID(b.Vhost, "new"),
			ImportStateVerify: true, ImportStateVerifyIdentifierAttribute: "name",
		},
		resource.TestStep{
			PreConfig: func() {
				reject(t, b, "work", "to the new one")
				expectIn(t, b, "new.inbox", "to the new one")
				b.Publish(t, "", "old.inbox", amqp.Publishing{DeliveryMode: amqp.Persistent, Body: []byte("still to be judged")})
				acctest.AwaitCount(t, b, "old.inbox", 1)
			},
			Config:            pipelineNamed(b, "old", hasNot) + pipelineNamed(b, "new", takesOver),
			ConfigStateChecks: []statecheck.StateCheck{detached(false)},
		},
		resource.TestStep{
			PreConfig: func() {
				b.Publish(t, "old.retry", "key", waiting)
				expectIn(t, b, "work", "waiting")
				reject(t, b, "work", "to the new one again")
				expectIn(t, b, "new.inbox", "to the new one again")
				expectIn(t, b, "old.inbox", "still to be judged")
				acctest.AwaitCount(t, b, "old.inbox", 0)
				acctest.AwaitCount(t, b, "old.retry.1s", 0)
			},
			Config:            pipelineNamed(b, "old", hasNot) + pipelineNamed(b, "new", has),
			ConfigStateChecks: []statecheck.StateCheck{detached(true)},
		},
		// The old pipeline's next change removes the binding.
		resource.TestStep{
			Config: pipelineNamed(b, "old", hasNot, `max_age = "1h"`) + pipelineNamed(b, "new", has),
			ConfigStateChecks: []statecheck.StateCheck{
				statecheck.ExpectKnownValue("rabbitmq_retry_pipeline.old", tfjsonpath.New("detached_queues"), knownvalue.MapExact(map[string]knownvalue.Check{})),
			},
		},
		resource.TestStep{
			PreConfig: func() { reject(t, b, "work", "for good"); expectIn(t, b, "new.inbox", "for good") },
			Config:    pipelineNamed(b, "new", has),
		},
	)
}

// A pipeline with work queues is not replaced, whatever its lifecycle block says. A pipeline without work queues can be
// replaced.
func TestAcc_PipelineWithWorkQueuesIsNotReplaced(t *testing.T) {
	t.Parallel()
	b := brokertest.WithQueues(t, "work")
	has := `work_queues = { work = {} }`
	renamed := func(name string, lines ...string) string {
		return strings.Replace(pipelineNamed(b, name, lines...), fmt.Sprintf("%q %q", "rabbitmq_retry_pipeline", name), `"rabbitmq_retry_pipeline" "it"`, 1)
	}
	refused := regexp.MustCompile(`A\s+pipeline\s+with\s+work\s+queues\s+would\s+be\s+replaced`)
	steps := []resource.TestStep{{Config: renamed("first", has)}}
	for _, lines := range [][]string{{has}, {has, `lifecycle { create_before_destroy = true }`}, {`work_queues = {}`}} {
		steps = append(steps, resource.TestStep{Config: renamed("second", lines...), ExpectError: refused})
	}
	steps = append(steps,
		resource.TestStep{Config: renamed("first", has, `queue_type = "classic"`), ExpectError: refused},
		resource.TestStep{
			Config: renamed("first", has), ConfigPlanChecks: unchanged,
		},
		resource.TestStep{Config: renamed("first", has, `force_destroy = true`)},
		resource.TestStep{Config: renamed("second", has), ExpectError: refused},
		resource.TestStep{Config: renamed("second", has, `force_destroy = true`)},
		resource.TestStep{
			PreConfig: func() { deleted("queues", "work")(t, b) },
			Config:    renamed("second", `work_queues = {}`),
		},
		resource.TestStep{Config: renamed("third", `work_queues = {}`, `lifecycle { create_before_destroy = true }`)},
	)
	acceptTerraform(t, b, steps...)
}

// If a pipeline's definition is deleted by hand during a move, the next apply of both pipelines restores it. No step of the
// move counts as done because of that.
func TestAcc_DefinitionDeletedDuringAMove(t *testing.T) {
	t.Parallel()
	b := brokertest.WithQueues(t, "work")
	old, taker := pipelineNamed(b, "old", `work_queues = { work = {} }`), pipelineNamed(b, "new", `work_queues = { work = { take_over_from = "old" } }`)
	early := pipelineNamed(b, "new", `work_queues = { work = {} }`)
	undefine := func(name string) func() { return func() { unbound(name+".failed", name+".failed")(t, b) } }
	acceptQuickly(t, b,
		resource.TestStep{Config: old},
		resource.TestStep{PreConfig: undefine("old"), Config: old + taker},
		resource.TestStep{PreConfig: undefine("old"), Config: old + early, ExpectError: regexp.MustCompile(`Queue\s+of\s+two\s+pipelines|not\s+been\s+taken\s+over\s+yet`)},
		resource.TestStep{Config: old + taker},
		resource.TestStep{PreConfig: undefine("new"), Config: old + taker},
		resource.TestStep{PreConfig: undefine("new"), Config: pipelineNamed(b, "old", `work_queues = {}`) + taker},
	)
}
