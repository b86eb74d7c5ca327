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

// FederationUpstream is rabbitmq_federation_upstream.
var FederationUpstream = define[upstream]("federation_upstream", configured.FederationUpstream, upstreamBlock, upstreamSchema)

var upstreamBlock = block{
	name: "definition", component: broker.FederationUpstreamComponent, ends: []string{""},
	key: func(name string) string { return strings.ReplaceAll(name, "_", "-") },
	defaults: map[string]any{
		"ack_mode": "on-confirm", "prefetch_count": int64(1000), "reconnect_delay": int64(5), "max_hops": int64(1), "trust_user_id": false,
	},
}

func upstreamSchema(context.Context) schema.Schema {
	definition := map[string]schema.Attribute{
		"ack_mode":        ackMode(),
		"prefetch_count":  attribute.Number(1000, "Unacknowledged messages at a time. Default: `1000`."),
		"reconnect_delay": attribute.Number(5, "Seconds between two attempts to connect. Default: `5`."),
		"trust_user_id":   attribute.Flag(false, "Whether messages keep the property `user_id`. Default: `false`."),
		"exchange":        optionalText("Name of the upstream exchange. By default, the name of the federated exchange."),
		"max_hops":        attribute.Number(1, "How many links of federated exchanges a message can pass. Default: `1`."),
		"expires":         optionalNumber("Milliseconds after which the upstream queue of an exchange is deleted if the link is down."),
		"message_ttl":     optionalNumber("Milliseconds after which messages in the upstream queue of an exchange expire."),
		"queue":           optionalText("Name of the upstream queue. By default, the name of the federated queue."),
		"queue_type":      optionalText("Type of the upstream queue of an exchange: `classic` or `quorum`."),
		urisVersion:       versionAttribute(),
	}
	maps.Copy(definition, uriAttributes("", "the upstream"))
	return schema.Schema{
		MarkdownDescription: "A federation upstream, which federated exchanges and queues get messages from. A policy with the key " +
			"`federation-upstream` uses it. Needs the broker's plugin `rabbitmq_federation`.",
		Attributes: map[string]schema.Attribute{
			"name":      attribute.Name("federation upstream"),
			"vhost":     entity.Vhost("federation upstream"),
			"component": attribute.ComputedString("Always `federation-upstream`."),
			"id":        attribute.ComputedString("`<vhost>/<name>`, percent-encoded, as an import takes it."),
		},
		Blocks: map[string]schema.Block{"definition": attribute.RequiredBlock("The definition of the upstream.", definition)},
	}
}

// upstream is the resource in Terraform's configuration, plan and state.
type upstream struct {
	plain.NamedInVhost
	Component  types.String `tfsdk:"component"`
	Definition types.List   `tfsdk:"definition"`
}

func (m upstream) Validate(context.Context) diag.Diagnostics {
	return upstreamBlock.validate(m.Definition)
}

func (m *upstream) Compute() {
	m.NamedInVhost.Compute()
	m.Component = types.StringValue(broker.FederationUpstreamComponent)
}

func (m *upstream) Object() any { return upstreamBlock.value(m.Definition) }

func (m *upstream) Show(live any) { m.Definition = upstreamBlock.shown(m.Definition, live) }

func (m *upstream) definition() *types.List { return &m.Definition }
