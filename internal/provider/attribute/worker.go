package attribute

import (
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
)

// The types of the computed attributes for the sidecar and its users.
var (
	workerQueueType = types.ObjectType{AttrTypes: map[string]attr.Type{
		"max_attempts": types.Int64Type,
		"failed_queue": FailedQueueType,
	}}
	// WorkerType is the sidecar's configuration of a pipeline.
	WorkerType = workerValue(pipeline.Worker{}).AttributeTypes(Background)
	// DelayedWorkerType is the sidecar's configuration of a delayed exchange.
	DelayedWorkerType = DelayedWorkerValue(delayed.Worker{}).AttributeTypes(Background)
	// PermissionsType has the three patterns of a user's permissions in a vhost.
	PermissionsType = PermissionsValue(pipeline.Permissions{}).AttributeTypes(Background)
	// OperatorPermissionsType is the type of the permissions for one command of the sidecar.
	OperatorPermissionsType = types.ObjectType{AttrTypes: PermissionsType}
)

// workerValue is the sidecar's configuration of a pipeline. Attempts and reasons are null if they are the sidecar's default,
// which shortens plans.
func workerValue(worker pipeline.Worker) types.Object {
	attempts, reasons := worker.MaxAttempts, types.ListNull(types.StringType)
	if attempts == len(worker.Delays)+1 {
		attempts = 0
	}
	if !slices.Equal(worker.RetryOn, []string{pipeline.ReasonRejected}) {
		reasons = types.ListValueMust(types.StringType, StringValues(worker.RetryOn))
	}
	return object(map[string]attr.Value{
		"version":      types.Int64Value(int64(worker.Version)),
		"name":         types.StringValue(worker.Name),
		"vhost":        types.StringValue(worker.Vhost),
		"delays":       types.ListValueMust(types.StringType, StringValues(worker.Delays)),
		"max_attempts": attemptsValue(attempts),
		"retry_on":     reasons,
		"max_age":      TextValue(worker.MaxAge),
		"work_queues": MapValue(workerQueueType, worker.WorkQueues, func(queue pipeline.WorkerQueue) types.Object {
			return types.ObjectValueMust(workerQueueType.AttrTypes, map[string]attr.Value{
				"max_attempts": attemptsValue(queue.MaxAttempts), "failed_queue": FailedQueueValue(queue.FailedQueue),
			})
		}),
	})
}

// attemptsValue is the number of attempts, null for 0.
func attemptsValue(attempts int) types.Int64 {
	if attempts == 0 {
		return types.Int64Null()
	}
	return types.Int64Value(int64(attempts))
}

// DelayedWorkerValue is the sidecar's configuration of a delayed exchange.
func DelayedWorkerValue(worker delayed.Worker) types.Object {
	return object(map[string]attr.Value{
		"version":   types.Int64Value(int64(worker.Version)),
		"name":      types.StringValue(worker.Name),
		"vhost":     types.StringValue(worker.Vhost),
		"max_delay": types.StringValue(worker.MaxDelay),
		"precision": types.StringValue(worker.Precision),
	})
}

// Permissions describes the permissions of a user. The text read describes their pattern read.
func Permissions(description, read string) schema.Attribute {
	return schema.SingleNestedAttribute{Computed: true, MarkdownDescription: description, Attributes: patterns(read)}
}

// OperatorPermissions describes the permissions by command.
func OperatorPermissions() schema.Attribute {
	return PermissionsByName("An operator's minimal permissions for each command: `status`, each command of `failed`, such as `list`, " +
		"and each of `delayed`, such as `delayed list`.")
}

// PermissionsByName describes the permissions of an operator.
func PermissionsByName(description string) schema.Attribute {
	return schema.MapNestedAttribute{
		Computed: true, MarkdownDescription: description,
		NestedObject: schema.NestedAttributeObject{Attributes: patterns("Pattern of the queues that the user can read.")},
	}
}

func patterns(read string) map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"configure": ComputedString("Pattern of the objects that the user can configure. Only the commands `delayed` need one."),
		"write":     ComputedString("Pattern of the exchanges that the user can publish to."),
		"read":      ComputedString(read),
	}
}

// Patterns are the attributes of PermissionsType.
type Patterns struct {
	Configure types.String `tfsdk:"configure"`
	Write     types.String `tfsdk:"write"`
	Read      types.String `tfsdk:"read"`
}

// PermissionsValue is a value of PermissionsType.
func PermissionsValue(permissions pipeline.Permissions) types.Object {
	return object(map[string]attr.Value{
		"configure": types.StringValue(permissions.Configure),
		"write":     types.StringValue(permissions.Write),
		"read":      types.StringValue(permissions.Read),
	})
}
