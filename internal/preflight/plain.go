package preflight

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// CheckExchange finds that an exchange belongs to a pipeline or a delayed exchange.
func CheckExchange(name string, vhost topology.Vhost) Findings {
	return ownedBy("name", "exchange", name, vhost.Topology,
		func(n pipeline.Names) bool { return n.OwnsExchange(name) }, func(n delayed.Names) bool { return n.OwnsExchange(name) })
}

// CheckQueue finds that a queue belongs to a pipeline or a delayed exchange, or is declared by a pipeline.
func CheckQueue(name string, vhost topology.Vhost) Findings {
	return ownedBy("name", "queue", name, vhost.Topology,
		func(n pipeline.Names) bool { return n.CoversQueue(name) || n.Declares(name, vhost.Topology) },
		func(n delayed.Names) bool { return n.CoversQueue(name) })
}

// CheckBinding finds that a binding belongs to a pipeline or a delayed exchange.
func CheckBinding(b topology.Binding, vhost topology.Vhost) Findings {
	return ownedBy("destination", "binding", b.String(), vhost.Topology,
		func(n pipeline.Names) bool { return n.OwnsBinding(b) }, func(n delayed.Names) bool { return n.OwnsBinding(b) })
}

// SharedBinding finds that a binding exists, which an update would then share with its owner.
func SharedBinding(b topology.Binding, vhost topology.Vhost) Findings {
	var f Findings
	if slices.ContainsFunc(vhost.Bindings, b.Equal) {
		f.warn(Path{"routing_key"}, "Binding exists already", "The binding %q is on the broker already. If another resource gives it up in "+
			"the same apply, as with a list used with count, it stays. Otherwise this resource shares it with its owner, and deletes it "+
			"when it is destroyed. Then choose another routing key.", b)
	}
	return f
}

// BindingOfAutoDelete finds that the broker deletes an exchange with the deletion of its last binding.
func BindingOfAutoDelete(b topology.Binding, vhost topology.Vhost) Findings {
	var f Findings
	if vhost.Exchanges[b.Source].AutoDelete {
		f.warn(Path{"source"}, "Exchange deletes itself", "%q is a binding from the auto-delete exchange %q. The broker deletes the exchange "+
			"with its last binding. If the binding is replaced, set create_before_destroy = true in its lifecycle block.", b, b.Source)
	}
	return f
}

// CheckPolicy finds that a policy belongs to a pipeline, an attachment or a delayed exchange.
func CheckPolicy(name string, vhost topology.Vhost) Findings {
	return ownedBy("name", "policy", name, vhost.Topology,
		func(n pipeline.Names) bool { return n.NamesPolicy(name) }, func(n delayed.Names) bool { return n.QueuesPolicy() == name })
}

// ownedBy finds that an object belongs to a pipeline or a delayed exchange.
func ownedBy(
	attribute, kind, object string, vhost topology.Topology,
	ofPipeline func(pipeline.Names) bool, ofDelayed func(delayed.Names) bool,
) Findings {
	var owners []string
	for _, name := range pipeline.Pipelines(vhost) {
		if ofPipeline(pipeline.Names(name)) {
			owners = append(owners, fmt.Sprintf("pipeline %q", name))
		}
	}
	for _, name := range delayed.Found(vhost) {
		if ofDelayed(delayed.Names(name)) {
			owners = append(owners, fmt.Sprintf("delayed exchange %q", name))
		}
	}
	var f Findings
	if len(owners) > 0 {
		f.refuse(Path{attribute}, "Object of another resource",
			"The %s %q belongs to the %s, which creates, changes and deletes it. Remove this resource, or choose another name.",
			kind, object, owners[0])
	}
	return f
}

// CheckPolicyChange finds queues of pipelines and delayed exchanges whose settings would change with another set of policies. Such a
// change can drop, expire or hide their messages.
func CheckPolicyChange(before, after topology.Vhost) Findings {
	var f Findings
	concerned := concerned(before, after)
	if len(concerned) == 0 {
		return nil
	}
	was, becomes := topology.NewLookup(before), topology.NewLookup(after)
	var changed []string
	for _, name := range concerned {
		if change := harm(was.Queue(name), becomes.Queue(name)); change != "" {
			changed = append(changed, name+": "+change)
		}
	}
	if len(changed) > 0 {
		f.refuse(Path{"pattern"}, "Policy on queues of a pipeline",
			"This would change settings of queues of pipelines or delayed exchanges, and messages could be lost:\n%s\n\n"+
				"Leave these keys out, let the pattern leave these queues out, or lower the priority.", Bullets(changed))
	}
	return f
}

// harmless are the keys that decide where and how a queue keeps its messages, and not which ones.
var harmless = []string{
	"consumer-timeout", "ha-promote-on-failure", "ha-promote-on-shutdown", "ha-sync-batch-size", "ha-sync-mode", "initial-cluster-size",
	"max-in-memory-bytes", "max-in-memory-length", "queue-leader-locator", "queue-master-locator", "queue-mode", "queue-version",
	"stream-filter-size-bytes", "stream-max-segment-size-bytes", "target-group-size",
}

