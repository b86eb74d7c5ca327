package topology

import (
	"regexp"
	"slices"
)

// shieldLength is a length limit that no queue reaches.
const shieldLength = int64(1_000_000_000)

// addShield adds the policies that stand between the pipeline and what happens around it. Only one
// policy applies to a queue, so a harmless one keeps an organisation's policies for all queues away
// from the pipeline's own: they would expire, delete, truncate or re-route what these hold.
func addShield(t Topology, p Pipeline) {
	if !p.Shield {
		return
	}
	shield := exactPolicy(shieldDefinition(p.QueueType), p.PolicyPriority)
	shield.Pattern = p.Names().ownPattern()
	t.Policies[p.Names().ShieldPolicy()] = shield
	fallback := exactPolicy(fallbackDefinition(p.Names()), fallbackPriority(p.PolicyPriority))
	addSpread(t, p.Names().FallbackPolicy, fallback, p.needFallback())
}

func shieldDefinition(queueType string) Arguments {
	definition := Arguments{"max-length": shieldLength}
	if queueType == Quorum {
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

func fallbackDefinition(n Names) Arguments {
	return Arguments{"dead-letter-exchange": n.DeadLetterExchange()}
}

// fallbackPriority is lower than that of the policies it stands in for.
func fallbackPriority(priority int) int { return priority - 1 }

// needFallback lists the work queues whose policy would not apply at all any more, on some version, if an
// application re-created them as classic queues: the broker then falls through to the next policy.
func (p Pipeline) needFallback() []string {
	return slices.DeleteFunc(p.attachedByPolicy(), func(name string) bool {
		return alwaysApplicable(Classic, p.policyDefinition(name))
	})
}

// ownQueues are the queues that are the pipeline's alone, the retired ones among them.
func (p Pipeline) ownQueues() map[string]Queue {
	t := newTopology()
	addOwnQueues(&t, p)
	addRetryQueues(&t, p, p.Waits())
	addRetryQueues(&t, p, p.Retired)
	return t.Queues
}
