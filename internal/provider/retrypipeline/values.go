package retrypipeline

import (
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// topologyValue is a set of objects as the attribute shows it.
func topologyValue(view topology.View) types.Object {
	return types.ObjectValueMust(topologyType, map[string]attr.Value{
		"exchanges": mapValue(objectType, view.Exchanges, objectValue),
		"queues":    mapValue(objectType, view.Queues, objectValue),
		"bindings":  types.SetValueMust(types.StringType, stringValues(view.Bindings)),
		"policies":  mapValue(policyType, view.Policies, policyValue),
	})
}

func objectValue(view topology.ObjectView) attr.Value {
	return types.ObjectValueMust(objectType.AttrTypes, map[string]attr.Value{
		"type":      types.StringValue(view.Type),
		"arguments": textMap(view.Arguments),
	})
}

func policyValue(view topology.PolicyView) attr.Value {
	return types.ObjectValueMust(policyType.AttrTypes, map[string]attr.Value{
		"pattern":    types.StringValue(view.Pattern),
		"apply_to":   types.StringValue(view.ApplyTo),
		"priority":   types.Int64Value(view.Priority),
		"definition": textMap(view.Definition),
	})
}

func workerValue(worker topology.Worker) types.Object {
	queueType := types.ObjectType{AttrTypes: map[string]attr.Type{}}
	return types.ObjectValueMust(workerType, map[string]attr.Value{
		"version":      types.Int64Value(int64(worker.Version)),
		"name":         types.StringValue(worker.Name),
		"vhost":        types.StringValue(worker.Vhost),
		"delays":       types.ListValueMust(types.StringType, stringValues(worker.Delays)),
		"max_attempts": types.Int64Value(int64(worker.MaxAttempts)),
		"retry_on":     types.ListValueMust(types.StringType, stringValues(worker.RetryOn)),
		"work_queues": mapValue(queueType, worker.WorkQueues, func(topology.WorkerQueue) attr.Value {
			return types.ObjectValueMust(queueType.AttrTypes, map[string]attr.Value{})
		}),
	})
}

func permissionsValue(permissions topology.Permissions) types.Object {
	return types.ObjectValueMust(permissionsType, map[string]attr.Value{
		"configure": types.StringValue(permissions.Configure),
		"write":     types.StringValue(permissions.Write),
		"read":      types.StringValue(permissions.Read),
	})
}

// retiredValue lists retired queues; drained tells which of them were seen to be empty.
func retiredValue(p topology.Pipeline, drained map[string]bool) types.Map {
	entries := map[string]string{}
	for _, delay := range p.Retired {
		entries[p.Names().RetryQueue(delay)] = topology.FormatDelay(delay)
	}
	values := map[string]attr.Value{}
	for queue, delay := range entries {
		values[queue] = types.ObjectValueMust(retiredType.AttrTypes, map[string]attr.Value{
			"delay":   types.StringValue(delay),
			"drained": types.BoolValue(drained[queue]),
		})
	}
	return types.MapValueMust(retiredType, values)
}

func mapValue[T any](elementType attr.Type, from map[string]T, convert func(T) attr.Value) types.Map {
	values := make(map[string]attr.Value, len(from))
	for name, element := range from {
		values[name] = convert(element)
	}
	return types.MapValueMust(elementType, values)
}

func textMap(from map[string]string) types.Map {
	if from == nil {
		return types.MapNull(types.StringType)
	}
	return mapValue(types.StringType, from, func(text string) attr.Value { return types.StringValue(text) })
}

func stringValues(from []string) []attr.Value {
	values := make([]attr.Value, 0, len(from))
	for _, text := range from {
		values = append(values, types.StringValue(text))
	}
	return values
}