// concerned lists the queues of pipelines and delayed exchanges whose names match a policy that differs. To find them first is much
// cheaper than to compile and match all policies for each changed one.
func concerned(before, after topology.Vhost) []string {
	others, delayedExchanges := pipeline.ForeignTo(before, nil), delayed.Found(before.Topology)
	var owned []string
	for name := range before.Queues {
		_, delays := delayed.OwnerOf(name, delayedExchanges, before.Topology)
		if delays || len(others.OwnersOf(name)) > 0 {
			owned = append(owned, name)
		}
	}
	if len(owned) == 0 {
		return nil
	}
	differing := slices.Concat(
		topology.NewMatcher(different(before.Policies, after.Policies)), topology.NewMatcher(different(after.Policies, before.Policies)),
		topology.NewMatcher(different(before.OperatorPolicies, after.OperatorPolicies)),
		topology.NewMatcher(different(after.OperatorPolicies, before.OperatorPolicies)))
	owned = slices.DeleteFunc(owned, func(name string) bool {
		found, doubtful := differing.Queue(name, before.Queues[name].Type, before.Version)
		return len(found)+len(doubtful) == 0
	})
	slices.Sort(owned)
	return owned
}

// different are the policies that are missing in others, or different there.
func different(policies, others map[string]topology.Policy) map[string]topology.Policy {
	found := map[string]topology.Policy{}
	for name, policy := range policies {
		if other, has := others[name]; !has || !policy.Equal(other) {
			found[name] = policy
		}
	}
	return found
}

// harm describes what changes in the settings of a queue and can lose its messages, or is "". If policies have the same priority, the
// broker can apply any of them.
func harm(was, becomes topology.Settings) (found string) {
	for _, after := range becomes.Alternatives() {
		var changes []string
		for _, before := range was.Alternatives() {
			changes = append(changes, harmfulChange(before.Values(), after.Values()))
		}
		if !slices.Contains(changes, "") {
			found = changes[0]
		}
	}
	return found
}

func harmfulChange(before, after topology.Arguments) string {
	keys := maps.Clone(before)
	maps.Copy(keys, after)
	var changed []string
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		relaxed := slices.Contains(topology.Limits, key) && !topology.Tighter(key, before, after) || key == "overflow" && !overflows(after)
		same := topology.Arguments{key: before[key]}.Equal(topology.Arguments{key: after[key]})
		if !same && !relaxed && !slices.Contains(harmless, key) {
			changed = append(changed, fmt.Sprintf("%s %s in place of %s", key, shown(after[key]), shown(before[key])))
		}
	}
	return strings.Join(changed, ", ")
}

// overflows reports whether overflow has a meaning: without a limit and at-least-once dead-lettering, it has none.
func overflows(settings topology.Arguments) bool {
	return bounded(settings) || settings["dead-letter-strategy"] == topology.AtLeastOnce
}

func shown(value any) string {
	if value == nil {
		return "none"
	}
	return topology.ValueText(value)
}

// ExchangeInUse finds what loses messages if an exchange is deleted. A plan does not count the bindings, which the same apply can
// delete before.
func ExchangeInUse(name string, vhost topology.Vhost, planned bool) Findings {
	var uses []string
	if mentioned(name, vhost) {
		lookup := topology.NewLookup(vhost)
		for _, queue := range slices.Sorted(maps.Keys(vhost.Queues)) {
			if exchange, _ := lookup.Queue(queue).Text("dead-letter-exchange"); exchange == name {
				uses = append(uses, fmt.Sprintf("queue %q, as dead-letter exchange", queue))
			}
		}
		for _, exchange := range slices.Sorted(maps.Keys(vhost.Exchanges)) {
			if alternate, _ := lookup.AlternateExchange(exchange); alternate == name {
				uses = append(uses, fmt.Sprintf("exchange %q, as alternate exchange", exchange))
			}
		}
	}
	for _, b := range vhost.Bindings {
		if !planned && (b.Source == name || b.ToExchange && b.Destination == name) {
			uses = append(uses, "binding "+b.String())
		}
	}
	if len(uses) == 0 {
		return nil
	}
	return Findings{{
		Problem: problem(Path{"name"}, "Exchange is in use", "These objects need the exchange %q, and would lose messages without it:\n%s",
			name, Bullets(uses)),
		Cause:     Missing,
		OnlyPlan:  "\n\nApply fails unless something else in the same apply changes or deletes them first.",
		OnlyApply: nothingChanged + " Change or delete them first.",
	}}
}

// mentioned reports whether an argument or a policy has the exchange as dead-letter or alternate exchange. To match all policies takes
// long, and few exchanges are mentioned when they are deleted.
func mentioned(exchange string, vhost topology.Vhost) bool {
	for _, queue := range vhost.Queues {
		if queue.Arguments["x-dead-letter-exchange"] == exchange {
			return true
		}
	}
	for _, other := range vhost.Exchanges {
		if other.Arguments["alternate-exchange"] == exchange {
			return true
		}
	}
	for _, policies := range []map[string]topology.Policy{vhost.Policies, vhost.OperatorPolicies} {
		for _, policy := range policies {
			if policy.Definition["dead-letter-exchange"] == exchange || policy.Definition["alternate-exchange"] == exchange {
				return true
			}
		}
	}
	return false
}
