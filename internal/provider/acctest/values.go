package acctest

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// unknown stands for a value that is known after apply.
const unknown = "(known after apply)"

// conforms reports whether a value is what was planned.
func conforms(planned, value any) bool {
	if planned == unknown {
		return true
	}
	switch planned := planned.(type) {
	case map[string]any:
		parts, same := value.(map[string]any)
		same = same && len(parts) == len(planned)
		for name := range planned {
			part, there := parts[name]
			same = same && there && conforms(planned[name], part)
		}
		return same
	case []any:
		parts, same := value.([]any)
		same = same && len(parts) == len(planned)
		for i := range planned {
			same = same && conforms(planned[i], parts[i])
		}
		return same
	}
	return planned == value
}

// dynamic turns attributes into a value of the protocol; those that are missing are null.
func dynamic(valueType tftypes.Type, attributes map[string]any) (*tfprotov6.DynamicValue, error) {
	text, err := json.Marshal(attributes)
	if err != nil {
		return nil, err
	}
	value, err := tfprotov6.RawState{JSON: text}.Unmarshal(valueType)
	if err != nil {
		return nil, err
	}
	encoded, err := tfprotov6.NewDynamicValue(valueType, value)
	return &encoded, err
}

// attributes takes an object apart; nil for null.
func attributes(valueType tftypes.Type, object *tfprotov6.DynamicValue) (map[string]tftypes.Value, error) {
	value, err := object.Unmarshal(valueType)
	if err != nil || value.IsNull() {
		return nil, err
	}
	var parts map[string]tftypes.Value
	err = value.As(&parts)
	return parts, err
}

// plain turns an object of the protocol into what encoding/json would make of it, with sets in a
// fixed order and unknown values as a word of their own.
func plain(valueType tftypes.Type, object *tfprotov6.DynamicValue) (map[string]any, error) {
	value, err := object.Unmarshal(valueType)
	if err != nil {
		return nil, err
	}
	converted, err := plainValue(value)
	parts, _ := converted.(map[string]any)
	return parts, err
}

func plainValue(value tftypes.Value) (any, error) {
	switch {
	case !value.IsKnown():
		return unknown, nil
	case value.IsNull():
		return nil, nil
	}
	switch kind := value.Type(); {
	case kind.Is(tftypes.String):
		var text string
		err := value.As(&text)
		return text, err
	case kind.Is(tftypes.Bool):
		var truth bool
		err := value.As(&truth)
		return truth, err
	case kind.Is(tftypes.Number):
		number := new(big.Float)
		err := value.As(&number)
		return number.String(), err
	case kind.Is(tftypes.List{}), kind.Is(tftypes.Set{}):
		return plainList(value)
	}
	var parts map[string]tftypes.Value
	if err := value.As(&parts); err != nil {
		return nil, err
	}
	converted := map[string]any{}
	for name, part := range parts {
		element, err := plainValue(part)
		if err != nil {
			return nil, err
		}
		converted[name] = element
	}
	return converted, nil
}

func plainList(value tftypes.Value) (any, error) {
	var parts []tftypes.Value
	if err := value.As(&parts); err != nil {
		return nil, err
	}
	converted := make([]any, 0, len(parts))
	for _, part := range parts {
		element, err := plainValue(part)
		if err != nil {
			return nil, err
		}
		converted = append(converted, element)
	}
	if value.Type().Is(tftypes.Set{}) {
		slices.SortFunc(converted, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	}
	return converted, nil
}

// WithoutTopology is the rest of a resource.
func WithoutTopology(attributes map[string]any) map[string]any {
	rest := maps.Clone(attributes)
	delete(rest, "topology")
	return rest
}
