package retrypipeline_test

import (
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// policyFaults: a policy can be written over.
func policyFaults(n pipeline.Names, t topology.Topology, name string) []fault {
	object, want := "policies "+name, t.Policies[name]
	faults := []fault{{
		object: object, what: "deleted",
		change: mutation{delete: topology.Topology{Policies: map[string]topology.Policy{name: want}}},
	}}
	written := func(what, attribute string, p topology.Policy) {
		faults = append(faults, fault{
			object: object, what: what, attributes: []string{attribute},
			change: mutation{policy: map[string]topology.Policy{name: p}},
		})
	}
	pattern, applyTo, higher, lower := want, want, want, want
	pattern.Pattern = "^(nothing)$"
	written("pattern", "pattern", pattern)
	applyTo.ApplyTo = "all"
	written("apply-to", "apply_to", applyTo)
	higher.Priority += 7
	written("higher priority", "priority", higher)
	lower.Priority = 0
	written("lower priority", "priority", lower)
	for _, a := range alterations(want.Definition, "max-length-bytes", int64(1_000_000_000_000)) {
		p := want
		p.Definition = a.arguments
		written(a.what, "definition "+a.key, p)
	}
	twin := n.QueuePolicy("by hand")
	faults = append(faults, fault{
		object: "policies " + twin, what: "one too many, like " + name,
		change: mutation{policy: map[string]topology.Policy{twin: want}},
	})
	return faults
}
