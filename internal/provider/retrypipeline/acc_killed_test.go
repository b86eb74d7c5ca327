package retrypipeline_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

// attributes are the arguments of a pipeline.
type attributes map[string]any

// pipelineCore is the pipeline "orders" with these attributes. Without delays, it has a delay of 5s.
func pipelineCore(b *brokertest.Broker, more attributes) acctest.Core {
	c := acctest.Core{Type: resourceType, Times: acctest.Quick()}
	reconfigure(&c, b, more)
	return c
}

func reconfigure(c *acctest.Core, b *brokertest.Broker, more attributes) {
	c.Config = map[string]any{"name": "orders", "vhost": b.Vhost, "delays": []string{"5s"}}
	maps.Copy(c.Config, more)
}

// declaring has a work queue "declared" with these attributes, which the pipeline declares.
func declaring(more attributes) attributes {
	queue := attributes{"declare": true}
	maps.Copy(queue, more)
	return attributes{"work_queues": attributes{"declared": queue}}
}

// A creation is killed at each write. The next apply finishes it, or names the import that is needed first.
func TestAccEveryRelease_CreationKilledAtAnyWriteCanBeFinished(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		attributes
		guarded bool
	}{
		"alone":               {attributes: attributes{"engine": "worker", "delays": []string{"5s", "30s", "5m"}}},
		"with others' policy": {attributes: attributes{"engine": "worker", "delays": []string{"5s", "30s", "5m"}}, guarded: true},
		"engine native":       {attributes: attributes{"engine": "native"}},
		"engine consumer":     {attributes: attributes{"engine": "consumer"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			brokertest.WithoutVhost(t).Needs(t, brokertest.Engine(fmt.Sprint(c.attributes["engine"])))
			acctest.AtEachWrite(t, func(t *testing.T, write int) int {
				t.Helper()
				b := brokertest.New(t)
				if c.guarded {
					foreign := map[string]any{"pattern": ".*", "apply-to": "queues", "priority": 1, "definition": map[string]any{"max-length": 5}}
					b.Call(t, http.MethodPut, b.Path("policies", "foreign"), foreign, nil)
				}
				core := pipelineCore(b, c.attributes)
				writes := core.Killed(t, b, acctest.At(write), acctest.Change(t))
				core.Finish(t, importID(b.Vhost, "orders"))
				core.RequireEmptyPlan(t)
				return writes
			})
		})
	}
}

// Changes and destroys are killed in the same way. The plan after the next apply is empty.
func TestAcc_ChangeKilledAtAnyWriteCanBeFinished(t *testing.T) {
	t.Parallel()
	declared := declaring(nil)
	with := func(more attributes) attributes {
		all := maps.Clone(declared)
		maps.Copy(all, more)
		return all
	}
	for name, c := range map[string]struct {
		before, after attributes
		destroyed     bool
		// next is the configuration after the kill.
		next attributes
	}{
		"schedule": {
			before: with(attributes{"delays": []string{"5s", "30s"}}), next: with(attributes{"delays": []string{"5s", "30s"}}),
			after: with(attributes{"delays": []string{"5s", "1m"}, "max_attempts": 7}),
		},
		"work queue": {before: declared, next: declared},
		// Leftovers of the other type would prevent the change, as the error says.
		"type":    {after: attributes{"queue_type": "classic"}, next: attributes{"queue_type": "classic"}},
		"destroy": {before: declared, destroyed: true, next: declared},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			acctest.AtEachWrite(t, func(t *testing.T, write int) int {
				t.Helper()
				b := brokertest.New(t)
				core := pipelineCore(b, c.before)
				core.MayReplace = name == "type"
				core.MustApply(t)
				change := acctest.Change(t)
				if c.destroyed {
					change = acctest.Destruction(t)
				}
				reconfigure(&core, b, c.after)
				writes := core.Killed(t, b, acctest.At(write), change)
				reconfigure(&core, b, c.next)
				core.Finish(t, importID(b.Vhost, "orders"))
				core.Settled(t)
				return writes
			})
		})
	}
}

// The creation, exchange and removal of a work queue's failed queue are killed in the same way. The same configuration
// finishes the change, and messages go to the configured queue.
func TestAcc_FailedQueueKilledAtAnyWriteCanBeFinished(t *testing.T) {
	t.Parallel()
	none := declaring(nil)
	one, other := declaring(attributes{"failed_queue": attributes{"name": "failures"}}), declaring(attributes{"failed_queue": attributes{"name": "other failures"}})
	for name, c := range map[string]struct {
		before, after attributes
		parkedIn      string
	}{
		"created": {nil, one, "failures"},
		"added":   {none, one, "failures"},
		"moved":   {one, other, "other failures"},
		"removed": {one, none, "orders.failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			acctest.AtEachWrite(t, func(t *testing.T, write int) int {
				t.Helper()
				b := brokertest.New(t)
				core := pipelineCore(b, c.before)
				if c.before != nil {
					core.MustApply(t)
				}
				reconfigure(&core, b, c.after)
				writes := core.Killed(t, b, acctest.At(write), acctest.Change(t))
				core.Finish(t, importID(b.Vhost, "orders"))
				core.RequireEmptyPlan(t)
				m := persistent("parked")
				m.Headers = map[string]any{"CC": []any{"failed:declared"}}
				b.Publish(t, "orders.failed.route", "key", m)
				expectIn(t, b, c.parkedIn, "parked")
				if c.parkedIn != "failures" && slices.Contains(acctest.Names(t, b, "queues"), "failures") {
					t.Error("the old failed queue is still there")
				}
				return writes
			})
		})
	}
}

