package file

import (
	"bytes"
	"encoding/base64"
	endian "encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/content"
)

// node is a JSON value whose members keep their order.
type node struct {
	// scalar is nil, a bool, a string or a [json.Number], unless the node is an object or an array.
	scalar   any
	isObject bool
	isArray  bool
	members  []member
}

// member is a member of an object, or an element of an array, which has no name.
type member struct {
	name  string
	value *node
}

// readTree reads valid JSON.
func readTree(text []byte) (*node, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	return readNode(decoder, "")
}

// readNode reads the next value. The decoder limits the depth.
func readNode(decoder *json.Decoder, at string) (*node, error) {
	token, err := decoder.Token()
	if err != nil {
		return nil, err
	}
	delimiter, ok := token.(json.Delim)
	if !ok {
		return &node{scalar: token}, nil
	}
	n := &node{isObject: delimiter == '{', isArray: delimiter == '['}
	seen := map[string]bool{}
	for decoder.More() {
		var m member
		if n.isObject {
			name, _ := decoder.Token()
			m.name, _ = name.(string)
			if seen[m.name] {
				return nil, fmt.Errorf("duplicate key %s", pointer(at, m.name))
			}
			seen[m.name] = true
		}
		if m.value, err = readNode(decoder, pointer(at, m.name)); err != nil {
			return nil, err
		}
		n.members = append(n.members, m)
	}
	_, err = decoder.Token()
	return n, err
}

// sameJSON ignores the order of an object's members, and the spelling of numbers.
func sameJSON(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// spell writes a value as a number or a quoted text. It must not be a text, boolean, void, table or array.
func spell(v content.Value) (text string, quoted bool) {
	if n, ok := v.Integer(); ok {
		return strconv.FormatInt(n, 10), n > maxExact || n < -maxExact
	}
	if n, ok := v.Float(); ok {
		return strconv.FormatFloat(n, 'g', -1, 8*len(v.Bytes)), math.IsNaN(n) || math.IsInf(n, 0)
	}
	switch v.Type {
	case content.TypeTimestamp:
		n := endian.BigEndian.Uint64(v.Bytes)
		return strconv.FormatUint(n, 10), n > maxExact
	case content.TypeDecimal:
		return spellDecimal(v.Bytes), true
	}
	return base64.StdEncoding.EncodeToString(v.Bytes), true
}

// spellDecimal writes as many digits after the point as the number has.
func spellDecimal(data []byte) string {
	scale := int(data[0])
	digits := fmt.Sprintf("%0*d", scale+1, endian.BigEndian.Uint32(data[1:]))
	if scale == 0 {
		return digits
	}
	return digits[:len(digits)-scale] + "." + digits[len(digits)-scale:]
}

// unspell is the reverse of spell.
func unspell(letter byte, text string) (content.Value, error) {
	v := content.Value{Type: letter}
	var n float64
	var err error
	switch letter {
	case content.TypeFloat32:
		n, err = strconv.ParseFloat(text, 32)
		v.Bytes = endian.BigEndian.AppendUint32(nil, math.Float32bits(float32(n)))
	case content.TypeFloat64:
		n, err = strconv.ParseFloat(text, 64)
		v.Bytes = endian.BigEndian.AppendUint64(nil, math.Float64bits(n))
	case content.TypeDecimal:
		v.Bytes, err = unspellDecimal(text)
	case content.TypeBinary:
		v.Bytes, err = base64.StdEncoding.DecodeString(text)
	default:
		v.Bytes, err = unspellInteger(letter, text)
	}
	if err != nil {
		return v, fmt.Errorf("%.100q is not a value of type %c; remove its entry in types to make it a JSON value", text, letter)
	}
	return v, nil
}

func unspellDecimal(text string) ([]byte, error) {
	whole, fraction, _ := strings.Cut(text, ".")
	n, err := strconv.ParseUint(whole+fraction, 10, 32)
	if err == nil && len(fraction) > math.MaxUint8 {
		err = strconv.ErrRange
	}
	return endian.BigEndian.AppendUint32([]byte{byte(len(fraction))}, uint32(n)), err //nolint:gosec // checked
}

// bits are the sizes of integers in bits, negative for signed integers.
var bits = map[byte]int{
	content.TypeInt8: -8, content.TypeUint8: 8, content.TypeInt16: -16, content.TypeUint16: 16, content.TypeInt32: -32,
	content.TypeUint32: 32, content.TypeInt64: -64, content.TypeLongLong: -64, content.TypeTimestamp: 64,
}

func unspellInteger(letter byte, text string) ([]byte, error) {
	size, known := bits[letter]
	if !known {
		return nil, strconv.ErrSyntax
	}
	text = integral(text)
	if size < 0 {
		n, err := strconv.ParseInt(text, 10, -size)
		return endian.BigEndian.AppendUint64(nil, uint64(n))[8+size/8:], err //nolint:gosec // two's complement
	}
	n, err := strconv.ParseUint(text, 10, size)
	return endian.BigEndian.AppendUint64(nil, n)[8-size/8:], err
}

// integral writes 1.0 and 1e3 as integers, since some tools write integers like that.
func integral(text string) string {
	if !strings.ContainsAny(text, ".eE") {
		return text
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || n != math.Trunc(n) || math.Abs(n) > maxExact {
		return text
	}
	return strconv.FormatInt(int64(n), 10)
}
