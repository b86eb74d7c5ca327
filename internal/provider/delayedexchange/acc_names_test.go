package delayedexchange_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

// One vhost has delayed exchanges whose names begin alike, or like a level, and a pipeline with the same name. Each delivers
// only its own messages, each queue has its owner's policy, and none changes when another owner is destroyed.
func TestAcc_NamesThatBeginAlike(t *testing.T) {
	t.Parallel()
	b := brokertest.WithQueues(t, "work")
	names := []string{"events", "events.eu", "events.delay", "events.delay.1s", "events.delay.x", "events.deliver.more", "events.delay.1s.9"}
	var all, others strings.Builder
	for i, name := range names {
		config := exchangeHCL(b, name, `max_delay = "7s"`, `precision = "1s"`)
		all.WriteString(config)
		if i > 0 {
			others.WriteString(config)
		}
	}
	ofOthers := others.String() + pipelineHCL(b, "events")
	whole := all.String() + pipelineHCL(b, "events")
	var before acctest.Listing
	accept(t, b, acctest.Times(),
		resource.TestStep{Config: ofOthers},
		resource.TestStep{PreConfig: func() { before = acctest.List(t, b) }, Config: whole},
		resource.TestStep{Config: whole, ConfigPlanChecks: empty, PreConfig: func() {
			for _, name := range names {
				deliversItsOwn(t, b, delayed.Names(name))
			}
			policiesAreTheirOwners(t, b, names)
		}},
		resource.TestStep{Config: ofOthers},
		resource.TestStep{Config: ofOthers, ConfigPlanChecks: empty, PreConfig: func() {
			require.NoError(t, before.RequireSame(acctest.List(t, b)))
		}},
	)
}

// deliversItsOwn sends a message through the levels of a delayed exchange.
func deliversItsOwn(t *testing.T, b *brokertest.Broker, n delayed.Names) {
	t.Helper()
	bind(t, b, n.DeliverExchange(), "work", "#", nil)
	arrives(t, b, string(n), delay(t, b, n, 3*time.Second, time.Second, "mail", string(n)))
	b.Unbind(t, n.DeliverExchange(), "q", "work")
}

// policiesAreTheirOwners fails unless each queue has its owner's policy. The owner is the longest of these names that begins
// the queue's name.
func policiesAreTheirOwners(t *testing.T, b *brokertest.Broker, names []string) {
	t.Helper()
	brokertest.Eventually(t, func() error {
		var queues []struct {
			Name   string `json:"name"`
			Policy string `json:"policy"`
		}
		b.Call(t, http.MethodGet, b.Path("queues"), nil, &queues)
		for _, queue := range queues {
			want := ""
			for _, name := range names {
				if n := delayed.Names(name); n.OwnsQueue(queue.Name) {
					want = n.QueuesPolicy()
				}
			}
			if strings.HasPrefix(queue.Policy, "delay/") != (want != "") || want != "" && queue.Policy != want {
				return fmt.Errorf("queue %s has policy %q instead of %q", queue.Name, queue.Policy, want)
			}
		}
		return nil
	})
}

// A name that would create another owner's object is refused at apply, and nothing changes.
func TestAcc_NameOfAnObjectOfAnother(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	c := eventsCore(b, map[string]any{"max_delay": "7s", "precision": "1s"})
	c.MustApply(t)
	before := acctest.List(t, b)
	for _, name := range []string{"events.deliver", "events.delay.1s.2", "events.delay.unrouted"} {
		other := eventsCore(b, map[string]any{"name": name, "max_delay": "1s"})
		_, err := other.PlanAndApply(t.Context())
		if want := fmt.Sprintf("exchange %q", name); err == nil || !strings.Contains(err.Error(), "Objects exist already") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	settled(t, b, &c, before)
}

// A pipeline cannot attach a delayed exchange's own queue, but can attach a queue that receives its due messages.
func TestAcc_PipelineOfAQueueOfADelayedExchange(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	config := exchangeHCL(b, "events", `max_delay = "7s"`, `precision = "1s"`)
	b.DeclareQueue(t, "work", "quorum", nil)
	pipelineOf := func(queue, attributes string) string {
		return fmt.Sprintf("resource \"rabbitmq_retry_pipeline\" \"p\" {\n  name = \"events\"\n  vhost = %q\n  delays = [\"5s\"]\n"+
			"  policy_priority = 2000\n  work_queues = { %q = { %s } }\n}\n", b.Vhost, queue, attributes)
	}
	attachment := func(queue string) string {
		return fmt.Sprintf("resource \"rabbitmq_retry_attachment\" \"a\" {\n  pipeline = \"events\"\n  vhost = %q\n  queue = %q\n}\n", b.Vhost, queue)
	}
	steps := []resource.TestStep{
		{
			Config:      config + pipelineOf("events.delay.inbox", ""),
			ExpectError: says(`Work queues do not exist|Queue of a delayed exchange`),
		},
		{Config: config + pipelineOf("work", "")},
		{
			PreConfig: func() { bind(t, b, "events.deliver", "work", "#", nil) },
			Config:    config + pipelineOf("work", ""), ConfigPlanChecks: empty,
		},
	}
	for _, queue := range []string{"events.delay.inbox", "events.delay.1s.2", "events.delay.unrouted"} {
		refused := says(`Queue of a delayed exchange.*(work_queues|queue) .*own queues of the delayed exchange "events"`)
		for _, attributes := range []string{"", `attach = "arguments"`} {
			steps = append(steps, resource.TestStep{Config: config + pipelineOf(queue, attributes), PlanOnly: true, ExpectError: refused})
		}
		steps = append(steps, resource.TestStep{Config: config + pipelineOf("work", "") + attachment(queue), PlanOnly: true, ExpectError: refused})
	}
	accept(t, b, acctest.Quick(), append(steps, resource.TestStep{
		PreConfig: func() { b.Unbind(t, "events.deliver", "q", "work") },
		Config:    config + pipelineOf("work", ""), ConfigPlanChecks: empty,
	})...)
}
