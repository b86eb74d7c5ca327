package attribute

import (
	"context"
	"reflect"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
)

// Inputs are the attributes that a configuration can set and that matter to the objects on the broker.
type Inputs []string

// InputsOf are the inputs of a schema, except the named attributes. A new attribute thus counts until it is named here.
func InputsOf(s schema.Schema, except ...string) Inputs {
	var inputs Inputs
	for name, attribute := range s.Attributes {
		if (attribute.IsRequired() || attribute.IsOptional()) && !slices.Contains(except, name) {
			inputs = append(inputs, name)
		}
	}
	return inputs
}

// Known reports whether all inputs of a model are completely known. An input that is not set counts as known.
func (in Inputs) Known(ctx context.Context, model any) bool {
	return !slices.ContainsFunc(in.values(model), func(input attr.Value) bool { return !hasNoUnknown(ctx, input) })
}

// Differ reports whether two models differ in an input.
func (in Inputs) Differ(a, b any) bool {
	return !slices.EqualFunc(in.values(a), in.values(b), attr.Value.Equal)
}

// values are the inputs of a model, a struct with `tfsdk` tags, in the order of its fields.
func (in Inputs) values(model any) []attr.Value {
	var values []attr.Value
	of := reflect.ValueOf(model)
	for i := range of.NumField() {
		value, isValue := reflect.TypeAssert[attr.Value](of.Field(i))
		if isValue && slices.Contains(in, of.Type().Field(i).Tag.Get("tfsdk")) {
			values = append(values, value)
		}
	}
	return values
}
