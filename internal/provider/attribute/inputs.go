package attribute

import (
	"context"
	"reflect"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
)

// Inputs are attributes that a configuration can set.
type Inputs []string

// InputsOf are all inputs of a schema except the named attributes, which do not matter to the objects on the broker. A new
// attribute thus counts until it is named here.
func InputsOf(s schema.Schema, except ...string) Inputs {
	var inputs Inputs
	for name, attribute := range s.Attributes {
		if (attribute.IsRequired() || attribute.IsOptional()) && !slices.Contains(except, name) {
			inputs = append(inputs, name)
		}
	}
	return inputs
}

// Unknown are the inputs of a model that are not completely known. An input that is not set counts as known.
func (in Inputs) Unknown(ctx context.Context, model any) Inputs {
	values := in.values(model)
	return slices.DeleteFunc(slices.Clone(in), func(name string) bool { return hasNoUnknown(ctx, values[name]) })
}

// Different are the inputs in which two models differ.
func (in Inputs) Different(a, b any) Inputs {
	before, after := in.values(a), in.values(b)
	return slices.DeleteFunc(slices.Clone(in), func(name string) bool { return before[name].Equal(after[name]) })
}

// values are the inputs of a model, a struct with `tfsdk` tags, or with such structs embedded.
func (in Inputs) values(model any) map[string]attr.Value {
	values := map[string]attr.Value{}
	of := reflect.ValueOf(model)
	for _, field := range reflect.VisibleFields(of.Type()) {
		if name := field.Tag.Get("tfsdk"); slices.Contains(in, name) {
			values[name], _ = reflect.TypeAssert[attr.Value](of.FieldByIndex(field.Index))
		}
	}
	return values
}
