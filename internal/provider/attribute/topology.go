package attribute

import (
	"context"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

var (
	// objectsType is the type of all objects of one kind: one line per object, by name.
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
// The first release freezes the lines and the names of the kinds; [topology.View] says which changes are possible afterwards.
func TopologyAttribute() schema.SingleNestedAttribute {
	return schema.SingleNestedAttribute{
		Computed: true,
		MarkdownDescription: "Every object that the resource owns, one line each: " +
			"maps `exchanges`, `queues` and `policies` by name, and the set `bindings`.",
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

// TopologyValue shows objects as the attribute does.
func TopologyValue(t topology.Topology) types.Object {
	view := topology.Render(t)
	return types.ObjectValueMust(TopologyType, map[string]attr.Value{
		"exchanges": MapValue(types.StringType, view.Exchanges, types.StringValue),
		"queues":    MapValue(types.StringType, view.Queues, types.StringValue),
		"policies":  MapValue(types.StringType, view.Policies, types.StringValue),
		"bindings":  Bindings{types.SetValueMust(types.StringType, StringValues(view.Bindings))},
	})
}

// ExchangesValue is a topology with known exchanges and all else unknown.
func ExchangesValue(exchanges map[string]topology.Exchange) types.Object {
	lines := topology.Render(topology.Topology{Exchanges: exchanges}).Exchanges
	return types.ObjectValueMust(TopologyType, map[string]attr.Value{
		"exchanges": MapValue(types.StringType, lines, types.StringValue),
		"queues":    types.MapUnknown(types.StringType),
		"policies":  types.MapUnknown(types.StringType),
		"bindings":  Bindings{types.SetUnknown(types.StringType)},
	})
}

// bindingsType is a set of texts that is compared as a whole. The framework compares each element with every other one, which
// takes seconds for a thousand elements.
type bindingsType struct{ basetypes.SetType }

var setOfBindings = bindingsType{types.SetType{ElemType: types.StringType}}

// Equal reports whether the types are the same.
func (t bindingsType) Equal(o attr.Type) bool {
	_, same := o.(bindingsType)
	return same
}

// ValueType is the Go type of the values.
func (t bindingsType) ValueType(context.Context) attr.Value { return Bindings{} }

// ValueFromSet makes bindings from a set.
func (t bindingsType) ValueFromSet(_ context.Context, set basetypes.SetValue) (basetypes.SetValuable, diag.Diagnostics) {
	return Bindings{set}, nil
}

// ValueFromTerraform makes bindings from Terraform's value.
func (t bindingsType) ValueFromTerraform(ctx context.Context, in tftypes.Value) (attr.Value, error) {
	value, err := t.SetType.ValueFromTerraform(ctx, in)
	set, _ := value.(basetypes.SetValue)
	return Bindings{set}, err
}

// Bindings are a topology's bindings, one text each.
type Bindings struct{ basetypes.SetValue }

// Type is the type of all bindings.
func (b Bindings) Type(context.Context) attr.Type { return setOfBindings }

// Equal reports whether the texts are the same.
func (b Bindings) Equal(o attr.Value) bool {
	other, same := o.(Bindings)
	return same && b.IsNull() == other.IsNull() && b.IsUnknown() == other.IsUnknown() && maps.Equal(b.Texts(), other.Texts())
}

// SetSemanticEquals is Equal for two known sets.
func (b Bindings) SetSemanticEquals(_ context.Context, prior basetypes.SetValuable) (bool, diag.Diagnostics) {
	return b.Equal(prior), nil
}

// Texts are the elements.
func (b Bindings) Texts() map[attr.Value]bool {
	texts := map[attr.Value]bool{}
	for _, element := range b.Elements() {
		texts[element] = true
	}
	return texts
}
