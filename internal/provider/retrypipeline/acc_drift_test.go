package retrypipeline_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest/drift"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// This drift involves more than one object, so [drift.Check] does not cover it.
func TestAcc_DriftThatLooksLikeTheProvidersOwn(t *testing.T) {
	t.Parallel()
	b := brokertest.WithQueues(t, "work.created", "work.paid", "work.foreign")
	b.DeclareQueue(t, "work.legacy", "classic", nil)
	config := pipelineHCL(b, `delays = ["5s", "30s"]`,
		`work_queues = { "work.created" = {}, "work.paid" = { failed_queue = { name = "failures" } }, "work.legacy" = { type = "classic" }, noted = { declare = true } }`)
	const twin = "retry/orders/queue/work.created"
	steps := []resource.TestStep{{Config: config}}
	for differs, alter := range map[string]func(*testing.T, *brokertest.Broker){
		"bindings orders.failed -> orders.failed retry-definition=old":    bound("orders.failed", "orders.failed", "", map[string]any{"retry-definition": "old"}),
		"bindings orders.retry -> orders.retry.30s [delay:5s]":            bound("orders.retry", "orders.retry.30s", "delay:5s", nil),
		"bindings orders.failed.route -> work.created [failed:work.paid]": bound("orders.failed.route", "work.created", "failed:work.paid", nil),
		"bindings orders.return -> work.foreign [return:work.foreign]":    bound("orders.return", "work.foreign", "return:work.foreign", nil),
		"policies " + twin: func(t *testing.T, b *brokertest.Broker) {
			putPolicy(t, b, "policies", twin, "^(work\\.created)$", 1000, map[string]any{"dead-letter-exchange": "orders.dlx"})
		},
	} {
		steps = append(steps, resource.TestStep{
			PreConfig: func() { alter(t, b) }, Config: config,
			ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{onlyDiffers{differs}}},
		})
	}
	acceptQuickly(t, b, steps...)
}

// A pipeline from an earlier release, whose retry queues have no delivery limit, can be imported. The queues get the limit as
// soon as they are empty.
func TestAcc_RetryQueuesOfAnEarlierRelease(t *testing.T) {
	t.Parallel()
	acctest.Require(t)
	b := brokertest.New(t)
	made := pipelineCore(b, attributes{"delays": []string{"5s", "1h"}})
	made.MustApply(t)
	for delay, ttl := range map[string]int{"5s": 5_000, "1h": 3_600_000} {
		remade("orders.retry."+delay, map[string]any{
			"x-message-ttl": ttl, "x-dead-letter-exchange": "orders.return",
			"x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish",
		})(t, b)
		bound("orders.retry", "orders.retry."+delay, "delay:"+delay, nil)(t, b)
	}
	b.Publish(t, "orders.retry", "delay:1h", persistent("waits"))
	before := acctest.List(t, b)

	c := pipelineCore(b, attributes{"delays": []string{"5s", "1h"}})
	require.NoError(t, c.Import(t.Context(), importID(b.Vhost, "orders")))
	plan, err := c.PlanAndApply(t.Context())
	if err == nil || !strings.Contains(err.Error(), "The change would lose messages") || !strings.Contains(err.Error(), "orders.retry.1h: 1 message") {
		t.Errorf("with a message waiting: %v", err)
	}
	got := acctest.Differences(acctest.TopologyOf(plan.Refreshed), acctest.TopologyOf(plan.After))
	if want := []string{"queues orders.retry.1h", "queues orders.retry.5s"}; !slices.Equal(got, want) {
		t.Errorf("the plan changes %q, want %q", got, want)
	}
	if err := before.RequireSame(acctest.List(t, b)); err != nil {
		t.Errorf("the refused apply: %v", err)
	}
	takes(t, b, "orders.retry.1h", "waits")
	c.MustApply(t)
	c.RequireEmptyPlan(t)
}

// driftPipelines have every kind of object with every kind of attribute. No message leaves their retry queues during a test.
func driftPipelines(vhost string) map[string]pipeline.Pipeline {
	quorum := pipeline.Pipeline{
		Name: "orders", Vhost: vhost, QueueType: topology.Quorum, MaxAttempts: 3,
		Delays:           []pipeline.Delay{{Wait: time.Hour, Spelling: "1h"}, {Wait: 2 * time.Hour, Spelling: "120m"}},
		RetryOn:          []string{pipeline.ReasonRejected, pipeline.ReasonExpired},
		PolicyPriority:   500,
		PolicyDefinition: topology.Arguments{"delivery-limit": int64(100)},
		WorkQueues: map[string]pipeline.WorkQueue{
			"work.created": {Type: topology.Quorum},
			"work.paid":    {Type: topology.Quorum},
			"work.limited": {Type: topology.Quorum, DeadLetterStrategy: topology.AtMostOnce, PolicyDefinition: topology.Arguments{"max-length": int64(1000), "overflow": "drop-head"}},
			"work.legacy":  {Type: topology.Classic, PolicyDefinition: topology.Arguments{"delivery-limit": nil}},
			"noted":        {Type: topology.Quorum, Declare: true, Arguments: topology.Arguments{"x-message-ttl": int64(86_400_000), "flag": true, "table": map[string]any{"a": "b"}}},
			"billed":       {Type: topology.Quorum, Declare: true, Attach: pipeline.AttachArguments},
		},
	}
	classic := pipeline.Pipeline{
		Name: "orders", Vhost: vhost, QueueType: topology.Classic, MaxAttempts: 2,
		Delays:         []pipeline.Delay{{Wait: time.Hour, Spelling: "1h"}},
		RetryOn:        []string{pipeline.ReasonRejected},
		PolicyPriority: pipeline.DefaultPolicyPriority,
		WorkQueues: map[string]pipeline.WorkQueue{
			"work.created": {Type: topology.Quorum},
			"work.legacy":  {Type: topology.Classic},
			"old":          {Type: topology.Classic, Declare: true, Arguments: topology.Arguments{"x-max-priority": int64(5)}},
			"older":        {Type: topology.Classic, Declare: true, Attach: pipeline.AttachArguments},
		},
	}
	return map[string]pipeline.Pipeline{"quorum": quorum, "classic": classic}
}

