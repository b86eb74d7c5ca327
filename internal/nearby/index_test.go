package nearby_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/audit"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/nearby"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/preflight"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// tangled returns a vhost with pipelines and a delayed exchange, among objects of others. Some of them share queues, lost an object
// or were changed by hand.
func tangled(r *rand.Rand) (topology.Vhost, []pipeline.Pipeline, delayed.Exchange) {
	vhost := topology.Vhost{Name: "/", Topology: topology.New(), Version: topology.Version{Major: 4, Minor: 3}, Nodes: 1}
	vhost.Exchanges[""] = topology.Exchange{Type: "direct"}
	queues := []string{"work", "work.a", "a.inbox", "b.retry.5s", "b.retry.5", "audit", "a.b.failed", "later.delay.inbox", "f1"}
	var all []pipeline.Pipeline
	for _, name := range []string{"a", "b", "a.b", "b.retry.1s"} {
		p := pipelineOf(r, name, queues)
		all = append(all, p)
		if r.IntN(8) > 0 {
			vhost.Topology = topology.Merge(vhost.Topology, p.Expand())
		}
		if r.IntN(3) == 0 {
			vhost.Topology = topology.Merge(vhost.Topology, attachmentOf(r, name, queues).Expand())
		}
	}
	later := delayed.Exchange{
		Name: "later", Vhost: "/", Type: "topic", PolicyPriority: delayed.DefaultPolicyPriority,
		MaxDelay: pipeline.Delay{Wait: 5 * time.Second, Spelling: "5s"}, Precision: pipeline.Delay{Wait: time.Second, Spelling: "1s"},
	}
	if r.IntN(2) == 0 {
		vhost.Topology = topology.Merge(vhost.Topology, later.Expand())
	}
	for _, queue := range queues {
		if r.IntN(4) > 0 {
			vhost.Queues[queue] = topology.Queue{Type: topology.Quorum}
		}
	}
	addOthers(r, vhost.Topology)
	tangle(r, vhost.Topology)
	if r.IntN(4) == 0 {
		vhost.Bindings = append(vhost.Bindings, topology.Binding{
			Source: ".failed", Destination: ".failed", Arguments: topology.Arguments{pipeline.DefinitionArgument: "of no pipeline"},
		})
	}
	for range r.IntN(12) {
		vhost.Bindings = append(vhost.Bindings, bindingOf(r, vhost.Topology))
	}
	return vhost, all, later
}

func pipelineOf(r *rand.Rand, name string, queues []string) pipeline.Pipeline {
	p := pipeline.Pipeline{
		Name: name, Vhost: "/", MaxAttempts: 4, RetryOn: []string{"rejected"}, QueueType: topology.Quorum,
		PolicyPriority: pipeline.DefaultPolicyPriority, WorkQueues: map[string]pipeline.WorkQueue{},
		Delays: []pipeline.Delay{{Wait: 5 * time.Second, Spelling: "5s"}, {Wait: time.Minute, Spelling: "60s"}},
	}
	for range 1 + r.IntN(3) {
		w := pipeline.WorkQueue{Type: topology.Quorum, Attach: pipeline.AttachPolicy, Declare: r.IntN(4) == 0}
		if r.IntN(3) == 0 {
			w.FailedQueue, w.ForeignFailedQueue = oneOf(r, "dead", "audit", "f0"), r.IntN(2) == 0
		}
		if r.IntN(5) == 0 {
			w.TakeOverFrom, w.Declare = oneOf(r, "a", "b"), false
		}
		p.WorkQueues[oneOf(r, queues...)] = w
	}
	return p
}

func attachmentOf(r *rand.Rand, name string, queues []string) pipeline.Attachment {
	return pipeline.Attachment{
		Pipeline: name, Vhost: "/", Queue: oneOf(r, queues...), PolicyPriority: pipeline.DefaultPolicyPriority,
		WorkQueue: pipeline.WorkQueue{Type: topology.Quorum, Attach: pipeline.AttachPolicy, FailedQueue: oneOf(r, "", "dead")},
	}
}

