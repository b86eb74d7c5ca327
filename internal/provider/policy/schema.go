package policy

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
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
	priority := attribute.Number(0, "Priority. Default: `0`.")
	return schema.Schema{
		MarkdownDescription: description,
		Attributes: map[string]schema.Attribute{
			"name":  attribute.Name(kind),
			"vhost": entity.Vhost(kind),
			"pattern": schema.StringAttribute{
				Optional: true, Computed: true,
				MarkdownDescription: "Regular expression that the names of objects must match. Required without a block `policy`.",
			},
			"apply_to": attribute.TextOneOf(values[0], applyTo, values...),
			"priority": priority,
			"definition": attribute.Table("Settings, such as `{ max-length = 100000, overflow = \"reject-publish\" }`. " +
				"Required without a block `policy`."),
			"id": attribute.ComputedString("`<vhost>/<name>`, percent-encoded, as an import takes it."),
		},
		Blocks: map[string]schema.Block{
			"policy": attribute.Block("The attributes as the provider `cyrilgdn/rabbitmq` has them.", map[string]schema.Attribute{
				"pattern":    attribute.Text("Regular expression that the names of objects must match."),
				"apply_to":   schema.StringAttribute{Required: true, Validators: attribute.OneOf(values...), MarkdownDescription: applyTo},
				"priority":   priority,
				"definition": schema.MapAttribute{Required: true, ElementType: types.StringType, MarkdownDescription: "Settings."},
			}, "pattern", "apply_to", "priority", "definition"),
		},
	}
}
