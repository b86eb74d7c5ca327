package retrypipelinedata

import (
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/attribute"
)

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
			"engine":               text("Who counts the attempts and delays: `worker`, `native` or `consumer`."),
			"work_queues":          textSet("Queues of the pipeline's own configuration."),
			"attachments":          textSet("Queues that are attached by a `rabbitmq_retry_attachment`."),
			"dead_letter_exchange": text("Exchange that work queues dead-letter to."),
			"inbox_queue":          text("Queue that the sidecar consumes, null without one."),
			"failed_queue":         text("Queue that holds the messages that are not retried any more."),
			"gives_up_after":       text("Sum of all delays of a message that fails every time, as soon as it is back."),
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

func text(description string) schema.StringAttribute {
	return schema.StringAttribute{Computed: true, MarkdownDescription: description}
}

func textSet(description string) schema.SetAttribute {
	return schema.SetAttribute{Computed: true, ElementType: types.StringType, MarkdownDescription: description}
}
