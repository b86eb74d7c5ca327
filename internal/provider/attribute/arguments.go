package attribute

import (
	"math/big"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Arguments converts the value of an attribute that has a value of any type for each key. Keys without a value are left out. An
// integer becomes int64, another number float64. A text becomes a number where RabbitMQ wants one.
func Arguments(from types.Dynamic) topology.Arguments {
	return topology.Typed(UntypedArguments(from))
}

// UntypedArguments is like Arguments, but texts stay texts: the arguments of a binding can be headers of any name.
func UntypedArguments(from types.Dynamic) topology.Arguments {
	elements, _ := Decoded(from.UnderlyingValue()).(map[string]any)
	return nonEmpty(elements)
}

// TextArguments converts the value of an attribute that has a text for each key.
func TextArguments(from types.Map) topology.Arguments {
	elements, _ := Decoded(from).(map[string]any)
	return topology.Typed(nonEmpty(elements))
}

func nonEmpty(elements map[string]any) topology.Arguments {
	if len(elements) == 0 {
		return nil
	}
	return elements
}

// Decoded converts a value to the types of [topology.Arguments]. It is nil if the value is null or unknown.
func Decoded(value attr.Value) any {
	if value == nil || value.IsNull() || value.IsUnknown() {
		return nil
	}
	switch v := value.(type) {
	case types.String:
		return v.ValueString()
	case types.Bool:
		return v.ValueBool()
	case types.Int64:
		return v.ValueInt64()
	case types.Number:
		return decodedNumber(v.ValueBigFloat())
	case types.Dynamic:
		return Decoded(v.UnderlyingValue())
	case interface{ Attributes() map[string]attr.Value }:
		return decodedTable(v.Attributes())
	case types.Map:
		return decodedTable(v.Elements())
	case interface{ Elements() []attr.Value }:
		list := []any{}
		for _, element := range v.Elements() {
			list = append(list, Decoded(element))
		}
		return list
	}
	return nil
}

func decodedTable(from map[string]attr.Value) map[string]any {
	table := map[string]any{}
	for key, element := range from {
		if value := Decoded(element); value != nil {
			table[key] = value
		}
	}
	return table
}

func decodedNumber(number *big.Float) any {
	if integer, exact := number.Int64(); exact == big.Exact {
		return integer
	}
	float, _ := number.Float64()
	return float
}

// ArgumentsObject is the reverse of Arguments, null for no arguments.
func ArgumentsObject(arguments topology.Arguments) types.Dynamic {
	if len(arguments) == 0 {
		return types.DynamicNull()
	}
	return types.DynamicValue(Encoded(map[string]any(arguments)))
}

// TextArgumentsValue is the reverse of TextArguments, null for no arguments.
func TextArgumentsValue(arguments topology.Arguments) types.Map {
	if len(arguments) == 0 {
		return types.MapNull(types.StringType)
	}
	return MapValue(types.StringType, arguments, func(value any) attr.Value { return types.StringValue(topology.ValueText(value)) })
}

// Encoded is the reverse of [Decoded].
func Encoded(value any) attr.Value {
	switch v := value.(type) {
	case string:
		return types.StringValue(v)
	case bool:
		return types.BoolValue(v)
	case int64:
		return types.NumberValue(new(big.Float).SetInt64(v))
	case float64:
		return types.NumberValue(big.NewFloat(v))
	case []any:
		var of []attr.Type
		var values []attr.Value
		for _, element := range v {
			values = append(values, Encoded(element))
			of = append(of, values[len(values)-1].Type(Background))
		}
		return types.TupleValueMust(of, values)
	case map[string]any:
		values := map[string]attr.Value{}
		for key, element := range v {
			values[key] = Encoded(element)
		}
		return object(values)
	}
	return types.StringNull()
}
