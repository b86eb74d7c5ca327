package retryattachment

import (
	"context"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/attribute"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/entity"
)

func attachmentSchema(ctx context.Context) schema.Schema {
	described := schema.Schema{
		MarkdownDescription: "Attaches one existing work queue to a retry pipeline of another configuration. " +
			"The pipeline and its attachments own separate objects.",
		Attributes: map[string]schema.Attribute{
			"pipeline": attribute.Text("Name of the pipeline. It cannot be changed, since the queue would have no pipeline for a while. " +
				"Add a second attachment with `take_over_from` instead."),
			"vhost": entity.Vhost("attachment"),
			"queue": attribute.Text("Name of an existing queue. Changing it replaces the attachment."),
			"engine": attribute.TextOneOf(pipeline.EngineWorker,
				"Engine of the pipeline: `worker` (default) or `consumer`. The plan fails if the pipeline has another engine.",
				pipeline.Engines()...),
			"failed_queue":    attribute.FailedQueueAttribute("of the queue's `type`"),
			"policy_priority": attribute.PolicyPriority(pipeline.DefaultPolicyPriority, "Priority of the attachment's policy. "),
			"timeouts": attribute.Timeouts(ctx, timeouts.Opts{
				Update: true, Delete: true,
				UpdateDescription: "How long a change waits for pending dead letters of the queue. " +
					"If this is unset, a change that would lose them fails at once.",
				DeleteDescription: "How long a destroy waits for pending dead letters of the queue. " +
					"If this is unset, a destroy that would lose them fails at once.",
			}),
			"id":       attribute.ComputedString("Import id: `<vhost>/<pipeline>/<queue>`, percent-encoded."),
			"topology": attribute.TopologyAttribute(),
		},
	}
	maps.Copy(described.Attributes, attribute.AttachAttributes(
		"`null` drops a key that the queue has from another policy."))
	return described
}
