// Package attribute has attributes and values that several resources and data sources share.
package attribute

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-jsontypes/jsontypes"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// MapValue converts each element of a map.
func MapValue[T any, V attr.Value](elementType attr.Type, from map[string]T, convert func(T) V) types.Map {
	values := make(map[string]attr.Value, len(from))
	for name, element := range from {
		values[name] = convert(element)
	}
	return types.MapValueMust(elementType, values)
}

// object has attributes of the types that the values have.
func object(values map[string]attr.Value) types.Object {
	of := make(map[string]attr.Type, len(values))
	for name, value := range values {
		of[name] = value.Type(Background)
	}
	return types.ObjectValueMust(of, values)
}

// Drained are the elements' attributes drained, by the elements' names.
func Drained(of types.Map) map[string]bool {
	all := map[string]bool{}
	for name, element := range of.Elements() {
		object, _ := element.(types.Object)
		drained, _ := object.Attributes()["drained"].(types.Bool)
		all[name] = drained.ValueBool()
	}
	return all
}

// StringValues are the elements of a list or a set of texts.
func StringValues(from []string) []attr.Value {
	values := make([]attr.Value, 0, len(from))
	for _, text := range from {
		values = append(values, types.StringValue(text))
	}
	return values
}

// Texts are the elements of a set of texts, in order.
func Texts(from types.Set) []string {
	var texts []string
	for _, element := range from.Elements() {
		text, _ := element.(types.String)
		texts = append(texts, text.ValueString())
	}
	slices.Sort(texts)
	return texts
}

// TextValue is a text, null for "".
func TextValue(text string) types.String {
	if text == "" {
		return types.StringNull()
	}
	return types.StringValue(text)
}

// Known reports whether a value is set and known.
func Known(value attr.Value) bool { return !value.IsNull() && !value.IsUnknown() }

// FullyKnown reports whether a collection is set and all its values are known.
func FullyKnown(ctx context.Context, collection attr.Value) bool {
	return !collection.IsNull() && hasNoUnknown(ctx, collection)
}

// hasNoUnknown reports whether a value, which can be null, and all values in it are known.
func hasNoUnknown(ctx context.Context, value attr.Value) bool {
	all, err := value.ToTerraformValue(ctx)
	return err == nil && all.IsFullyKnown()
}

// AllKnown reports whether the values, which can be null, and all values in them are known.
func AllKnown(values ...attr.Value) bool {
	return !slices.ContainsFunc(values, func(value attr.Value) bool { return !hasNoUnknown(Background, value) })
}

// Shown is the part of a path whose line Terraform can show. For an attribute within an entry of a map, it is the entry.
func Shown(at path.Path) path.Path {
	for len(at.Steps()) > 2 {
		at = at.ParentPath()
	}
	return at
}

// ParseObject parses a JSON object without losing digits of integers. It returns nil if the text is null or unknown.
func ParseObject(text jsontypes.Normalized, at path.Path) (topology.Arguments, diag.Diagnostics) {
	var diags diag.Diagnostics
	if !Known(text) {
		return nil, diags
	}
	decoder := json.NewDecoder(strings.NewReader(text.ValueString()))
	decoder.UseNumber()
	var decoded map[string]any
	if err := decoder.Decode(&decoded); err != nil || decoded == nil {
		diags.AddAttributeError(Shown(at), "Not a JSON object",
			fmt.Sprintf("%s must be a JSON object, such as jsonencode({ \"key\" = \"value\" }).", at))
		return nil, diags
	}
	return topology.DecodedArguments(decoded), diags
}

// ArgumentsValue is the reverse of ParseObject.
func ArgumentsValue(arguments topology.Arguments) jsontypes.Normalized {
	if arguments == nil {
		return jsontypes.NewNormalizedNull()
	}
	return jsontypes.NewNormalizedValue(arguments.Key())
}