// addOthers adds objects of others, some of which lead to pipelines.
func addOthers(r *rand.Rand, t topology.Topology) {
	for i := range r.IntN(4) {
		e := topology.Exchange{Type: oneOf(r, "direct", "topic", "fanout", "headers")}
		if r.IntN(3) == 0 {
			e.Arguments = topology.Arguments{"alternate-exchange": exchangeOf(r)}
		}
		t.Exchanges[fmt.Sprint("e", i)] = e
	}
	for i := range r.IntN(5) {
		q := topology.Queue{Type: oneOf(r, topology.Quorum, topology.Classic, "stream"), Arguments: topology.Arguments{}}
		if r.IntN(2) == 0 {
			q.Arguments["x-dead-letter-exchange"] = exchangeOf(r)
		}
		if r.IntN(3) == 0 {
			q.Arguments["x-dead-letter-routing-key"] = oneOf(r, "work", "k", "f1")
		}
		t.Queues[fmt.Sprint("f", i)] = q
	}
	t.Policies["org"] = topology.Policy{Pattern: ".*", ApplyTo: "all", Priority: 1, Definition: topology.Arguments{"max-length": int64(5)}}
	maps.Copy(t.Policies, policiesOf(r))
}

func exchangeOf(r *rand.Rand) string {
	return oneOf(r, "e0", "e1", "e2", "", "a.dlx", "b.return", "b.failed", "later", "later.deliver", "gone")
}

// policiesOf returns policies of others.
func policiesOf(r *rand.Rand) map[string]topology.Policy {
	policies := map[string]topology.Policy{}
	for i := range r.IntN(4) {
		policies[fmt.Sprint("team", i)] = topology.Policy{
			Pattern: oneOf(r, "^work", "^f", "^a", "^e", "retry", "^later"), ApplyTo: oneOf(r, "all", "queues", "exchanges"), Priority: r.IntN(2) * 2000,
			Definition: topology.Arguments{
				oneOf(r, "dead-letter-exchange", "dead-letter-exchange", "alternate-exchange", "dead-letter-routing-key"): exchangeOf(r),
				"message-ttl": int64(9),
			},
		}
	}
	return policies
}

// tangle changes a policy and removes objects.
func tangle(r *rand.Rand, t topology.Topology) {
	name := anyOf(r, t.Policies)
	policy := t.Policies[name]
	policy.ApplyTo, policy.Pattern = "all", ".*"
	t.Policies[name] = policy
	for range r.IntN(3) {
		delete(t.Policies, anyOf(r, t.Policies))
		delete(t.Queues, anyOf(r, t.Queues))
		delete(t.Exchanges, anyOf(r, t.Exchanges))
	}
}

func bindingOf(r *rand.Rand, t topology.Topology) topology.Binding {
	b := topology.Binding{
		Source: anyOf(r, t.Exchanges), Destination: anyOf(r, t.Queues),
		RoutingKey: oneOf(r, pipeline.ReturnKey(anyOf(r, t.Queues)), "k", "k.*", "work"),
	}
	if r.IntN(4) == 0 {
		b.Destination, b.ToExchange = anyOf(r, t.Exchanges), true
	}
	return b
}

func oneOf(r *rand.Rand, texts ...string) string { return texts[r.IntN(len(texts))] }

func anyOf[T any](r *rand.Rand, objects map[string]T) string {
	return oneOf(r, append(slices.Sorted(maps.Keys(objects)), "none")...)
}

// Each question about a pipeline or a delayed exchange has the same answer in the part of the vhost near it.
func TestNearAnswersLikeTheWholeVhost(t *testing.T) {
	t.Parallel()
	smaller := 0
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 4))
		whole, all, later := tangled(r)
		live := whole.Topology // similar names can belong to those that are left out
		whole.Whole = &live
		index := nearby.NewIndex(whole)
		for i, p := range all {
			prior := all[(i+r.IntN(2))%len(all)]
			queues := append(queuesOf(p), queuesOf(prior)...)
			center := nearby.Center{Pipelines: []string{p.Name, prior.Name}, Queues: queues}.With(p.Expand())
			near := index.Near(center)
			compare(t, fmt.Sprint(seed, " ", p.Name, " ", prior.Name), whole, near, aboutPipeline(p, prior, queues))
			center.Policies = policiesOf(r)
			near = index.Near(center)
			compare(t, fmt.Sprint(seed, " planned policies, ", p.Name, " ", prior.Name),
				withPolicies(whole, center.Policies), withPolicies(near, center.Policies), aboutPipeline(p, prior, queues))
			if len(near.Queues) < len(whole.Queues) {
				smaller++
			}
			a := attachmentOf(r, p.Name, queues)
			near = index.Near(nearby.Center{Pipelines: []string{p.Name}, Queues: []string{a.Queue, a.WorkQueue.FailedQueue}})
			compare(t, fmt.Sprint(seed, " attachment to ", p.Name), whole, near, aboutAttachment(a))
		}
		near := index.Near(nearby.Center{DelayedExchanges: []string{later.Name}}.With(later.Expand()))
		compare(t, fmt.Sprint(seed, " later"), whole, near, aboutDelayed(later))
		if t.Failed() {
			return
		}
	}
	if smaller < 20 {
		t.Errorf("only %d parts are smaller than their vhosts", smaller)
	}
}

