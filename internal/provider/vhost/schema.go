package vhost

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/setdefault"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/attribute"
)

// vhostSchema describes the resource.
func vhostSchema(context.Context) schema.Schema {
	return schema.Schema{
		MarkdownDescription: "A virtual host, with its limits.",
		Attributes: map[string]schema.Attribute{
			"name":        attribute.Name("virtual host"),
			"description": attribute.TextOr("", "Description."),
			"tags": schema.SetAttribute{
				Optional: true, Computed: true, ElementType: types.StringType,
				Default:             setdefault.StaticValue(types.SetValueMust(types.StringType, nil)),
				MarkdownDescription: "Tags.",
			},
			"default_queue_type": schema.StringAttribute{
				Optional: true, Computed: true, Validators: attribute.OneOf("classic", "quorum", "stream"),
				PlanModifiers:       []planmodifier.String{unlessConfigured{}},
				MarkdownDescription: "Type of queues that a client declares without a type. Default: the present one, or the broker's default.",
			},
			"tracing": attribute.Flag(false,
				"Whether the broker copies each message to the exchange `amq.rabbitmq.trace`. Default: `false`."),
			"max_connections": attribute.Limit("The most connections that the virtual host accepts. Default: no limit."),
			"max_queues":      attribute.Limit("The most queues that the virtual host can have. Default: no limit."),
			"force_destroy": schema.BoolAttribute{
				Optional: true,
				MarkdownDescription: "Whether a destroy also deletes the queues in the virtual host, with their messages. " +
					"Without it, a destroy fails while there are queues. Default: `false`.",
			},
			"id": attribute.ComputedString("The name."),
		},
	}
}

// unlessConfigured keeps the state's value if the configuration has none.
type unlessConfigured struct{}

// Description describes the plan modifier.
func (unlessConfigured) Description(context.Context) string {
	return "keeps the value unless the configuration has one"
}

// MarkdownDescription describes the plan modifier.
func (m unlessConfigured) MarkdownDescription(ctx context.Context) string { return m.Description(ctx) }

// PlanModifyString keeps the state's value, null for a new resource.
func (unlessConfigured) PlanModifyString(_ context.Context, req planmodifier.StringRequest, resp *planmodifier.StringResponse) {
	if req.ConfigValue.IsNull() {
		resp.PlanValue = req.StateValue
	}
}
