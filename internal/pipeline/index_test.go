package pipeline

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// tangled returns a vhost with pipelines. Some of them share queues, lost an object or were changed by hand.
func tangled(random *rand.Rand) (topology.Vhost, []Pipeline) {
	vhost := topology.Vhost{Topology: topology.New(), Version: topology.Version{Major: 4, Minor: 3}, Nodes: 1}
	var all []Pipeline
	queues := []string{"work", "work.a", "a.inbox", "b.retry.5s", "audit", "a.b.failed"}
	for _, name := range []string{"a", "b", "a.b", "b.retry.1s"} {
		p := orders()
		p.Name, p.WorkQueues = name, map[string]WorkQueue{}
		for range 1 + random.IntN(3) {
			p.WorkQueues[queues[random.IntN(len(queues))]] = WorkQueue{Type: topology.Quorum}
		}
		all = append(all, p)
		if random.IntN(8) > 0 {
			vhost.Topology = topology.Merge(vhost.Topology, p.Expand())
		}
		if random.IntN(3) == 0 {
			a := Attachment{Pipeline: name, Queue: queues[random.IntN(len(queues))], WorkQueue: WorkQueue{Type: topology.Quorum}}
			vhost.Topology = topology.Merge(vhost.Topology, a.Expand())
		}
	}
	for _, queue := range queues {
		if random.IntN(4) > 0 {
			vhost.Queues[queue] = topology.Queue{Type: topology.Quorum}
		}
	}
	vhost.Policies["org"] = topology.Policy{Pattern: ".*", ApplyTo: "all", Priority: 1, Definition: topology.Arguments{"max-length": int64(5)}}
	tangle(random, vhost.Topology)
	if random.IntN(4) == 0 {
		vhost.Bindings = append(vhost.Bindings, topology.Binding{
			Source: ".failed", Destination: ".failed", Arguments: topology.Arguments{DefinitionArgument: "of no pipeline"},
		})
	}
	for range random.IntN(6) {
		b := topology.Binding{
			Source: anyOf(random, vhost.Exchanges), Destination: anyOf(random, vhost.Queues), RoutingKey: ReturnKey(anyOf(random, vhost.Queues)),
		}
		if random.IntN(4) == 0 {
			b.Destination, b.ToExchange = anyOf(random, vhost.Exchanges), true
		}
		vhost.Bindings = append(vhost.Bindings, b)
	}
	return vhost, all
}

// tangle changes a policy and removes objects.
func tangle(random *rand.Rand, t topology.Topology) {
	name := anyOf(random, t.Policies)
	policy := t.Policies[name]
	policy.ApplyTo, policy.Pattern = "all", ".*"
	t.Policies[name] = policy
	for range random.IntN(3) {
		delete(t.Policies, anyOf(random, t.Policies))
		delete(t.Queues, anyOf(random, t.Queues))
	}
}

func anyOf[T any](random *rand.Rand, objects map[string]T) string {
	names := slices.Sorted(maps.Keys(objects))
	if len(names) == 0 {
		return "none"
	}
	return names[random.IntN(len(names))]
}

// Each question about a pipeline has the same answer in the part of the vhost near it.
func TestNearAnswersLikeTheWholeVhost(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	for range 100 {
		whole, all := tangled(random)
		index := NewIndex(whole)
		for i, p := range all {
			prior := all[(i+random.IntN(2))%len(all)]
			queues := slices.AppendSeq(slices.Collect(maps.Keys(p.WorkQueues)), maps.Keys(prior.WorkQueues))
			near := index.Near([]string{p.Name, prior.Name}, queues)
			for what, answer := range map[string]func(topology.Vhost) any{
				"Owned":      func(v topology.Vhost) any { return p.Owned(v.Topology) },
				"AfterApply": func(v topology.Vhost) any { return p.AfterApply(&prior, v) },
				"Attached":   func(v topology.Vhost) any { return Attached(p.Names(), v.Topology) },
				"Recover": func(v topology.Vhost) any {
					recovered, err := Recover(p.Name, "/", v.Topology)
					return fmt.Sprintf("%+v, %v", recovered, err)
				},
				"Foreign": func(v topology.Vhost) any { return foreignAnswers(ForeignTo(v, []string{p.Name}), queues) },
				"defined": func(v topology.Vhost) any { return slices.Contains(Pipelines(v.Topology), p.Name) },
			} {
				if diff := cmp.Diff(answer(whole), answer(near), cmpopts.EquateEmpty(), cmpopts.SortSlices(lessBinding)); diff != "" {
					t.Fatalf("%s of %s:\n%s", what, p.Name, diff)
				}
			}
		}
	}
}

func lessBinding(a, b topology.Binding) bool { return a.String() < b.String() }

func foreignAnswers(f Foreign, queues []string) any {
	owners := map[string][]Owner{}
	for _, queue := range queues {
		owners[queue] = f.OwnersOf(queue)
	}
	return []any{f.Policies, owners}
}