// If an exchange was changed by hand, it is re-created, and all of its bindings are deleted for a moment. The next plan shows
// other owners' bindings that are missing, and the next apply restores them.
func TestAcc_ExchangeKilledAtAnyWriteOfItsReturnKeepsBindingsOfOthers(t *testing.T) {
	t.Parallel()
	type exchange struct{ engine, name string }
	cases := []exchange{{"worker", "orders.retry"}, {"worker", "orders.return"}}
	for _, engine := range []string{"native", "consumer"} {
		for name := range (pipeline.Pipeline{Name: "orders", Engine: engine}).Expand().Exchanges {
			cases = append(cases, exchange{engine, name})
		}
	}
	for _, c := range cases {
		t.Run(c.engine+" "+c.name, func(t *testing.T) {
			t.Parallel()
			brokertest.WithoutVhost(t).Needs(t, brokertest.Engine(c.engine))
			acctest.AtEachWrite(t, func(t *testing.T, write int) int {
				t.Helper()
				b := brokertest.New(t)
				core := pipelineCore(b, attributes{"engine": c.engine})
				core.MustApply(t)
				deleted("exchanges", c.name)(t, b)
				b.Call(t, http.MethodPut, b.Path("exchanges", c.name), map[string]any{"type": "topic"}, nil)
				b.DeclareQueue(t, "work listener", "quorum", nil)
				ofOthers := b.Path("bindings", "e", c.name, "q", "work listener")
				b.Call(t, http.MethodPost, ofOthers, map[string]any{"routing_key": "#"}, nil)
				isBound := func() bool {
					status, found := b.Request(t, http.MethodGet, ofOthers, nil)
					return status == http.StatusOK && strings.Contains(string(found), `"#"`)
				}
				writes := core.Killed(t, b, acctest.At(write), acctest.Change(t))
				if !isBound() {
					plan, err := core.Plan(t.Context())
					if err != nil || !strings.Contains(fmt.Sprint(plan.Refreshed, plan.After), "retry-unbound") {
						t.Errorf("%v: the plan does not show what is noted: %v", err, plan.Refreshed)
					}
				}
				core.MustApply(t)
				core.RequireEmptyPlan(t)
				if !isBound() {
					t.Error("the binding of others is gone")
				}
				return writes
			})
		})
	}
}

// During a proof, a declared work queue loses all its bindings, including the one that marks it as declared. Whatever the
// next configuration says about it, even if the state is lost, the plan after the next apply is empty. That apply deletes the
// queue only if the state has it and the configuration does not.
func TestAcc_ProofKilledBeforeTheQueueIsReleased(t *testing.T) {
	t.Parallel()
	for _, change := range []string{"removal", "destroy"} {
		for next, attributes := range map[string]attributes{
			"released": {"work_queues": attributes{"declared": attributes{}}}, "absent": nil, "declared": declaring(nil),
		} {
			for _, stateLost := range []bool{false, true} {
				if stateLost && change == "destroy" {
					continue // there is no definition to import
				}
				t.Run(fmt.Sprintf("%s, then %s, state lost: %t", change, next, stateLost), func(t *testing.T) {
					t.Parallel()
					b := brokertest.New(t)
					core := pipelineCore(b, declaring(nil))
					core.MustApply(t)
					do := acctest.Change(t)
					if change == "destroy" {
						do = acctest.Destruction(t)
					}
					reconfigure(&core, b, nil)
					unbound := false
					core.Killed(t, b, func(_ int, r *http.Request) bool {
						unbound = r.Method == http.MethodDelete && strings.Contains(r.URL.Path, "/q/declared/")
						return unbound
					}, do)
					if !unbound {
						t.Fatal("the queue was never unbound")
					}
					if stateLost {
						core = pipelineCore(b, nil)
						require.NoError(t, core.Import(t.Context(), importID(b.Vhost, "orders")))
					}
					reconfigure(&core, b, attributes)
					core.MustApply(t)
					core.RequireEmptyPlan(t)
					if is := slices.Contains(acctest.Names(t, b, "queues"), "declared"); is == (next == "absent" && !stateLost) {
						t.Errorf("the queue is there: %t", is)
					}
				})
			}
		}
	}
}