// subjects are these pipelines, with objects of others that are bound to theirs.
func subjects(vhost string) map[string]drift.Subject {
	all := map[string]drift.Subject{}
	for kind, p := range driftPipelines(vhost) {
		wanted, workQueues := p.Expand(), map[string]string{}
		isRefused := func(queue string) bool { return queue == p.Names().RefusedQueue() }
		queues := slices.DeleteFunc(slices.Collect(maps.Keys(wanted.Queues)), isRefused)
		for name, w := range p.WorkQueues {
			if !w.Declare {
				workQueues[name] = w.Type
				queues = append(queues, name)
			}
		}
		slices.Sort(queues)
		isReturn := func(b topology.Binding) bool { return strings.HasPrefix(b.RoutingKey, pipeline.ReturnKeyPrefix) }
		all[kind] = drift.Subject{
			Type: resourceType, Config: configurationOf(p), Wanted: wanted, WorkQueues: workQueues, Queues: slices.Compact(queues),
			Foreign: func(t *testing.T, b *brokertest.Broker) { t.Helper(); addForeign(t, b, p) },
			Alike:   func(a, b topology.Binding) bool { return isReturn(a) == isReturn(b) },
			Twin:    p.Names().QueuePolicy("by hand"),
		}
	}
	return all
}

// addForeign adds objects of others: a listener on each of the pipeline's exchanges, a binding to a work queue, and policies.
// The name of one policy begins like the pipeline's.
func addForeign(t *testing.T, b *brokertest.Broker, p pipeline.Pipeline) {
	t.Helper()
	b.DeclareQueue(t, "foreign.audit", "quorum", nil)
	b.Call(t, http.MethodPut, b.Path("exchanges", "foreign"), map[string]any{"type": "topic", "durable": true}, nil)
	for exchange := range p.Expand().Exchanges {
		bound(exchange, "foreign.audit", "audit", map[string]any{"who": "audit"})(t, b)
	}
	bound("foreign", "work.created", "foreign.#", map[string]any{"who": "foreign"})(t, b)
	for _, name := range []string{"foreign", "retry/" + p.Name + "s/queues"} {
		b.Call(t, http.MethodPut, b.Path("policies", name), map[string]any{
			"pattern": "^foreign", "apply-to": "queues", "priority": 3, "definition": map[string]any{"max-length": 12345},
		}, nil)
	}
}

func TestAcc_DriftOfEveryAttribute(t *testing.T) {
	t.Parallel()
	drift.Check(t, subjects)
}

func TestDriftMatrixIsComplete(t *testing.T) {
	t.Parallel()
	drift.CheckComplete(t, subjects("v"))
}

// configurationOf is the pipeline's configuration.
func configurationOf(p pipeline.Pipeline) map[string]any {
	var delays []string
	for _, delay := range p.Delays {
		delays = append(delays, delay.Spelling)
	}
	workQueues := map[string]any{}
	for name, w := range p.WorkQueues {
		workQueues[name] = configurationOfQueue(w)
	}
	configuration := map[string]any{
		"name": p.Name, "vhost": p.Vhost, "delays": delays, "max_attempts": p.MaxAttempts, "retry_on": p.RetryOn,
		"queue_type": p.QueueType, "policy_priority": p.PolicyPriority, "work_queues": workQueues,
	}
	if p.PolicyDefinition != nil {
		configuration["policy_definition_json"] = jsonText(p.PolicyDefinition)
	}
	return configuration
}

func configurationOfQueue(w pipeline.WorkQueue) map[string]any {
	configuration := map[string]any{"type": w.Type, "declare": w.Declare}
	if w.Attach != "" {
		configuration["attach"] = w.Attach
	}
	if w.DeadLetterStrategy != "" {
		configuration["dead_letter_strategy"] = w.DeadLetterStrategy
	}
	if w.Arguments != nil {
		configuration["arguments_json"] = jsonText(w.Arguments)
	}
	if w.PolicyDefinition != nil {
		configuration["policy_definition_json"] = jsonText(w.PolicyDefinition)
	}
	return configuration
}

func jsonText(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(text)
}
