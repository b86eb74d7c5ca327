// Package attribute has what the attributes of several resources and data sources are made of.
package attribute

import (
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// MapValue converts a map of anything.
func MapValue[T any](elementType attr.Type, from map[string]T, convert func(T) attr.Value) types.Map {
	values := make(map[string]attr.Value, len(from))
	for name, element := range from {
		values[name] = convert(element)
	}
	return types.MapValueMust(elementType, values)
}

// Drained says which elements were seen to be empty, by their attribute of that name.
func Drained(of types.Map) map[string]bool {
	all := map[string]bool{}
	for name, element := range of.Elements() {
		object, _ := element.(types.Object)
		drained, _ := object.Attributes()["drained"].(types.Bool)
		all[name] = drained.ValueBool()
	}
	return all
}

// textMap is a map of texts, null for nil.
func textMap(from map[string]string) types.Map {
	if from == nil {
		return types.MapNull(types.StringType)
	}
	return MapValue(types.StringType, from, func(text string) attr.Value { return types.StringValue(text) })
}

// StringValues are the elements of a list or a set of texts.
func StringValues(from []string) []attr.Value {
	values := make([]attr.Value, 0, len(from))
	for _, text := range from {
		values = append(values, types.StringValue(text))
	}
	return values
}

// TextValue is null for an empty text.
func TextValue(text string) types.String {
	if text == "" {
		return types.StringNull()
	}
	return types.StringValue(text)
}
