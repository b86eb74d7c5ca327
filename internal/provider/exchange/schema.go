package exchange

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/attribute"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/entity"
)

// exchangeSchema describes the resource.
func exchangeSchema(context.Context) schema.Schema {
	return schema.Schema{
		MarkdownDescription: "An exchange. RabbitMQ cannot change one, so apply deletes it and creates it again with all its bindings.",
		Attributes: map[string]schema.Attribute{
			"name":  attribute.Name("exchange"),
			"vhost": entity.Vhost("exchange"),
			"type": schema.StringAttribute{
				Optional: true, Computed: true,
				MarkdownDescription: "Type: `direct`, `fanout`, `topic`, `headers`, or a plugin's type. Required without a block `settings`.",
			},
			"durable":     attribute.Flag(true, "Whether the exchange survives a restart of the broker. Default: `true`."),
			"auto_delete": attribute.Flag(false, "Whether the broker deletes the exchange once its last binding is gone. Default: `false`."),
			"internal":    attribute.Flag(false, "Whether only bindings can publish to the exchange, and clients cannot. Default: `false`."),
			"arguments":   attribute.Table("Arguments, such as `{ alternate-exchange = \"orders.unrouted\" }`."),
			"id":          attribute.ComputedString("`<vhost>/<name>`, percent-encoded, as an import takes it."),
		},
		Blocks: map[string]schema.Block{
			"settings": attribute.Block("The attributes as the provider `cyrilgdn/rabbitmq` has them.", map[string]schema.Attribute{
				"type":        attribute.Text("Type."),
				"durable":     attribute.Flag(false, "Whether the exchange survives a restart of the broker. Default: `false`."),
				"auto_delete": attribute.Flag(false, "Whether the broker deletes the exchange once its last binding is gone. Default: `false`."),
				"arguments":   schema.MapAttribute{Optional: true, ElementType: types.StringType, MarkdownDescription: "Arguments."},
			}, "type", "durable", "auto_delete", "internal", "arguments"),
		},
	}
}
