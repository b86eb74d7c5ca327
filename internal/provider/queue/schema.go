package queue

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/attribute"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/entity"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// queueSchema describes the resource.
func queueSchema(context.Context) schema.Schema {
	return schema.Schema{
		MarkdownDescription: "A queue. RabbitMQ cannot change one, so apply deletes it, if it is proved empty, and creates it again.",
		Attributes: map[string]schema.Attribute{
			"name":  attribute.Name("queue"),
			"vhost": entity.Vhost("queue"),
			"type": attribute.TextOr(topology.Quorum, "Type: `quorum` (default), `classic` or `stream`. "+
				"With a block `settings`, the argument `x-queue-type` decides, or the virtual host's default."),
			"durable":       attribute.Flag(true, "Whether the queue survives a restart of the broker. Default: `true`."),
			"auto_delete":   attribute.Flag(false, "Whether the broker deletes the queue once its last consumer is gone. Default: `false`."),
			"arguments":     attribute.Table("Arguments, such as `{ x-max-length = 100000, x-overflow = \"reject-publish\" }`."),
			"force_destroy": attribute.ForceDestroy(),
			"id":            attribute.ComputedString("`<vhost>/<name>`, percent-encoded, as an import takes it."),
		},
		Blocks: map[string]schema.Block{
			"settings": attribute.Block("The attributes as the provider `cyrilgdn/rabbitmq` has them.", map[string]schema.Attribute{
				"durable":        attribute.Flag(false, "Whether the queue survives a restart of the broker. Default: `false`."),
				"auto_delete":    attribute.Flag(false, "Whether the broker deletes the queue once its last consumer is gone. Default: `false`."),
				"arguments":      schema.MapAttribute{Optional: true, ElementType: types.StringType, MarkdownDescription: "Arguments."},
				"arguments_json": attribute.JSON("Arguments as JSON."),
			}, "type", "durable", "auto_delete", "arguments"),
		},
	}
}
