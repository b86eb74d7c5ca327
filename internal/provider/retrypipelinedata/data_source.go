// Package retrypipelinedata is the data source rabbitmq_retry_pipeline.
package retrypipelinedata

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/attribute"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/entity"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/report"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/workerconfig"
)

// New makes the data source.
func New() datasource.DataSource {
	return entity.NewDataSource(entity.View[model]{
		Type:     "retry_pipeline",
		Schema:   pipelineSchema,
		Validate: validate,
		Vhost:    func(m *model) *types.String { return &m.Vhost },
		Fill:     fill,
	})
}

// validate finds a name that no pipeline can have.
func validate(ctx context.Context, config tfsdk.Config) diag.Diagnostics {
	var name types.String
	diags := config.GetAttribute(ctx, path.Root("name"), &name)
	if !name.IsNull() && !name.IsUnknown() {
		diags.Append(report.Errors(workerconfig.CheckName(name.ValueString()))...)
	}
	return diags
}

// attachments are the queues that are attached, as the broker has them.
func attachments(p pipeline.Pipeline, vhost topology.Topology) map[string]pipeline.WorkQueue {
	attached := map[string]pipeline.WorkQueue{}
	for _, queue := range pipeline.Attached(p.Names(), vhost) {
		a, _ := pipeline.RecoverAttachment(p.Name, p.Vhost, queue, vhost) // is attached
		attached[queue] = a.WorkQueue
	}
	return attached
}

// fill reads the pipeline back from what the broker keeps.
func fill(_ context.Context, m *model, vhost topology.Vhost) diag.Diagnostics {
	p, err := pipeline.Recover(m.Name.ValueString(), m.Vhost.ValueString(), vhost.Topology)
	if err != nil {
		return diag.Diagnostics{cannotRead(m.Name.ValueString(), m.Vhost.ValueString(), err)}
	}
	m.show(p, attachments(p, vhost.Topology))
	return nil
}

// model is the data source's configuration and state.
type model struct {
	Name  types.String `tfsdk:"name"`
	Vhost types.String `tfsdk:"vhost"`

	Engine              types.String `tfsdk:"engine"`
	WorkQueues          types.Set    `tfsdk:"work_queues"`
	Attachments         types.Set    `tfsdk:"attachments"`
	DeadLetterExchange  types.String `tfsdk:"dead_letter_exchange"`
	InboxQueue          types.String `tfsdk:"inbox_queue"`
	FailedQueueName     types.String `tfsdk:"failed_queue_name"`
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
			worker.WorkQueues[queue] = w.Worker()
		}
	}
	m.OperatorPermissions = attribute.OperatorPermissionsValue(pipeline.OperatorPermissions(all))
	m.FailedPermissions = attribute.FailedQueuePermissionsValue(all)
	m.DeadLetterExchange = types.StringValue(p.DeadLetterExchange())
	m.FailedQueueName = types.StringValue(n.FailedQueue())
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

// pipelineSchema describes the data source.
func pipelineSchema() schema.Schema {
	return schema.Schema{
		MarkdownDescription: "A retry pipeline that another configuration owns, as the broker has it. " +
			"A team that attaches queues to it, or runs its sidecar, gets what it needs from here. " +
			"It only reads.",
		Attributes: map[string]schema.Attribute{
			"name": schema.StringAttribute{Required: true, MarkdownDescription: "Name of the pipeline."},
			"vhost": schema.StringAttribute{
				Optional: true, Computed: true,
				MarkdownDescription: "Virtual host. Default: `/`.",
			},
			"engine":               entity.ComputedString("Who counts the attempts and delays: `worker`, `native` or `consumer`."),
			"work_queues":          textSet("Queues of the pipeline's own configuration."),
			"attachments":          textSet("Queues that are attached by a `rabbitmq_retry_attachment`."),
			"dead_letter_exchange": entity.ComputedString("Exchange that work queues dead-letter to."),
			"inbox_queue":          entity.ComputedString("Queue that the sidecar consumes, null without one."),
			"failed_queue_name":    entity.ComputedString("Queue that holds the messages that are not retried any more."),
			"gives_up_after":       entity.ComputedString("Sum of all delays of a message that fails every time, as soon as it is back."),
			"worker": schema.ObjectAttribute{
				Computed: true, AttributeTypes: attribute.WorkerType,
				MarkdownDescription: "The sidecar's configuration of this pipeline, attached queues included: " +
					"an element of the list `pipelines`, as in `jsonencode({ pipelines = [data.rabbitmq_retry_pipeline.orders.worker] })`. " +
					"It holds no secrets. Null without a sidecar.",
			},
			"worker_permissions": schema.ObjectAttribute{
				Computed: true, AttributeTypes: attribute.PermissionsType,
				MarkdownDescription: "The least permissions that the sidecar's user needs in the vhost: `configure`, `write` and `read`. " +
					"The function `merge_permissions` makes one of those of several pipelines. Null without a sidecar.",
			},
			"operator_permissions": schema.MapAttribute{
				Computed: true, ElementType: attribute.OperatorPermissionsType,
				MarkdownDescription: "The least permissions in the vhost of who looks after the pipeline, by command of `rabbitmq-retry`.",
			},
			"failed_queue_permissions": schema.MapAttribute{
				Computed: true, ElementType: attribute.OperatorPermissionsType,
				MarkdownDescription: "The least permissions in the vhost of who looks after the `failed_queue` of work queues, " +
					"attached ones included, by that queue.",
			},
		},
	}
}

func textSet(description string) schema.SetAttribute {
	return schema.SetAttribute{Computed: true, ElementType: types.StringType, MarkdownDescription: description}
}
