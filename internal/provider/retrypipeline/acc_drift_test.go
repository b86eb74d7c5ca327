package retrypipeline_test

import (
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
)

// driftConfig is a configuration with work queues of every kind.
func driftConfig(vhost string) map[string]any {
	return map[string]any{
		"name": "orders", "vhost": vhost, "delays": []string{"5s", "30s"},
		"work_queues": map[string]any{
			"work.created": map[string]any{},
			"work.paid":    map[string]any{},
			"work.legacy":  map[string]any{"type": "classic"},
			"noted":        map[string]any{"declare": true},
		},
	}
}

// driftCase is one change by hand, and what of the topology the plan must then want to change.
type driftCase struct {
	name    string
	alter   func(*testing.T, *brokertest.Broker)
	differs onlyDiffers
}

// What [drift.Check] cannot make of one object alone.
func TestAcc_DriftThatLooksLikeTheProvidersOwn(t *testing.T) {
	t.Parallel()
	policy := map[string]any{
		"pattern": "^(work\\.created)$", "apply-to": "queues", "priority": 1000,
		"definition": map[string]any{"dead-letter-exchange": "orders.dlx"},
	}
	acceptDrift(t, []driftCase{
		{"two definitions", bound("orders.failed", "orders.failed", "", map[string]any{"retry-definition": "old"}), onlyDiffers{"bindings orders.failed -> orders.failed retry-definition=old"}},
		{"a delay crossed", bound("orders.retry", "orders.retry.30s", "delay:5s", nil), onlyDiffers{"bindings orders.retry -> orders.retry.30s [delay:5s]"}},
		{"a foreign queue attached", bound("orders.return", "work.foreign", "return:work.foreign", nil), onlyDiffers{"bindings orders.return -> work.foreign [return:work.foreign]"}},
		{"a policy too many", func(t *testing.T, b *brokertest.Broker) {
			b.Call(t, http.MethodPut, b.Path("policies", "retry/orders/queue/work.created"), policy, nil)
		}, onlyDiffers{"policies retry/orders/queue/work.created"}},
	})
}

// A pipeline whose retry queues an earlier release made, without a delivery limit, can be imported. They get the limit as
// soon as they are empty.
func TestAcc_RetryQueuesOfAnEarlierRelease(t *testing.T) {
	t.Parallel()
	acctest.Require(t)
	b := brokertest.New(t)
	config := map[string]any{"name": "orders", "vhost": b.Vhost, "delays": []string{"5s", "1h"}}
	made := acctest.Core{Type: resourceType, Config: config, Times: acctest.Quick()}
	if _, err := made.PlanAndApply(t.Context()); err != nil {
		t.Fatal(err)
	}
	for delay, ttl := range map[string]int{"5s": 5_000, "1h": 3_600_000} {
		remade("orders.retry."+delay, "quorum", map[string]any{
			"x-message-ttl": ttl, "x-dead-letter-exchange": "orders.return",
			"x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish",
		})(t, b)
		bound("orders.retry", "orders.retry."+delay, "delay:"+delay, nil)(t, b)
	}
	b.Publish(t, "orders.retry", "delay:1h", persistent("waits"))
	before := acctest.List(t, b)

	c := acctest.Core{Type: resourceType, Config: config, Times: acctest.Quick()}
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
	if err := arrived(t, b, "orders.retry.1h", "waits"); err != nil {
		t.Error(err)
	}
	if _, err := c.PlanAndApply(t.Context()); err != nil {
		t.Errorf("once they are empty: %v", err)
	}
	if plan, err := c.Plan(t.Context()); err != nil || !plan.Empty() {
		t.Errorf("after that: %v, plan %v", err, acctest.Differences(acctest.TopologyOf(plan.Refreshed), acctest.TopologyOf(plan.After)))
	}
}

// acceptDrift applies a pipeline and then, for each case, alters the broker, checks that the plan
// shows exactly that, and lets apply repair it. In the end it destroys the pipeline.
func acceptDrift(t *testing.T, cases []driftCase) {
	t.Helper()
	acctest.Require(t)
	b := brokertest.New(t)
	b.DeclareQueue(t, "work.created", "quorum", nil)
	b.DeclareQueue(t, "work.paid", "quorum", nil)
	b.DeclareQueue(t, "work.foreign", "quorum", nil)
	b.DeclareQueue(t, "work.legacy", "classic", nil)
	c := acctest.Core{Type: resourceType, Config: driftConfig(b.Vhost), Times: acctest.Quick()}
	if _, err := c.PlanAndApply(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, drift := range cases {
		drift.alter(t, b)
		plan, err := c.PlanAndApply(t.Context())
		require.NoErrorf(t, err, "%s", drift.name)
		got := acctest.Differences(acctest.TopologyOf(plan.Refreshed), acctest.TopologyOf(plan.After))
		if want := slices.Sorted(slices.Values(drift.differs)); !slices.Equal(got, want) {
			t.Errorf("%s: the plan changes %q, want %q", drift.name, got, want)
		}
		if plan, err = c.Plan(t.Context()); err != nil || !plan.Empty() {
			t.Errorf("%s: after the repair: %v, the plan changes %q", drift.name, err, acctest.Differences(acctest.TopologyOf(plan.Refreshed), acctest.TopologyOf(plan.After)))
		}
	}
	if err := errors.Join(c.Destroy(t.Context()), nothingLeft(t, b)); err != nil {
		t.Error(err)
	}
}

func deleted(kind, name string) func(*testing.T, *brokertest.Broker) {
	return func(t *testing.T, b *brokertest.Broker) {
		t.Helper()
		b.Call(t, http.MethodDelete, b.Path(kind, name), nil, nil)
	}
}

func remade(queue, queueType string, arguments map[string]any) func(*testing.T, *brokertest.Broker) {
	return func(t *testing.T, b *brokertest.Broker) {
		t.Helper()
		deleted("queues", queue)(t, b)
		all := map[string]any{"x-queue-type": queueType}
		maps.Copy(all, arguments)
		b.Call(t, http.MethodPut, b.Path("queues", queue), map[string]any{"durable": true, "arguments": all}, nil)
	}
}

func unbound(source, queue string) func(*testing.T, *brokertest.Broker) {
	return func(t *testing.T, b *brokertest.Broker) {
		t.Helper()
		path := b.Path("bindings", "e", source, "q", queue)
		var found []struct {
			Key string `json:"properties_key"`
		}
		b.Call(t, http.MethodGet, path, nil, &found)
		for _, binding := range found {
			b.Call(t, http.MethodDelete, path+"/"+url.PathEscape(binding.Key), nil, nil)
		}
	}
}

func bound(source, queue, key string, arguments map[string]any) func(*testing.T, *brokertest.Broker) {
	return func(t *testing.T, b *brokertest.Broker) {
		t.Helper()
		body := map[string]any{"routing_key": key}
		if arguments != nil {
			body["arguments"] = arguments
		}
		b.Call(t, http.MethodPost, b.Path("bindings", "e", source, "q", queue), body, nil)
	}
}
