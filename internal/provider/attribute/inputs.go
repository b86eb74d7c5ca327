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

// InputsOf are those of a schema. What is not listed as an exception counts, so that a new attribute is never forgotten.
func InputsOf(s schema.Schema, except ...string) Inputs {
	var inputs Inputs
	for name, attribute := range s.Attributes {
		if (attribute.IsRequired() || attribute.IsOptional()) && !slices.Contains(except, name) {
			inputs = append(inputs, name)
		}
	}
	return inputs
}

// Known reports whether all inputs of a model are known, with all that they hold. One that is not set is.
func (in Inputs) Known(ctx context.Context, model any) bool {
	for _, input := range in.values(model) {
		if value, err := input.ToTerraformValue(ctx); err != nil || !value.IsFullyKnown() {
			return false
		}
	}
	return true
}

// Differ reports whether an input of one model is another one's.
func (in Inputs) Differ(a, b any) bool {
	return !slices.EqualFunc(in.values(a), in.values(b), attr.Value.Equal)
}

// values are those of a model, a struct with `tfsdk` tags, in the order of its fields.
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