func withPolicies(vhost topology.Vhost, more map[string]topology.Policy) topology.Vhost {
	vhost.Policies = maps.Clone(vhost.Policies)
	maps.Copy(vhost.Policies, more)
	return vhost
}

type questions map[string]func(topology.Vhost) any

func compare(t *testing.T, of string, whole, near topology.Vhost, asked questions) {
	t.Helper()
	for what, answer := range asked {
		diff := cmp.Diff(answer(whole), answer(near), cmpopts.EquateEmpty(), cmpopts.SortSlices(lessBinding), cmpopts.IgnoreUnexported(audit.Finding{}))
		if diff != "" {
			t.Errorf("%s of %s:\n%s", what, of, diff)
		}
	}
}

func lessBinding(a, b topology.Binding) bool { return a.String() < b.String() }

func queuesOf(p pipeline.Pipeline) []string {
	return append(slices.Collect(maps.Keys(p.WorkQueues)), p.FailedQueues()...)
}

func aboutPipeline(p, prior pipeline.Pipeline, queues []string) questions {
	return questions{
		"Owned":    func(v topology.Vhost) any { return p.Owned(v.Topology) },
		"Attached": func(v topology.Vhost) any { return pipeline.Attached(p.Names(), v.Topology) },
		"Recover": func(v topology.Vhost) any {
			recovered, err := pipeline.Recover(p.Name, "/", v.Topology)
			return fmt.Sprintf("%+v, %v", recovered, err)
		},
		"ForeignTo": func(v topology.Vhost) any { return foreignAnswers(pipeline.ForeignTo(v, []string{p.Name}), queues) },
		"defined":   func(v topology.Vhost) any { return slices.Contains(pipeline.Pipelines(v.Topology), p.Name) },
		"CheckLive": func(v topology.Vhost) any { return preflight.CheckLive(p, &prior, v) },
		"new":       func(v topology.Vhost) any { return preflight.CheckLive(p, nil, v) },
		"audit": func(v topology.Vhost) any {
			return audit.Pipeline(p.AfterApply(&prior, v), p.Names(), slices.Sorted(maps.Keys(p.WorkQueues)))
		},
		"queues": func(v topology.Vhost) any {
			return []any{
				p.Effects(nil, v.Topology).Detached, prior.Effects(&p, v.Topology).Detached, topology.Distinct(p.Effects(nil, v.Topology).Released),
				topology.Distinct(prior.Effects(&p, v.Topology).Released), p.Effects(nil, v.Topology).FailedQueues,
			}
		},
		"BindingsThatGo": func(v topology.Vhost) any { return p.Effects(nil, v.Topology).Bindings },
		"Dropped": func(v topology.Vhost) any {
			return topology.DroppedDeadLetters(p.Effects(nil, v.Topology).Detached, p.Owned(v.Topology), topology.New(), v, nil)
		},
	}
}

func aboutAttachment(a pipeline.Attachment) questions {
	return questions{
		"Owned":     func(v topology.Vhost) any { return a.Owned(v.Topology) },
		"CheckLive": func(v topology.Vhost) any { return preflight.CheckLiveAttachment(a, nil, v) },
		"again":     func(v topology.Vhost) any { return preflight.CheckLiveAttachment(a, &a, v) },
		"queues": func(v topology.Vhost) any {
			return []any{topology.Distinct(a.Effects(nil, v.Topology).Released), a.Effects(nil, v.Topology).FailedQueues}
		},
	}
}

func aboutDelayed(e delayed.Exchange) questions {
	n := e.Names()
	return questions{
		"Owned":     func(v topology.Vhost) any { return e.Owned(v.Topology) },
		"CheckLive": func(v topology.Vhost) any { return preflight.CheckLiveDelayedExchange(e, &e, v) },
		"new":       func(v topology.Vhost) any { return preflight.CheckLiveDelayedExchange(e, nil, v) },
		"audit":     func(v topology.Vhost) any { return audit.DelayedExchange(e.AfterApply(&e, v), n) },
		"bindings": func(v topology.Vhost) any {
			return []any{e.Effects(nil, v.Topology).Bindings, n.Foreign(n.DeliverExchange(), v.Topology)}
		},
	}
}

func foreignAnswers(f pipeline.Foreign, queues []string) any {
	owners := map[string][]pipeline.QueueOwner{}
	for _, queue := range queues {
		owners[queue] = f.OwnersOf(queue)
	}
	return []any{f.Policies, owners}
}
