package attribute

import (
	"github.com/hashicorp/terraform-plugin-framework-jsontypes/jsontypes"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
)

// AttachAttributes describe how a work queue joins a pipeline. The two texts say what is special about attach and
// policy_definition there.
func AttachAttributes(attach, definition string) map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"attach": schema.StringAttribute{
			Optional: true, Computed: true,
			Default: stringdefault.StaticString(pipeline.AttachPolicy),
			MarkdownDescription: "How the queue gets its dead-letter exchange: `policy` (default), which needs no redeclaration, " +
				"or `arguments`, with which the application declares it and the provider checks that it did." + attach,
		},
		"take_over_from": schema.StringAttribute{
			Optional: true,
			MarkdownDescription: "Name of another pipeline that has the queue and releases it in a later apply, " +
				"so that nothing is lost in between. " +
				"The queue's policy has a priority that is higher by one. Remove it once the other pipeline has let go of the queue.",
		},
		"dead_letter_strategy": schema.StringAttribute{
			Optional: true,
			MarkdownDescription: "`at-least-once` (default for quorum queues), which loses nothing and needs a queue without length limit, " +
				"or `at-most-once` (default for classic queues, which know no other).",
		},
		"policy_definition": schema.StringAttribute{
			Optional:            true,
			CustomType:          jsontypes.NormalizedType{},
			MarkdownDescription: "More keys for the policy of this queue, as JSON. " + definition,
		},
	}
}

// ComputedString describes a text that the provider computes.
func ComputedString(description string) schema.StringAttribute {
	return schema.StringAttribute{Computed: true, MarkdownDescription: description}
}
