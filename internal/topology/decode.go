package topology

import "encoding/json"

// DecodedArguments turns what encoding/json decoded with UseNumber into arguments: whole numbers
// become int64, others float64. It is nil where there are none.
func DecodedArguments(decoded map[string]any) Arguments {
	if len(decoded) == 0 {
		return nil
	}
	values := make(Arguments, len(decoded))
	for key, value := range decoded {
		values[key] = decodedValue(value)
	}
	return values
}

func decodedValue(decoded any) any {
	switch value := decoded.(type) {
	case json.Number:
		if integer, err := value.Int64(); err == nil {
			return integer
		}
		float, err := value.Float64()
		if err != nil {
			return value.String()
		}
		return float
	case []any:
		list := make([]any, len(value))
		for i, element := range value {
			list[i] = decodedValue(element)
		}
		return list
	case map[string]any:
		return map[string]any(DecodedArguments(value))
	default:
		return value
	}
}
