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
		// A broker that was sent 1.0 stores 1.
		if whole := int64(float); float64(whole) == float {
			return whole
		}
		return float
	case []any:
		list := make([]any, len(value))
		for i, element := range value {
			list[i] = decodedValue(element)
		}
		return list
	case map[string]any:
		table := make(map[string]any, len(value))
		for key, element := range value {
			table[key] = decodedValue(element)
		}
		return table
	default:
		return value
	}
}

// Key is a text that is equal for equal arguments: encoding/json sorts keys.
func (a Arguments) Key() string {
	text, err := json.Marshal(a)
	if err != nil {
		panic("arguments hold JSON values only: " + err.Error())
	}
	return string(text)
}
