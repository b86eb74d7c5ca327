package binding

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-validators/dynamicvalidator"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/attribute"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/entity"
)

// bindingSchema describes the resource.
func bindingSchema(context.Context) schema.Schema {
	return schema.Schema{
		MarkdownDescription: "A binding from an exchange to a queue or to another exchange.",
		Attributes: map[string]schema.Attribute{
			"vhost":       entity.Vhost("binding"),
			"source":      attribute.Text("Name of the exchange that the binding leads from. Changing it replaces the binding."),
			"destination": attribute.Text("Name of the queue or exchange that the binding leads to. Changing it replaces the binding."),
			"destination_type": attribute.TextOneOf("queue", "`queue` (default) or `exchange`. Changing it replaces the binding.",
				"queue", toExchange),
			"routing_key": attribute.TextOr("",
				"Routing key. Default: the empty text. A change makes the new binding first, and then deletes the old one."),
			"arguments": attribute.Table("Arguments, such as `{ x-match = \"all\", type = \"order\" }`.",
				dynamicvalidator.ConflictsWith(path.MatchRoot("arguments_json"))),
			"arguments_json": attribute.JSON("Arguments as JSON."),
			"properties_key": attribute.ComputedString("The broker's identifier of the routing key and arguments."),
			"id": attribute.ComputedString(
				"`<vhost>/<source>/<destination_type>/<destination>/<properties_key>`, percent-encoded, as an import takes it."),
		},
	}
}
