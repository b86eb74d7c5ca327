package content

import (
	endian "encoding/binary"
	"errors"
	"math"
	"time"
)

// Types of values, by their letters on the wire. RabbitMQ reads 'L', and writes it as 'l' once it has changed the
// headers.
const (
	TypeBool      = 't'
	TypeInt8      = 'b'
	TypeUint8     = 'B'
	TypeInt16     = 's'
	TypeUint16    = 'u'
	TypeInt32     = 'I'
	TypeUint32    = 'i'
	TypeInt64     = 'l'
	TypeLongLong  = 'L'
	TypeFloat32   = 'f'
	TypeFloat64   = 'd'
	TypeDecimal   = 'D'
	TypeText      = 'S'
	TypeBinary    = 'x'
	TypeArray     = 'A'
	TypeTable     = 'F'
	TypeTimestamp = 'T'
	TypeVoid      = 'V'
)

// Special values in place of the size of a type.
const (
	unknown   = -1
	hasLength = -2
)

// sizes are the sizes, in bytes, of the values of each type.
var sizes = func() (sizes [256]int8) {
	for i := range sizes {
		sizes[i] = unknown
	}
	for tag, size := range map[byte]int8{
		TypeBool: 1, TypeInt8: 1, TypeUint8: 1, TypeInt16: 2, TypeUint16: 2, TypeInt32: 4, TypeUint32: 4,
		TypeInt64: 8, TypeLongLong: 8, TypeFloat32: 4, TypeFloat64: 8, TypeDecimal: 5, TypeTimestamp: 8, TypeVoid: 0,
		TypeText: hasLength, TypeBinary: hasLength, TypeArray: hasLength, TypeTable: hasLength,
	} {
		sizes[tag] = size
	}
	return sizes
}()

// Value is a value of a table or an array.
type Value struct {
	// Type is the value's letter on the wire.
	Type byte
	// Bytes are the value itself, without the length of a string, a table or an array.
	Bytes []byte
}

// Text makes a text value.
func Text(text string) Value { return Value{TypeText, []byte(text)} }

// Long makes a 64-bit integer.
func Long(n int64) Value {
	return Value{TypeInt64, endian.BigEndian.AppendUint64(nil, uint64(n))} //nolint:gosec // two's complement
}

// Number makes a 32-bit integer, or, if the number needs more bits, a 64-bit integer. Some clients (pika) read a
// negative 64-bit number as a huge one.
func Number(n int64) Value {
	if n < math.MinInt32 || n > math.MaxInt32 {
		return Long(n)
	}
	return Value{TypeInt32, endian.BigEndian.AppendUint32(nil, uint32(n))} //nolint:gosec // two's complement, and it fits
}

// List makes an array.
func List(values ...Value) Value {
	var data []byte
	for _, v := range values {
		data = AppendValue(data, v)
	}
	return Value{TypeArray, data}
}

// Text returns false if the value is no text.
func (v Value) Text() (string, bool) {
	if v.Type != TypeText {
		return "", false
	}
	return string(v.Bytes), true
}

// Integer returns false if the value is no integer, of any size. Clients write 64-bit integers as signed.
func (v Value) Integer() (int64, bool) {
	switch v.Type {
	case TypeInt8, TypeInt16, TypeInt32, TypeInt64, TypeLongLong:
		return signed(v.Bytes), true
	case TypeUint8, TypeUint16, TypeUint32:
		return int64(unsigned(v.Bytes)), true //nolint:gosec // of 32 bits at most
	}
	return 0, false
}

// Float returns false if the value is no floating-point number.
func (v Value) Float() (float64, bool) {
	switch v.Type {
	case TypeFloat32:
		return float64(math.Float32frombits(endian.BigEndian.Uint32(v.Bytes))), true
	case TypeFloat64:
		return math.Float64frombits(endian.BigEndian.Uint64(v.Bytes)), true
	}
	return 0, false
}

// Time returns false if the value is no timestamp, or is one after the year 9999.
func (v Value) Time() (time.Time, bool) {
	if v.Type != TypeTimestamp {
		return time.Time{}, false
	}
	at := seconds(unsigned(v.Bytes))
	return at, !at.IsZero()
}

// Table returns false if the value is no table.
func (v Value) Table() (Table, bool) { return Table(v.Bytes), v.Type == TypeTable }

// Array returns false if the value is no array.
func (v Value) Array() (Array, bool) { return Array(v.Bytes), v.Type == TypeArray }

// readValue reads a value, and also returns the bytes after it.
func readValue(data []byte) (Value, []byte, error) {
	tag, data, err := cut(data, 1)
	if err != nil {
		return Value{}, nil, err
	}
	size, prefix := int64(sizes[tag[0]]), 0
	switch size {
	case unknown:
		return Value{}, nil, ErrUnknownType
	case hasLength:
		size, prefix = longSize(data), lengthSize
	}
	value, rest, err := cut(data, size)
	if err != nil {
		return Value{}, nil, err
	}
	return Value{tag[0], value[prefix:]}, rest, nil
}

// AppendValue appends an encoded value.
func AppendValue(data []byte, v Value) []byte {
	data = append(data, v.Type)
	if sizes[v.Type] == hasLength {
		data = appendLength(data, len(v.Bytes))
	}
	return append(data, v.Bytes...)
}

func unsigned(data []byte) (n uint64) {
	for _, b := range data {
		n = n<<8 | uint64(b)
	}
	return n
}

func signed(data []byte) int64 {
	shift := 64 - 8*len(data)
	return int64(unsigned(data)<<shift) >> shift //nolint:gosec // two's complement
}

// maxSeconds is the end of the year 9999, the last year with four digits.
const maxSeconds = 253402300799

func seconds(n uint64) time.Time {
	if n > maxSeconds {
		return time.Time{}
	}
	return time.Unix(int64(n), 0).UTC()
}

// Why properties cannot be read.
var (
	ErrMalformed   = errors.New("the properties are malformed")
	ErrTooDeep     = errors.New("the headers nest too deep")
	ErrTooMany     = errors.New("the headers have a table or list with too many entries")
	ErrUnknownType = errors.New("the headers have a value of an unknown type")
)

// shortSize is the size of a short string with its length, in bytes.
func shortSize(data []byte) int64 {
	if len(data) == 0 {
		return 1
	}
	return 1 + int64(data[0])
}

// longSize is the size of a long string, a table or an array with its length, in bytes.
func longSize(data []byte) int64 {
	if len(data) < lengthSize {
		return lengthSize
	}
	return lengthSize + int64(endian.BigEndian.Uint32(data))
}

// cut splits data after n bytes.
func cut(data []byte, n int64) (head, rest []byte, err error) {
	if n > int64(len(data)) {
		return nil, nil, ErrMalformed
	}
	return data[:n:n], data[n:], nil
}

// AppendShort appends a short string, which has at most 255 bytes.
func AppendShort(data []byte, text string) []byte {
	return append(append(data, byte(len(text))), text...) //nolint:gosec // the caller's word
}

func appendLength(data []byte, n int) []byte {
	return endian.BigEndian.AppendUint32(data, uint32(n)) //nolint:gosec // no message is larger
}
