package parameter

import (
	"context"
	"maps"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/attribute"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/configured"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/entity"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/plain"
)

// Shovel is rabbitmq_shovel.
var Shovel = define[shovel]("shovel", configured.Shovel, shovelBlock, shovelSchema)

var shovelBlock = block{
	name: "info", component: broker.ShovelComponent, ends: []string{"source_", "destination_"}, key: shovelWords.Replace,
	defaults: map[string]any{
		"ack_mode": "on-confirm", "reconnect_delay": int64(1), "source_protocol": "amqp091", "destination_protocol": "amqp091",
		"destination_add_timestamp_header": false,
	},
}

// shovelWords turns the name of an attribute into its key.
var shovelWords = strings.NewReplacer("source_", "src-", "destination_", "dest-", "_arguments", "-args", "_", "-")

func shovelSchema(context.Context) schema.Schema {
	info := map[string]schema.Attribute{
		"ack_mode":                  ackMode(),
		"reconnect_delay":           attribute.Number(1, "Seconds between two attempts to connect. Default: `1`."),
		"source_queue":              optionalText("Queue to consume from."),
		"source_exchange":           optionalText("Exchange to consume from, through a queue of the shovel's."),
		"source_exchange_key":       optionalText("Routing key of that queue's binding."),
		"source_address":            optionalText("AMQP 1.0 address to consume from."),
		"source_prefetch_count":     optionalNumber("Unacknowledged messages at a time. RabbitMQ's default: `1000`."),
		"source_delete_after":       optionalText("When the shovel deletes itself: `never`, `queue-length`, or after a number of messages."),
		"source_queue_arguments":    optionalTable("Arguments of the source queue, if the shovel declares it."),
		"source_consumer_arguments": optionalTable("Arguments of the consumer."),

		"destination_queue":                  optionalText("Queue to publish to."),
		"destination_exchange":               optionalText("Exchange to publish to."),
		"destination_exchange_key":           optionalText("Routing key. By default, messages keep theirs."),
		"destination_address":                optionalText("AMQP 1.0 address to publish to."),
		"destination_add_forward_headers":    optionalFlag("Whether messages get headers `x-shovelled`."),
		"destination_add_timestamp_header":   attribute.Flag(false, "Whether messages get a header `x-shovelled-timestamp`. Default: `false`."),
		"destination_publish_properties":     optionalTable("Properties to set in each message, such as `delivery_mode`."),
		"destination_properties":             optionalTable("AMQP 1.0 properties to set in each message."),
		"destination_application_properties": optionalTable("AMQP 1.0 application properties to set in each message."),
		"destination_message_annotations":    optionalTable("AMQP 1.0 message annotations to set in each message."),
		"destination_queue_arguments":        optionalTable("Arguments of the destination queue, if the shovel declares it."),

		"prefetch_count":      optionalNumber("Old name of `source_prefetch_count`."),
		"delete_after":        optionalText("Old name of `source_delete_after`."),
		"add_forward_headers": optionalFlag("Old name of `destination_add_forward_headers`."),
		urisVersion:           versionAttribute(),
	}
	for end, of := range map[string]string{"source": "the source", "destination": "the destination"} {
		info[end+"_protocol"] = attribute.TextOneOf("amqp091",
			"Protocol at "+of+": `amqp091` (default), `amqp10` or, from RabbitMQ 4.2 on, `local`.", "amqp091", "amqp10", "local")
		maps.Copy(info, uriAttributes(end+"_", of))
	}
	return schema.Schema{
		MarkdownDescription: "A dynamic shovel, which moves messages from one queue or exchange to another. " +
			"Needs the broker's plugin `rabbitmq_shovel`.",
		Attributes: map[string]schema.Attribute{
			"name":  attribute.Name("shovel"),
			"vhost": entity.Vhost("shovel"),
			"id":    attribute.ComputedString("`<vhost>/<name>`, percent-encoded, as an import takes it."),
		},
		Blocks: map[string]schema.Block{"info": attribute.RequiredBlock("The definition of the shovel.", info)},
	}
}

// shovel is the resource in Terraform's configuration, plan and state.
type shovel struct {
	plain.NamedInVhost
	Info types.List `tfsdk:"info"`
}

func (m shovel) Validate(context.Context) diag.Diagnostics { return shovelBlock.validate(m.Info) }

func (m *shovel) Object() any { return shovelBlock.value(m.Info) }

func (m *shovel) Show(live any) { m.Info = shovelBlock.shown(m.Info, live) }

func (m *shovel) definition() *types.List { return &m.Info }
