package preflight

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclwrite"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// attributes returns the work queue's settings as HCL, without defaults.
func attributes(w pipeline.WorkQueue) []string {
	var parts []string
	add := func(attribute, value string) { parts = append(parts, attribute+" = "+value) }
	if w.Type != topology.Quorum {
		add("type", literal(w.Type))
	}
	if w.Declare {
		add("declare", "true")
	}
	if w.Arguments != nil {
		add("arguments_json", hcl(w.Arguments))
	}
	if !w.ByPolicy() {
		add("attach", literal(w.Attach))
	}
	if w.DeadLetterStrategy != "" {
		add("dead_letter_strategy", literal(w.DeadLetterStrategy))
	}
	if w.PolicyDefinition != nil {
		add("policy_definition_json", hcl(w.PolicyDefinition))
	}
	switch {
	case w.DeclaresFailedQueue():
		add("failed_queue", "{ name = "+literal(w.FailedQueue)+" }")
	case w.FailedQueue != "":
		add("failed_queue", "{ name = "+literal(w.FailedQueue)+", declare = false }")
	}
	return parts
}

// writeWorkQueue returns the element of work_queues for this queue.
func writeWorkQueue(name string, w pipeline.WorkQueue) string {
	if parts := attributes(w); len(parts) > 0 {
		return literal(name) + " = { " + strings.Join(parts, ", ") + " }"
	}
	return literal(name) + " = {}"
}

// hcl returns the arguments as a call of jsonencode on one line.
func hcl(a topology.Arguments) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(a)) {
		parts = append(parts, literal(key)+" = "+literal(a[key]))
	}
	return "jsonencode({ " + strings.Join(parts, ", ") + " })"
}

// literal returns a JSON value as HCL.
func literal(value any) string {
	var decoded ctyjson.SimpleJSONValue
	encoded, err := json.Marshal(value)
	if err == nil {
		err = decoded.UnmarshalJSON(encoded)
	}
	if err != nil {
		panic("arguments hold JSON values only: " + err.Error())
	}
	return string(hclwrite.TokensForValue(decoded.Value).Bytes())
}
