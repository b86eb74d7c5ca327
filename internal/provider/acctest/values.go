package acctest

import (
	"encoding/json"
	"maps"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
	"github.com/zclconf/go-cty/cty/msgpack"
)

// unknown stands for a value that is known after apply.
const unknown = "(known after apply)"

// conforms reports whether a value agrees with the planned value.
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

// dynamic converts attributes into a value of the plugin protocol. Missing attributes are null.
func dynamic(object cty.Type, attributes map[string]any) (*tfprotov6.DynamicValue, error) {
	typed, err := withTypes(object, attributes)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(typed)
	if err != nil {
		return nil, err
	}
	value, err := ctyjson.Unmarshal(text, object)
	if err != nil {
		return nil, err
	}
	return encode(value, object)
}

// withTypes adds their types to the values of dynamic attributes, as ctyjson reads them.
func withTypes(object cty.Type, attributes map[string]any) (map[string]any, error) {
	typed := maps.Clone(attributes)
	for name, value := range typed {
		if value == nil || object.AttributeType(name) != cty.DynamicPseudoType {
			continue
		}
		text, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		of, err := ctyjson.ImpliedType(text)
		if err != nil {
			return nil, err
		}
		described, err := ctyjson.MarshalType(of)
		if err != nil {
			return nil, err
		}
		typed[name] = map[string]any{"value": value, "type": json.RawMessage(described)}
	}
	return typed, nil
}

func encode(value cty.Value, object cty.Type) (*tfprotov6.DynamicValue, error) {
	encoded, err := msgpack.Marshal(value, object)
	return &tfprotov6.DynamicValue{MsgPack: encoded}, err
}

func decode(object cty.Type, value *tfprotov6.DynamicValue) (cty.Value, error) {
	return msgpack.Unmarshal(value.MsgPack, object)
}

// plain converts an object of the plugin protocol into the values that encoding/json would decode. Sets have a fixed order,
// and unknown values are a special text.
func plain(object cty.Type, encoded *tfprotov6.DynamicValue) (map[string]any, error) {
	value, err := decode(object, encoded)
	if err != nil {
		return nil, err
	}
	parts, _ := plainValue(value).(map[string]any)
	return parts, nil
}

func plainValue(value cty.Value) any {
	switch kind := value.Type(); {
	case !value.IsKnown():
		return unknown
	case value.IsNull():
		return nil
	case kind == cty.String:
		return value.AsString()
	case kind == cty.Bool:
		return value.True()
	case kind == cty.Number:
		return json.Number(value.AsBigFloat().Text('f', -1)) // not a text, which Terraform tells from a number
	case kind.IsListType(), kind.IsSetType(), kind.IsTupleType():
		list := []any{}
		for _, part := range value.AsValueSlice() {
			list = append(list, plainValue(part))
		}
		return list
	default:
		parts := map[string]any{}
		for name, part := range value.AsValueMap() {
			parts[name] = plainValue(part)
		}
		return parts
	}
}
