package attribute

import (
	"context"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// bindingsType is a set of texts that is compared as a whole. The framework compares each element with each other one,
// which takes seconds for a thousand.
type bindingsType struct{ basetypes.SetType }

var setOfBindings = bindingsType{types.SetType{ElemType: types.StringType}}

// Equal reports whether the types are the same.
func (t bindingsType) Equal(o attr.Type) bool {
	_, same := o.(bindingsType)
	return same
}

// ValueType is that of the values.
func (t bindingsType) ValueType(context.Context) attr.Value { return Bindings{} }

// ValueFromSet makes a value.
func (t bindingsType) ValueFromSet(_ context.Context, set basetypes.SetValue) (basetypes.SetValuable, diag.Diagnostics) {
	return Bindings{set}, nil
}

// ValueFromTerraform makes a value.
func (t bindingsType) ValueFromTerraform(ctx context.Context, in tftypes.Value) (attr.Value, error) {
	value, err := t.SetType.ValueFromTerraform(ctx, in)
	set, _ := value.(basetypes.SetValue)
	return Bindings{set}, err
}

// Bindings are those of a topology, as texts.
type Bindings struct{ basetypes.SetValue }

// Type is that of all of them.
func (b Bindings) Type(context.Context) attr.Type { return setOfBindings }

// Equal reports whether the texts are the same.
func (b Bindings) Equal(o attr.Value) bool {
	other, same := o.(Bindings)
	return same && b.IsNull() == other.IsNull() && b.IsUnknown() == other.IsUnknown() && maps.Equal(b.Texts(), other.Texts())
}

// SetSemanticEquals is Equal of what is known.
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
