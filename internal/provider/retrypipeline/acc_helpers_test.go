package retrypipeline_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

const (
	resourceType = "rabbitmq_retry_pipeline"
	address      = resourceType + ".orders"
)

// unchanged expects an empty plan before the apply. After the apply, each step checks that by itself.
var unchanged = resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}}

// accept runs the steps against the provider in this process. At the end, the pipelines are destroyed, and only the test's
// own queues may be left in the vhost.
func accept(t *testing.T, b *brokertest.Broker, steps ...resource.TestStep) {
	t.Helper()
	acctest.RunAndCheck(t, acctest.Times(), func() error { return acctest.NothingLeft(t, b) }, steps...)
}

// acceptQuickly is accept for steps during which no message moves: see [acctest.Quick].
func acceptQuickly(t *testing.T, b *brokertest.Broker, steps ...resource.TestStep) {
	t.Helper()
	acctest.RunAndCheck(t, acctest.Quick(), func() error { return acctest.NothingLeft(t, b) }, steps...)
}

// acceptTerraform is acceptQuickly with Terraform's CLI: see [acctest.RunTerraform].
func acceptTerraform(t *testing.T, b *brokertest.Broker, steps ...resource.TestStep) {
	t.Helper()
	acctest.RunTerraformAndCheck(t, acctest.Quick(), func() error { return acctest.NothingLeft(t, b) }, steps...)
}

// pipelineLabelled is the configuration of a pipeline under a Terraform label, with these lines.
func pipelineLabelled(b *brokertest.Broker, label, name string, lines ...string) string {
	return fmt.Sprintf("resource \"rabbitmq_retry_pipeline\" %q {\n  name = %q\n  vhost = %q\n  %s\n}\n",
		label, name, b.Vhost, strings.Join(lines, "\n  "))
}

// pipelineHCL is the configuration of a pipeline named "orders", with these lines.
func pipelineHCL(b *brokertest.Broker, lines ...string) string {
	return pipelineLabelled(b, "orders", "orders", lines...)
}

// pipelineNamed is the configuration of a pipeline, with its own name as Terraform label.
func pipelineNamed(b *brokertest.Broker, name string, lines ...string) string {
	return pipelineLabelled(b, name, name, append([]string{`delays = ["1s"]`}, lines...)...)
}

// as configures the provider with another user.
func as(user, password string) string {
	return fmt.Sprintf("provider \"rabbitmq\" {\n  username = %q\n  password = %q\n}\n", user, password)
}

// at configures the provider with another endpoint.
func at(endpoint string) string {
	return fmt.Sprintf("provider \"rabbitmq\" {\n  endpoint = %q\n}\n", endpoint)
}

// importID is the id for terraform import.
func importID(vhost, name string) string { return url.PathEscape(vhost) + "/" + url.PathEscape(name) }

// isImported imports the pipeline "orders", and compares it with the state.
func isImported(b *brokertest.Broker) resource.TestStep {
	return resource.TestStep{
		ResourceName: address, ImportState: true, ImportStateId: importID(b.Vhost, "orders"),
		ImportStateVerify: true, ImportStateVerifyIdentifierAttribute: "name",
	}
}

// importBlock imports a pipeline into an empty state, and fails unless the plan is empty.
func importBlock(b *brokertest.Broker, config, name string) resource.TestStep {
	return resource.TestStep{
		Config: config, ResourceName: address, ImportState: true,
		ImportStateKind: resource.ImportBlockWithID, ImportStateId: importID(b.Vhost, name),
	}
}

// says matches a text of an error. Terraform breaks long lines, so a blank matches any white space.
func says(text string) *regexp.Regexp {
	return regexp.MustCompile("(?s)" + strings.ReplaceAll(text, " ", `[\s│]+`))
}

// there fails the test unless the object exists or is missing, as wanted.
func there(t *testing.T, b *brokertest.Broker, want bool, kind, name string) {
	t.Helper()
	if got := slices.Contains(acctest.Names(t, b, kind), name); got != want {
		t.Errorf("%s %s is there: %t", kind, name, got)
	}
}

func persistent(body string) amqp.Publishing {
	return amqp.Publishing{DeliveryMode: amqp.Persistent, Body: []byte(body)}
}

// reject publishes a message to a queue, and rejects it as a consumer.
func reject(t *testing.T, b *brokertest.Broker, queue, body string) {
	t.Helper()
	b.Publish(t, "", queue, persistent(body))
	rejectNext(t, b, queue, 1, false)
}

// rejectNext rejects the next messages as a consumer, or returns them to the queue. It takes all of them first, because one can come back
// before the next one is taken.
func rejectNext(t *testing.T, b *brokertest.Broker, queue string, count int, requeue bool) {
	t.Helper()
	ch := b.Channel(t)
	defer func() { _ = ch.Close() }()
	var next []amqp.Delivery
	for range count {
		d, ok, err := ch.Get(queue, false)
		if err != nil || !ok {
			t.Fatalf("get from %s: %v, %v", queue, ok, err)
		}
		next = append(next, d)
	}
	for _, d := range next {
		require.NoError(t, d.Reject(requeue))
	}
}

// takes takes a message from a queue, and fails unless it is this one.
func takes(t *testing.T, b *brokertest.Broker, queue, body string) {
	t.Helper()
	if m, ok := b.Get(t, queue); !ok || string(m.Body) != body {
		t.Fatalf("got %q, %t from %s, want %q", m.Body, ok, queue, body)
	}
}

