package policy

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64default"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/attribute"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/entity"
)

func policySchema(context.Context) schema.Schema {
	return describe("policy", "A policy. Of the policies that match an object, the one with the highest priority applies.",
		"What the policy applies to: `all` (default), `queues`, `classic_queues`, `quorum_queues`, `streams` or `exchanges`.",
		"all", "queues", "classic_queues", "quorum_queues", "streams", "exchanges")
}

func operatorPolicySchema(context.Context) schema.Schema {
	return describe("operator policy",
		"An operator policy. Of its limits and the limits of arguments and policies, the lowest one applies.",
		"What the policy applies to: `queues` (default), `classic_queues`, `quorum_queues` or `streams`.",
		"queues", "classic_queues", "quorum_queues", "streams")
}

// describe describes one of the resources. The first of the values of apply_to is the default.
func describe(kind, description, applyTo string, values ...string) schema.Schema {
	return schema.Schema{
		MarkdownDescription: description,
		Attributes: map[string]schema.Attribute{
			"name": schema.StringAttribute{
				Required:            true,
				MarkdownDescription: "Name of the " + kind + ". Changing it replaces the " + kind + ".",
			},
			"vhost": entity.Vhost(kind),
			"pattern": schema.StringAttribute{
				Optional: true, Computed: true,
				MarkdownDescription: "Regular expression that the names of objects must match. Required without a block `policy`.",
			},
			"apply_to": schema.StringAttribute{
				Optional: true, Computed: true, Default: stringdefault.StaticString(values[0]), Validators: attribute.OneOf(values...),
				MarkdownDescription: applyTo,
			},
			"priority": schema.Int64Attribute{
				Optional: true, Computed: true, Default: int64default.StaticInt64(0), MarkdownDescription: "Priority. Default: `0`.",
			},
			"definition": attribute.Table("Settings, such as `{ max-length = 100000, overflow = \"reject-publish\" }`. " +
				"Required without a block `policy`."),
			"id": attribute.ComputedString("`<vhost>/<name>`, percent-encoded, as an import takes it."),
		},
		Blocks: map[string]schema.Block{
			"policy": attribute.Block("The attributes as the provider `cyrilgdn/rabbitmq` has them.", map[string]schema.Attribute{
				"pattern":  schema.StringAttribute{Required: true, MarkdownDescription: "Regular expression that the names of objects must match."},
				"apply_to": schema.StringAttribute{Required: true, Validators: attribute.OneOf(values...), MarkdownDescription: applyTo},
				"priority": schema.Int64Attribute{
					Optional: true, Computed: true, Default: int64default.StaticInt64(0), MarkdownDescription: "Priority. Default: `0`.",
				},
				"definition": schema.MapAttribute{Required: true, ElementType: types.StringType, MarkdownDescription: "Settings."},
			}, "pattern", "apply_to", "priority", "definition"),
		},
	}
}
