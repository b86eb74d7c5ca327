package preflight

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// checkPolicies finds other policies that match the queue, because only one policy applies.
func (q liveWorkQueue) checkPolicies(f *Findings) {
	for _, doubtful := range q.doubtful {
		f.warn(q.at(), "Policy whose pattern cannot be evaluated",
			"The provider cannot tell whether policy %q with the pattern %q matches queue %q. "+
				"If it does, only the policy of higher priority applies. Write the pattern more simply.", doubtful.Name, doubtful.Pattern, q.name)
	}
	for _, policy := range strongest(q.policies) {
		if policy.Priority >= q.pipeline.PolicyPriority {
			f.refuse(Path{"policy_priority"}, "A higher-priority policy overrides the pipeline's",
				"Policy %q with priority %d applies to queue %q, and only one policy can apply. The pipeline's policy would not "+
					"apply, or it would be undefined which one does, and rejected messages would be lost. "+
					"Lower the priority of %q below %d, or write\n\n  policy_priority = %d",
				policy.Name, policy.Priority, q.name, policy.Name, q.pipeline.PolicyPriority, policy.Priority+1)
			return
		}
		q.checkShadowed(f, policy, Wrong)
	}
}

// checkShadowed finds keys of another policy that no longer apply because of the pipeline's policy. The user must write
// them down, since the policy can change between plan and apply. If the queue was attached before, the keys are already
// lost, so it only warns.
func (q liveWorkQueue) checkShadowed(f *Findings, shadowed topology.NamedPolicy, cause Cause) {
	ours, accounted := q.pipeline.PolicyContent(q.name), q.pipeline.WrittenKeys(q.WorkQueue)
	lost, different := topology.Arguments{}, []string{}
	for _, key := range slices.Sorted(maps.Keys(shadowed.Definition)) {
		value := shadowed.Definition[key]
		written, isWritten := accounted[key]
		switch {
		case topology.Arguments{key: value}.Equal(topology.Arguments{key: ours[key]}):
		case isWritten && written == nil:
		case isWritten:
			different = append(different, fmt.Sprintf("%s is %s there, %s here", key, topology.ValueText(value), topology.ValueText(written)))
		case key == "overflow" && ours[key] != nil:
		case key == "max-length" && unreachable(value): // another owner's policy has this value temporarily while it is applied
		default:
			lost[key] = value
		}
	}
	if len(different) > 0 {
		f.warn(q.at("policy_definition_json"), "The replaced policy has other values",
			"Policy %q, which the pipeline's policy replaces on queue %q, has other values:\n%s\n\n"+
				"To keep its values, write them here in policy_definition_json.", shadowed.Name, q.name, Bullets(different))
	}
	if len(lost) == 0 {
		return
	}
	f.add(q.orNotice(cause), q.at(), "Keys of another policy would no longer apply",
		"Policy %q applies to queue %q and sets\n%s\n\n"+
			"Only one policy applies to a queue, so with the pipeline's policy these keys would no longer apply. "+
			"Copy them into policy_definition_json, or set them to null to drop them:\n\n  %s%s",
		shadowed.Name, q.name, Bullets(assignments(lost)), q.withKeys(lost, shadowed.Definition), remarks(lost))
}

// withKeys returns the HCL line that keeps or drops the keys.
func (q liveWorkQueue) withKeys(lost, shadowed topology.Arguments) string {
	keys, entry := topology.Arguments{}, q.WorkQueue
	maps.Copy(keys, q.PolicyDefinition)
	maps.Copy(keys, lost)
	if bounded(lost) && q.Type == topology.Quorum {
		entry.DeadLetterStrategy = topology.AtMostOnce
		if overflow, has := shadowed["overflow"]; has {
			keys["overflow"] = overflow
		}
	}
	for key := range lost {
		if unusableKey(key, lost[key], entry, q.pipeline.BrokerKeys(q.name)) != "" {
			keys[key] = nil
		}
	}
	entry.PolicyDefinition = keys
	return q.write(entry)
}

func remarks(lost topology.Arguments) string {
	var text strings.Builder
	if _, has := lost["expires"]; has {
		text.WriteString("\n\nexpires deletes an unused queue with its messages: drop it.")
	}
	if exchange, has := lost["dead-letter-exchange"]; has {
		fmt.Fprintf(&text, "\n\nDead letters of the queue go to the exchange %q today; in the pipeline they no longer do.",
			topology.ValueText(exchange))
	}
	return text.String()
}
