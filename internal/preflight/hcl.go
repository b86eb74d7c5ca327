package preflight

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// attributes are the work queue's settings as HCL, without those that have their default.
func attributes(w pipeline.WorkQueue) []string {
	var parts []string
	add := func(attribute, value string) { parts = append(parts, attribute+" = "+value) }
	if w.Type != topology.Quorum {
		add("type", fmt.Sprintf("%q", w.Type))
	}
	if w.Declare {
		add("declare", "true")
	}
	if w.Arguments != nil {
		add("arguments_json", hcl(w.Arguments))
	}
	if !w.ByPolicy() {
		add("attach", fmt.Sprintf("%q", w.Attach))
	}
	if w.DeadLetterStrategy != "" {
		add("dead_letter_strategy", fmt.Sprintf("%q", w.DeadLetterStrategy))
	}
	if w.PolicyDefinition != nil {
		add("policy_definition", hcl(w.PolicyDefinition))
	}
	if w.FailedQueue != "" {
		add("failed_queue", fmt.Sprintf("%q", w.FailedQueue))
	}
	if w.ForeignFailedQueue {
		add("declare_failed_queue", "false")
	}
	return parts
}

// writeWorkQueue is the element of work_queues that configures a queue like this.
func writeWorkQueue(name string, w pipeline.WorkQueue) string {
	parts := attributes(w)
	if len(parts) == 0 {
		return fmt.Sprintf("%q = {}", name)
	}
	return fmt.Sprintf("%q = { %s }", name, strings.Join(parts, ", "))
}

// hcl is the arguments as a call of jsonencode.
func hcl(a topology.Arguments) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(a)) {
		value, err := json.Marshal(a[key])
		if err != nil {
			panic("arguments hold JSON values only: " + err.Error())
		}
		parts = append(parts, fmt.Sprintf("%q = %s", key, value))
	}
	return "jsonencode({ " + strings.Join(parts, ", ") + " })"
}
