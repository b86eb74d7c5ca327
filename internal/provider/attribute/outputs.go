package attribute

import (
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
)

// PipelineOutputs are the computed attributes that the resource and the data source of a pipeline share.
type PipelineOutputs struct {
	DeadLetterExchange  types.String `tfsdk:"dead_letter_exchange"`
	InboxQueue          types.String `tfsdk:"inbox_queue"`
	FailedQueueName     types.String `tfsdk:"failed_queue_name"`
	GivesUpAfter        types.String `tfsdk:"gives_up_after"`
	Worker              types.Object `tfsdk:"worker"`
	WorkerPermissions   types.Object `tfsdk:"worker_permissions"`
	OperatorPermissions types.Map    `tfsdk:"operator_permissions"`
	FailedPermissions   types.Map    `tfsdk:"failed_queue_permissions"`
}

// Show sets the attributes.
func (o *PipelineOutputs) Show(p pipeline.Pipeline) {
	o.GivesUpAfter = types.StringValue(pipeline.FormatDelay(p.GivesUpAfter()))
	o.Worker = workerValue(p.Worker())
	o.OperatorPermissions = MapValue(OperatorPermissionsType, pipeline.OperatorPermissions(p), PermissionsValue)
	failed := map[string]attr.Value{}
	for _, queue := range p.FailedQueues() {
		failed[queue] = PermissionsValue(pipeline.FailedQueuePermissions(p.Names(), queue))
	}
	o.FailedPermissions = types.MapValueMust(OperatorPermissionsType, failed)
	o.ShowNames(p)
}

// ShowNames sets the attributes that depend only on the name and the engine. Without a worker, attributes about the inbox and
// the worker are null.
func (o *PipelineOutputs) ShowNames(p pipeline.Pipeline) {
	o.DeadLetterExchange = types.StringValue(p.DeadLetterExchange())
	o.FailedQueueName = types.StringValue(p.Names().FailedQueue())
	if !p.HasWorker() {
		o.InboxQueue, o.Worker = types.StringNull(), types.ObjectNull(WorkerType)
		o.WorkerPermissions = types.ObjectNull(PermissionsType)
		return
	}
	o.InboxQueue = types.StringValue(p.Names().Inbox())
	o.WorkerPermissions = PermissionsValue(pipeline.WorkerPermissions(p.Names()))
}
