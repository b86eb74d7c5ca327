package retrypipeline

import (
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// topologyAttribute describes every object that the pipeline owns, by name.
func topologyAttribute() schema.SingleNestedAttribute {
	return schema.SingleNestedAttribute{
		Computed:            true,
		MarkdownDescription: "Every object on the broker that the pipeline owns. What was changed by hand shows up here as a difference, and apply repairs exactly that object.",
		Attributes: map[string]schema.Attribute{
			"exchanges": objectsAttribute("Exchanges by name."),
			"queues":    objectsAttribute("Queues by name."),
			"bindings": schema.SetAttribute{
				Computed: true, ElementType: types.StringType,
				MarkdownDescription: "Bindings, written as `source -> destination [routing key]`, with their arguments behind.",
			},
			"policies": schema.MapNestedAttribute{
				Computed:            true,
				MarkdownDescription: "Policies by name.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"pattern":    computedString("Pattern of the names that the policy applies to."),
					"apply_to":   computedString("Kind of objects that the policy applies to."),
					"priority":   schema.Int64Attribute{Computed: true, MarkdownDescription: "Of the policies that match, the one with the highest priority applies."},
					"definition": schema.MapAttribute{Computed: true, ElementType: types.StringType, MarkdownDescription: "What the policy sets."},
				}},
			},
		},
	}
}

func objectsAttribute(description string) schema.MapNestedAttribute {
	return schema.MapNestedAttribute{
		Computed:            true,
		MarkdownDescription: description,
		NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
			"type":      computedString("Type, followed by flags that differ from a durable object's."),
			"arguments": schema.MapAttribute{Computed: true, ElementType: types.StringType, MarkdownDescription: "Arguments as text."},
		}},
	}
}
