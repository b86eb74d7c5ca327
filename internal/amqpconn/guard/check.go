package guard

import "errors"

// Limits of amqp091-go v1.16, which does not export them.
const (
	// maxDepth is how deep tables and arrays may nest, the headers themselves not counted.
	maxDepth = 32
	// maxEntries is how many entries a table or an array may have. The library counts a repeated key
	// once; no broker repeats one.
	maxEntries = 8192
)

// Why the client cannot decode a message.
var (
	errTooLarge    = errors.New("the headers are larger than the connection's frame_max")
	errTooDeep     = errors.New("the headers nest deeper than 32 levels")
	errTooMany     = errors.New("the headers have a table or list of more than 8192 entries")
	errUnknownType = errors.New("the headers have a value of an unknown type")
	errMalformed   = errors.New("the properties are malformed")
	errForged      = errors.New("its publisher gave it the header " + HeaderUndecodable)
)

// scalars are the types of values whose size does not vary.
var scalars = map[byte]int64{
	't': 1, 'b': 1, 'B': 1, 's': 2, 'u': 2, 'I': 4, 'i': 4, 'f': 4, 'l': 8, 'd': 8, 'T': 8, 'D': 5, 'V': 0,
}

// check is an error if the client could not decode a content header. It is stricter than the client
// about lengths that do not add up, which no broker sends.
func check(payload []byte) error {
	return eachProperty(payload, func(flag uint16, value []byte) error {
		if flag != flagHeaders {
			return nil
		}
		return checkTable(value[lengthSize:], 0)
	})
}

func checkTable(data []byte, depth int) error {
	for entries := 0; len(data) > 0; entries++ {
		if entries == maxEntries {
			return errTooMany
		}
		_, value, err := cut(data, shortSize(data))
		if err != nil {
			return err
		}
		if data, err = checkValue(value, depth); err != nil {
			return err
		}
	}
	return nil
}

func checkArray(data []byte, depth int) (err error) {
	for entries := 0; len(data) > 0; entries++ {
		if entries == maxEntries {
			return errTooMany
		}
		if data, err = checkValue(data, depth); err != nil {
			return err
		}
	}
	return nil
}

// checkValue returns what follows the value.
func checkValue(data []byte, depth int) ([]byte, error) {
	tag, data, err := cut(data, 1)
	if err != nil {
		return nil, err
	}
	if size, ok := scalars[tag[0]]; ok {
		_, rest, err := cut(data, size)
		return rest, err
	}
	if !hasLength(tag[0]) {
		return nil, errUnknownType
	}
	content, rest, err := cut(data, longSize(data))
	if err != nil {
		return nil, err
	}
	content = content[lengthSize:]
	switch {
	case tag[0] == 'S' || tag[0] == 'x':
		return rest, nil
	case depth == maxDepth:
		return nil, errTooDeep
	case tag[0] == 'F':
		return rest, checkTable(content, depth+1)
	default:
		return rest, checkArray(content, depth+1)
	}
}

// hasLength tells of strings, tables and arrays.
func hasLength(tag byte) bool {
	return tag == 'S' || tag == 'x' || tag == 'F' || tag == 'A'
}
