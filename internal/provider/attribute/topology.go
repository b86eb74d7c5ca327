package attribute

import (
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

var (
	// ObjectType is the type of an exchange or a queue.
	ObjectType = types.ObjectType{AttrTypes: map[string]attr.Type{
		"type":      types.StringType,
		"arguments": types.MapType{ElemType: types.StringType},
	}}
	// PolicyType is the type of a policy.
	PolicyType = types.ObjectType{AttrTypes: map[string]attr.Type{
		"pattern":    types.StringType,
		"apply_to":   types.StringType,
		"priority":   types.Int64Type,
		"definition": types.MapType{ElemType: types.StringType},
	}}
	// TopologyType has the types of the four kinds of objects.
	TopologyType = map[string]attr.Type{
		"exchanges": types.MapType{ElemType: ObjectType},
		"queues":    types.MapType{ElemType: ObjectType},
		"bindings":  types.SetType{ElemType: types.StringType},
		"policies":  types.MapType{ElemType: PolicyType},
	}
)

// TopologyAttribute describes every object that the resource owns, by name.
func TopologyAttribute() schema.SingleNestedAttribute {
	return schema.SingleNestedAttribute{
		Computed:            true,
		MarkdownDescription: "Every object on the broker that the resource owns. What was changed by hand shows up here as a difference, and apply repairs exactly that object.",
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
					"pattern":    ComputedString("Pattern of the names that the policy applies to."),
					"apply_to":   ComputedString("Kind of objects that the policy applies to."),
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
			"type":      ComputedString("Type, followed by flags that differ from a durable object's."),
			"arguments": schema.MapAttribute{Computed: true, ElementType: types.StringType, MarkdownDescription: "Arguments as text."},
		}},
	}
}

// TopologyValue is a set of objects as the attribute shows it.
func TopologyValue(view topology.View) types.Object {
	return types.ObjectValueMust(TopologyType, map[string]attr.Value{
		"exchanges": MapValue(ObjectType, view.Exchanges, ObjectValue),
		"queues":    MapValue(ObjectType, view.Queues, ObjectValue),
		"bindings":  types.SetValueMust(types.StringType, StringValues(view.Bindings)),
		"policies":  MapValue(PolicyType, view.Policies, PolicyValue),
	})
}

// ObjectValue is an exchange or a queue.
func ObjectValue(view topology.ObjectView) attr.Value {
	return types.ObjectValueMust(ObjectType.AttrTypes, map[string]attr.Value{
		"type":      types.StringValue(view.Type),
		"arguments": TextMap(view.Arguments),
	})
}

// PolicyValue is a policy.
func PolicyValue(view topology.PolicyView) attr.Value {
	return types.ObjectValueMust(PolicyType.AttrTypes, map[string]attr.Value{
		"pattern":    types.StringValue(view.Pattern),
		"apply_to":   types.StringValue(view.ApplyTo),
		"priority":   types.Int64Value(view.Priority),
		"definition": TextMap(view.Definition),
	})
}
