package pipeline

import (
	"maps"
	"regexp"
	"slices"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// addShield adds the policies that stand between the pipeline and what happens around it. Only one
// policy applies to a queue, so a harmless one keeps an organisation's policies for all queues away
// from the pipeline's own: they would expire, delete, truncate or re-route what these hold.
func addShield(t topology.Topology, p Pipeline) {
	if !p.Shield {
		return
	}
	shield := exactPolicy(shieldDefinition(p.QueueType), p.PolicyPriority)
	shield.Pattern = p.Names().ownPattern()
	t.Policies[p.Names().ShieldPolicy()] = shield
	fallback := exactPolicy(fallbackDefinition(p.Names()), FallbackPriority(p.PolicyPriority))
	addSpread(t, p.Names().FallbackPolicy, fallback, p.NeedFallback())
}

// Guard returns the policies that keep those of others off the pipeline's own queues, by name, in the
// form that covers no other queue.
func Guard(p Pipeline) map[string]topology.Policy {
	t := topology.New()
	addShield(t, p)
	maps.DeleteFunc(t.Policies, func(name string, _ topology.Policy) bool { return name != p.Names().ShieldPolicy() })
	return t.Policies
}

func shieldDefinition(queueType string) topology.Arguments {
	definition := topology.Arguments{"max-length": topology.UnreachableLength}
	if queueType == topology.Quorum {
		// Of quorum queues a policy's overflow beats the argument.
		definition["overflow"] = "reject-publish"
	}
	return definition
}

// ownPattern matches the names that the pipeline gives to its own queues. It covers every delay, so
// that no change of the schedule leaves a queue unprotected for a moment.
func (n Names) ownPattern() string {
	return `^` + regexp.QuoteMeta(string(n)) + `\.(failed|inbox|retry\.([0-9]+(\.[0-9]+)?(h|m|s|ms))+)$`
}

func fallbackDefinition(n Names) topology.Arguments {
	return topology.Arguments{"dead-letter-exchange": n.DeadLetterExchange()}
}

// fallbackPriority is lower than that of the policies it stands in for.
func FallbackPriority(priority int) int { return priority - 1 }

// needFallback lists the work queues whose policy would not apply at all any more, on some version, if an
// application re-created them as classic queues: the broker then falls through to the next policy.
func (p Pipeline) NeedFallback() []string {
	return slices.DeleteFunc(p.AttachedByPolicy(), func(name string) bool {
		return topology.AlwaysApplicable(topology.Classic, p.PolicyContent(name))
	})
}

// ownQueues are the queues that are the pipeline's alone, the retired ones among them.
func (p Pipeline) OwnQueues() map[string]topology.Queue {
	t := topology.New()
	addOwnQueues(&t, p)
	addRetryQueues(&t, p, p.Waits())
	addRetryQueues(&t, p, p.Retired)
	return t.Queues
}

// IsShield tells whether a policy is the shield of a pipeline, there to keep others away.
func IsShield(policy topology.NamedPolicy) bool {
	name := pipelineOf(policy.Name, policy.Policy)
	return name != "" && policy.Name == Names(name).ShieldPolicy() && policy.Definition["max-length"] == topology.UnreachableLength
}
