package retrypipelinedata

import (
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/attribute"
)

// model is the data source's configuration and state.
type model struct {
	Name  types.String `tfsdk:"name"`
	Vhost types.String `tfsdk:"vhost"`

	Engine              types.String `tfsdk:"engine"`
	WorkQueues          types.Set    `tfsdk:"work_queues"`
	Attachments         types.Set    `tfsdk:"attachments"`
	DeadLetterExchange  types.String `tfsdk:"dead_letter_exchange"`
	InboxQueue          types.String `tfsdk:"inbox_queue"`
	FailedQueue         types.String `tfsdk:"failed_queue"`
	GivesUpAfter        types.String `tfsdk:"gives_up_after"`
	Worker              types.Object `tfsdk:"worker"`
	WorkerPermissions   types.Object `tfsdk:"worker_permissions"`
	OperatorPermissions types.Map    `tfsdk:"operator_permissions"`
	FailedPermissions   types.Map    `tfsdk:"failed_queue_permissions"`
}

// show sets the computed attributes. The worker has the attached queues, too: nobody else who writes its configuration
// knows all of them.
func (m *model) show(p pipeline.Pipeline, attached map[string]pipeline.WorkQueue) {
	n, worker := p.Names(), p.Worker()
	m.Engine = types.StringValue(p.EngineName())
	m.WorkQueues = texts(slices.Sorted(maps.Keys(p.WorkQueues)))
	m.Attachments = texts(slices.Sorted(maps.Keys(attached)))
	all := p
	all.WorkQueues = maps.Clone(attached)
	maps.Copy(all.WorkQueues, p.WorkQueues)
	for queue, w := range attached {
		if _, listed := worker.WorkQueues[queue]; !listed {
			worker.WorkQueues[queue] = pipeline.WorkerQueue{FailedQueue: w.FailedQueue}
		}
	}
	m.OperatorPermissions = attribute.OperatorPermissionsValue(pipeline.OperatorPermissions(all))
	m.FailedPermissions = attribute.FailedQueuePermissionsValue(all)
	m.DeadLetterExchange = types.StringValue(p.DeadLetterExchange())
	m.FailedQueue = types.StringValue(n.FailedQueue())
	m.GivesUpAfter = types.StringValue(pipeline.FormatDelay(p.GivesUpAfter()))
	m.InboxQueue, m.Worker = types.StringNull(), types.ObjectNull(attribute.WorkerType)
	m.WorkerPermissions = types.ObjectNull(attribute.PermissionsType)
	if p.HasWorker() {
		m.InboxQueue, m.Worker = types.StringValue(n.Inbox()), attribute.WorkerValue(worker)
		m.WorkerPermissions = attribute.PermissionsValue(pipeline.WorkerPermissions(n))
	}
}

func texts(values []string) types.Set {
	return types.SetValueMust(types.StringType, attribute.StringValues(values))
}

func cannotRead(name, vhost string, err error) diag.Diagnostic {
	return diag.NewAttributeErrorDiagnostic(path.Root("name"), "Cannot read the pipeline", fmt.Sprintf(
		"Pipeline %q in vhost %q: %s.\n\n"+
			"Check name and vhost. If this configuration or another one creates the pipeline, apply that one first.",
		name, vhost, err))
}
