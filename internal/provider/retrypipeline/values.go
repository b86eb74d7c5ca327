package retrypipeline

import (
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/attribute"
)

func workerValue(worker pipeline.Worker) types.Object {
	return types.ObjectValueMust(workerType, map[string]attr.Value{
		"version":      types.Int64Value(int64(worker.Version)),
		"name":         types.StringValue(worker.Name),
		"vhost":        types.StringValue(worker.Vhost),
		"delays":       types.ListValueMust(types.StringType, attribute.StringValues(worker.Delays)),
		"max_attempts": types.Int64Value(int64(worker.MaxAttempts)),
		"retry_on":     types.ListValueMust(types.StringType, attribute.StringValues(worker.RetryOn)),
		"max_age":      attribute.TextValue(worker.MaxAge),
		"work_queues": attribute.MapValue(workerQueueType, worker.WorkQueues, func(queue pipeline.WorkerQueue) attr.Value {
			return types.ObjectValueMust(workerQueueType.AttrTypes, map[string]attr.Value{"max_attempts": attemptsValue(queue.MaxAttempts)})
		}),
	})
}

// attemptsValue is null for a work queue without a number of attempts of its own.
func attemptsValue(attempts int) types.Int64 {
	if attempts == 0 {
		return types.Int64Null()
	}
	return types.Int64Value(int64(attempts))
}

func permissionsValue(permissions pipeline.Permissions) types.Object {
	return types.ObjectValueMust(permissionsType, map[string]attr.Value{
		"configure": types.StringValue(permissions.Configure),
		"write":     types.StringValue(permissions.Write),
		"read":      types.StringValue(permissions.Read),
	})
}

func operatorPermissionsValue(n pipeline.Names) types.Map {
	values := map[string]attr.Value{}
	for command, permissions := range pipeline.OperatorPermissions(n) {
		values[command] = permissionsValue(permissions)
	}
	return types.MapValueMust(operatorPermissionsType, values)
}

// retiredValue lists retired queues; drained says which of them were seen to be empty.
func retiredValue(p pipeline.Pipeline, drained map[string]bool) types.Map {
	entries := map[string]string{}
	for _, delay := range p.Retired {
		entries[p.Names().RetryQueue(delay)] = pipeline.FormatDelay(delay)
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

// detachedValue lists detached queues; drained says for which of them nothing waits any more.
func detachedValue(p pipeline.Pipeline, drained map[string]bool) types.Map {
	values := map[string]attr.Value{}
	for _, queue := range p.Detached {
		values[queue] = types.ObjectValueMust(detachedType.AttrTypes, map[string]attr.Value{"drained": types.BoolValue(drained[queue])})
	}
	return types.MapValueMust(detachedType, values)
}
