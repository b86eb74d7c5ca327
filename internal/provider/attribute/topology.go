package attribute

import (
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

var (
	// objectsType is the type of objects of one kind: a line for each, by name.
	objectsType = types.MapType{ElemType: types.StringType}
	// TopologyType has the types of the four kinds of objects.
	TopologyType = map[string]attr.Type{
		"exchanges": objectsType,
		"queues":    objectsType,
		"policies":  objectsType,
		"bindings":  setOfBindings,
	}
)

// TopologyAttribute describes every object that the resource owns, one line per object.
//
// The first release freezes the lines and the names of the kinds; see [topology.View] for what may change afterwards.
func TopologyAttribute() schema.SingleNestedAttribute {
	return schema.SingleNestedAttribute{
		Computed: true,
		MarkdownDescription: "Every object on the broker that the resource owns, one line per object. " +
			"What was changed by hand shows up here as a difference, and apply repairs exactly that object. " +
			"Numbers, booleans, lists and tables are written as JSON; " +
			"a text that could be read as one of these is in single quotes: `x-message-ttl=5000` is a number, `x-message-ttl='5000'` a text.",
		Attributes: map[string]schema.Attribute{
			"exchanges": objectsAttribute("Exchanges by name, written as `type key=value`; flags such as `transient` follow the type."),
			"queues":    objectsAttribute("Queues by name, written as `type key=value`; flags such as `transient` follow the type."),
			"policies":  objectsAttribute("Policies by name, written as `apply-to pattern priority=number key=value`."),
			"bindings": schema.SetAttribute{
				Computed: true, ElementType: types.StringType, CustomType: setOfBindings,
				MarkdownDescription: "Bindings, written as `source -> destination [routing key] key=value`.",
			},
		},
	}
}

func objectsAttribute(description string) schema.MapAttribute {
	return schema.MapAttribute{Computed: true, ElementType: types.StringType, MarkdownDescription: description}
}

// TopologyValue is a set of objects as the attribute shows it.
func TopologyValue(t topology.Topology) types.Object {
	view := topology.Render(t)
	return types.ObjectValueMust(TopologyType, map[string]attr.Value{
		"exchanges": textMap(view.Exchanges),
		"queues":    textMap(view.Queues),
		"policies":  textMap(view.Policies),
		"bindings":  Bindings{types.SetValueMust(types.StringType, StringValues(view.Bindings))},
	})
}

// ExchangesValue is a topology of which only the exchanges are known.
func ExchangesValue(exchanges map[string]topology.Exchange) types.Object {
	return types.ObjectValueMust(TopologyType, map[string]attr.Value{
		"exchanges": textMap(topology.Render(topology.Topology{Exchanges: exchanges}).Exchanges),
		"queues":    types.MapUnknown(types.StringType),
		"policies":  types.MapUnknown(types.StringType),
		"bindings":  Bindings{types.SetUnknown(types.StringType)},
	})
}
