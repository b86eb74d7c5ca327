// Package retrypipelinedata implements the data source rabbitmq_retry_pipeline.
package retrypipelinedata

import (
	"context"
	"fmt"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework-jsontypes/jsontypes"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/attribute"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/configured"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/entity"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/report"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/rules"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
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

// validate refuses a name that no pipeline can have.
func validate(ctx context.Context, config tfsdk.Config) diag.Diagnostics {
	var name types.String
	diags := config.GetAttribute(ctx, path.Root("name"), &name)
	if attribute.Known(name) {
		diags.Append(report.Errors(rules.Pipeline.CheckName(name.ValueString()))...)
	}
	return diags
}

// fill recovers the pipeline and its attachments from the broker.
func fill(_ context.Context, _ *configured.Provider, m *model, vhost topology.Vhost) diag.Diagnostics {
	p, err := pipeline.Recover(m.Name.ValueString(), m.Vhost.ValueString(), vhost.Topology)
	if err != nil {
		return diag.Diagnostics{diag.NewAttributeErrorDiagnostic(path.Root("name"), "Cannot read the pipeline", fmt.Sprintf(
			"Pipeline %q in vhost %q: %s.\n\n"+
				"Check name and vhost. If the pipeline does not exist yet, first apply the configuration that creates it.",
			m.Name.ValueString(), m.Vhost.ValueString(), err))}
	}
	attached := map[string]pipeline.Attachment{}
	for _, queue := range pipeline.Attached(p.Names(), vhost.Topology) {
		attached[queue], _ = pipeline.RecoverAttachment(p.Name, p.Vhost, queue, vhost.Topology) // cannot fail for an attached queue
	}
	m.show(p, attached)
	return nil
}

// model is the data source's configuration and state.
type model struct {
	Name  types.String `tfsdk:"name"`
	Vhost types.String `tfsdk:"vhost"`

	Engine      types.String `tfsdk:"engine"`
	WorkQueues  types.Map    `tfsdk:"work_queues"`
	Attachments types.Map    `tfsdk:"attachments"`
	attribute.PipelineOutputs
}

// show sets the computed attributes. The worker's configuration includes the attached queues, since no other writer of that
// configuration knows them all.
func (m *model) show(p pipeline.Pipeline, attached map[string]pipeline.Attachment) {
	m.Engine = types.StringValue(p.EngineName())
	m.WorkQueues = attribute.MapValue(attribute.WorkQueueType, p.WorkQueues, attribute.WorkQueueValue)
	m.Attachments = attribute.MapValue(attachmentType, attached, attachmentValue)
	own := p.WorkQueues
	p.WorkQueues = map[string]pipeline.WorkQueue{}
	for queue, a := range attached {
		p.WorkQueues[queue] = a.WorkQueue
	}
	maps.Copy(p.WorkQueues, own)
	m.Show(p)
}

// attachmentType has the resource's attributes, apart from the pipeline's.
var attachmentType = types.ObjectType{AttrTypes: map[string]attr.Type{
	"type":   types.StringType,
	"attach": types.StringType,

	"dead_letter_strategy":   types.StringType,
	"policy_definition_json": jsontypes.NormalizedType{},
	"policy_priority":        types.Int64Type,
	"take_over_from":         types.StringType,
	"failed_queue":           attribute.FailedQueueType,
}}

// attachmentValue is an attachment, without the attributes that only a pipeline has for its work queues.
func attachmentValue(a pipeline.Attachment) attr.Value {
	values := attribute.WorkQueueValue(a.WorkQueue).Attributes()
	maps.DeleteFunc(values, func(name string, _ attr.Value) bool { return attachmentType.AttrTypes[name] == nil })
	values["policy_priority"] = types.Int64Value(int64(a.PolicyPriority))
	return types.ObjectValueMust(attachmentType.AttrTypes, values)
}

func pipelineSchema() schema.Schema {
	return schema.Schema{
		MarkdownDescription: "A retry pipeline of another configuration, as it is on the broker. The data source changes nothing.",
		Attributes: map[string]schema.Attribute{
			"name": schema.StringAttribute{Required: true, MarkdownDescription: "Name of the pipeline."},
			"vhost": schema.StringAttribute{
				Optional: true, Computed: true,
				MarkdownDescription: "Virtual host. Default: `/`.",
			},
			"engine": entity.ComputedString("What counts attempts and delays messages: `worker`, `native` or `consumer`."),
			"work_queues": schema.MapAttribute{
				Computed: true, ElementType: attribute.WorkQueueType,
				MarkdownDescription: "Queues of the pipeline's own configuration, by name, with their attributes. " +
					"A setting that has its default can be null.",
			},
			"attachments": schema.MapAttribute{
				Computed: true, ElementType: attachmentType,
				MarkdownDescription: "Queues that a `rabbitmq_retry_attachment` attaches, by name, with its attributes.",
			},
			"dead_letter_exchange": entity.ComputedString("Exchange that work queues dead-letter to."),
			"inbox_queue":          entity.ComputedString("Queue that the sidecar consumes. Null without a sidecar."),
			"failed_queue_name":    entity.ComputedString("Queue for messages that are no longer retried."),
			"gives_up_after":       entity.ComputedString("Sum of all delays of a message that fails at once on each delivery."),
			"worker": schema.ObjectAttribute{
				Computed: true, AttributeTypes: attribute.WorkerType,
				MarkdownDescription: "The sidecar's configuration, attached queues included: an element of `pipelines` in `worker.json`, " +
					"without secrets. Null without a sidecar.",
			},
			"worker_permissions": schema.ObjectAttribute{
				Computed: true, AttributeTypes: attribute.PermissionsType,
				MarkdownDescription: "Minimal permissions of the sidecar's user in the vhost: `configure`, `write` and `read`. " +
					"Null without a sidecar.",
			},
			"operator_permissions": schema.MapAttribute{
				Computed: true, ElementType: attribute.OperatorPermissionsType,
				MarkdownDescription: "Minimal permissions of an operator's user in the vhost, by command of `rabbitmq-retry`.",
			},
			"failed_queue_permissions": schema.MapAttribute{
				Computed: true, ElementType: attribute.OperatorPermissionsType,
				MarkdownDescription: "Minimal permissions of an operator's user in the vhost, by `failed_queue` of the work queues, " +
					"including attached ones.",
			},
		},
	}
}
