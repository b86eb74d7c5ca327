package deadletteraudit

import (
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// auditSchema describes the data source.
func auditSchema() schema.Schema {
	return schema.Schema{
		MarkdownDescription: "Finds the ways in which a virtual host loses dead letters, whoever made its queues: " +
			"dead-letter exchanges that do not exist or lead nowhere, cycles, " +
			"policies that shadow others, limits that empty a queue of failed messages. " +
			"It only reads. " +
			"The guide [Dead-letter audit](../guides/dead-letter-audit.md) has every rule.",
		Attributes: map[string]schema.Attribute{
			"vhost": schema.StringAttribute{
				Optional: true, Computed: true,
				MarkdownDescription: "Virtual host. Default: `/`.",
			},
			"ignore": schema.SetAttribute{
				Optional: true, ElementType: types.StringType,
				MarkdownDescription: "Ids of rules whose findings are left out, such as `parking-queue-ttl`.",
			},
			"findings": schema.ListNestedAttribute{
				Computed:            true,
				MarkdownDescription: "What was found, errors first.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"severity": computedString("`error` if a message that dies there is lost or trapped, " +
						"`warning` if that depends on something else, such as a full queue."),
					"rule": computedString("Id of the rule, which never changes."),
					"object": schema.SingleNestedAttribute{
						Computed: true, MarkdownDescription: "What the finding is about.",
						Attributes: map[string]schema.Attribute{
							"kind": computedString("`queue`, `policy`, `operator_policy`, `pipeline`, `delayed_exchange` or `vhost`."),
							"name": computedString("Its name."),
						},
					},
					"message": computedString("What is lost, and why."),
					"remedy":  computedString("What to do about it."),
				}},
			},
			"errors":   schema.Int64Attribute{Computed: true, MarkdownDescription: "How many of the findings are errors."},
			"warnings": schema.Int64Attribute{Computed: true, MarkdownDescription: "How many of the findings are warnings."},
		},
	}
}

func computedString(description string) schema.StringAttribute {
	return schema.StringAttribute{Computed: true, MarkdownDescription: description}
}
