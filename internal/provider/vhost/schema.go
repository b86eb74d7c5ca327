package vhost

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/setdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/attribute"
)

// vhostSchema describes the resource.
func vhostSchema(context.Context) schema.Schema {
	return schema.Schema{
		MarkdownDescription: "A virtual host, with its limits.\n\n" +
			"A destroy fails while the virtual host has queues. With `force_destroy = true`, it deletes all queues with their messages.",
		Attributes: map[string]schema.Attribute{
			"name": schema.StringAttribute{
				Required:            true,
				MarkdownDescription: "Name of the virtual host. Changing it replaces the virtual host.",
			},
			"description": schema.StringAttribute{
				Optional: true, Computed: true, Default: stringdefault.StaticString(""), MarkdownDescription: "Description.",
			},
			"tags": schema.SetAttribute{
				Optional: true, Computed: true, ElementType: types.StringType,
				Default:             setdefault.StaticValue(types.SetValueMust(types.StringType, nil)),
				MarkdownDescription: "Tags.",
			},
			"default_queue_type": schema.StringAttribute{
				Optional: true, Validators: attribute.OneOf("classic", "quorum", "stream"),
				MarkdownDescription: "Type of queues that a client declares without a type. Default: the broker's default. " +
					"Needs RabbitMQ 3.11 or later.",
			},
			"tracing": schema.BoolAttribute{
				Optional: true, Computed: true, Default: booldefault.StaticBool(false),
				MarkdownDescription: "Whether the broker copies each message to the exchange `amq.rabbitmq.trace`. Default: `false`.",
			},
			"max_connections": limit("The most connections that the virtual host accepts. Default: no limit."),
			"max_queues":      limit("The most queues that the virtual host can have. Default: no limit."),
			"force_destroy": schema.BoolAttribute{
				Optional: true,
				MarkdownDescription: "Whether a destroy also deletes the queues in the virtual host, with their messages. " +
					"Without it, a destroy fails while there are queues. Default: `false`.",
			},
			"id": attribute.ComputedString("The name."),
		},
	}
}

func limit(description string) schema.Attribute {
	return schema.Int64Attribute{
		Optional: true, Validators: []validator.Int64{int64validator.AtLeast(0)}, MarkdownDescription: description,
	}
}