// expectIn takes messages until each of these has come, in any order.
func expectIn(t *testing.T, b *brokertest.Broker, queue string, bodies ...string) {
	t.Helper()
	missing := slices.Clone(bodies)
	brokertest.Eventually(t, func() error {
		m, ok := b.Get(t, queue)
		missing = slices.DeleteFunc(missing, func(body string) bool { return ok && body == string(m.Body) })
		if len(missing) > 0 {
			return fmt.Errorf("got %q, %t from %s, still want %q", m.Body, ok, queue, missing)
		}
		return nil
	})
}

// awaitReady waits until a queue has this many ready messages. AMQP reports the count at once, unlike the management API.
func awaitReady(t *testing.T, b *brokertest.Broker, queue string, want int) {
	t.Helper()
	ch := b.Channel(t)
	brokertest.Eventually(t, func() error {
		q, err := ch.QueueDeclarePassive(queue, true, false, false, false, nil)
		if err == nil && q.Messages != want {
			err = fmt.Errorf("%s has %d messages instead of %d", queue, q.Messages, want)
		}
		return err
	})
}

// emptyInbox waits until the inbox has this many messages, and purges it.
func emptyInbox(t *testing.T, b *brokertest.Broker, want int) {
	t.Helper()
	awaitReady(t, b, "orders.inbox", want)
	_, err := b.Channel(t).QueuePurge("orders.inbox", false)
	require.NoError(t, err)
}

// reported is the management API's report on a queue, which lags by seconds.
func reported(t *testing.T, b *brokertest.Broker, queue string) map[string]any {
	t.Helper()
	var found map[string]any
	b.Call(t, http.MethodGet, b.Path("queues", queue), nil, &found)
	return found
}

// awaitReported waits until the management API reports this value for a queue. Numbers are float64.
func awaitReported(t *testing.T, b *brokertest.Broker, queue, key string, want any) {
	t.Helper()
	brokertest.Eventually(t, func() error {
		if got := reported(t, b, queue)[key]; got != want {
			return fmt.Errorf("%s of %s is %v instead of %v", key, queue, got, want)
		}
		return nil
	})
}

// holdDeadLetters makes a work queue hold this many dead letters, since the dead-letter exchange is missing.
func holdDeadLetters(t *testing.T, b *brokertest.Broker, queue string, messages int) {
	t.Helper()
	deleted("exchanges", "orders.dlx")(t, b)
	for range messages {
		reject(t, b, queue, "rejected")
	}
	awaitReported(t, b, queue, "messages_dlx", float64(messages))
}

// putPolicy makes another owner's policy for all queues that match.
func putPolicy(t *testing.T, b *brokertest.Broker, kind, name, pattern string, priority int, definition map[string]any) {
	t.Helper()
	b.Call(t, http.MethodPut, b.Path(kind, name), map[string]any{
		"pattern": pattern, "apply-to": "queues", "priority": priority, "definition": definition,
	}, nil)
}

func deleted(kind, name string) func(*testing.T, *brokertest.Broker) {
	return func(t *testing.T, b *brokertest.Broker) {
		t.Helper()
		b.Call(t, http.MethodDelete, b.Path(kind, name), nil, nil)
	}
}

func remade(queue string, arguments map[string]any) func(*testing.T, *brokertest.Broker) {
	return func(t *testing.T, b *brokertest.Broker) {
		t.Helper()
		deleted("queues", queue)(t, b)
		b.DeclareQueue(t, queue, "quorum", arguments)
	}
}

func unbound(source, queue string) func(*testing.T, *brokertest.Broker) {
	return func(t *testing.T, b *brokertest.Broker) {
		t.Helper()
		b.Unbind(t, source, "q", queue)
	}
}

func bound(source, queue, key string, arguments map[string]any) func(*testing.T, *brokertest.Broker) {
	return func(t *testing.T, b *brokertest.Broker) {
		t.Helper()
		b.Bind(t, topology.Binding{Source: source, Destination: queue, RoutingKey: key, Arguments: arguments})
	}
}

// onlyDiffers checks that a plan changes exactly these objects of the topology, in place. An object is its kind and name,
// such as "queues orders.inbox".
type onlyDiffers []string

func (want onlyDiffers) CheckPlan(_ context.Context, req plancheck.CheckPlanRequest, resp *plancheck.CheckPlanResponse) {
	for _, change := range req.Plan.ResourceChanges {
		if change.Address != address {
			continue
		}
		if !change.Change.Actions.Update() {
			resp.Error = fmt.Errorf("planned %v, want an update in place", change.Change.Actions)
			return
		}
		got := acctest.Differences(acctest.TopologyOf(change.Change.Before), acctest.TopologyOf(change.Change.After))
		if expected := slices.Sorted(slices.Values(want)); !slices.Equal(got, expected) {
			resp.Error = fmt.Errorf("the plan changes %q, want %q", got, expected)
		}
		return
	}
	resp.Error = fmt.Errorf("%s is not in the plan", address)
}

// either passes if one of the two passes.
type either [2]onlyDiffers

func (e either) CheckPlan(ctx context.Context, req plancheck.CheckPlanRequest, resp *plancheck.CheckPlanResponse) {
	if e[0].CheckPlan(ctx, req, resp); resp.Error != nil {
		resp.Error = nil
		e[1].CheckPlan(ctx, req, resp)
	}
}
