package translate

import (
	endian "encoding/binary"
	"errors"
	"math"
	"time"
)

// maxDepth bounds how deep values can nest. Deeper values are not read, so that no message exhausts the stack.
const maxDepth = 10_000

var (
	errCutOff  = errors.New("a value is cut off")
	errUnknown = errors.New("a value is of a type that AMQP 1.0 does not have")
	errTooDeep = errors.New("descriptors nest too deep")
)

// Values that have no counterpart in Go.
type (
	symbol  string
	uuid    [16]byte
	char    uint32
	decimal []byte
	list    []any
	// array has elements of one type.
	array []any
	// dict keeps the order of its entries.
	dict  []entry
	entry struct{ key, value any }
	// described is a value with a descriptor, which says what the value means.
	described struct{ descriptor, value any }
	// deep stands for a value that was not read.
	deep struct{}
)

// reader reads encoded values one after the other.
type reader struct{ data []byte }

func (r *reader) take(n int) ([]byte, error) {
	if n < 0 || n > len(r.data) {
		return nil, errCutOff
	}
	taken := r.data[:n]
	r.data = r.data[n:]
	return taken, nil
}

func (r *reader) value(depth int) (any, error) {
	code, err := r.take(1)
	if err != nil {
		return nil, err
	}
	if code[0] != 0 {
		return r.content(code[0], depth)
	}
	if depth >= maxDepth {
		return nil, errTooDeep
	}
	var d described
	if d.descriptor, err = r.value(depth + 1); err != nil {
		return nil, err
	}
	d.value, err = r.value(depth + 1)
	return d, err
}

// content reads a value of a known type. The upper half of the code says how to find the value's size.
func (r *reader) content(code byte, depth int) (any, error) {
	switch code >> 4 {
	case 0x4, 0x5, 0x6, 0x7, 0x8, 0x9:
		data, err := r.take(widths[code>>4])
		if err != nil {
			return nil, err
		}
		return fixed(code, data)
	case 0xa, 0xb:
		data, err := r.sized(code)
		if err != nil {
			return nil, err
		}
		return variable(code, data)
	case 0xc, 0xd, 0xe, 0xf:
		data, err := r.sized(code)
		if err != nil {
			return nil, err
		}
		if depth >= maxDepth {
			return deep{}, nil
		}
		return compound(code, data, depth+1)
	}
	return nil, errUnknown
}

// widths are the sizes of fixed-size values, in bytes, by the upper half of their code.
var widths = map[byte]int{0x4: 0, 0x5: 1, 0x6: 2, 0x7: 4, 0x8: 8, 0x9: 16}

// sized takes a value that begins with its size. The size has four bytes if the upper half of the code is odd,
// otherwise one.
func (r *reader) sized(code byte) ([]byte, error) {
	n, err := r.number(code)
	if err != nil {
		return nil, err
	}
	return r.take(n)
}

func (r *reader) number(code byte) (int, error) {
	if code>>4&1 == 0 {
		size, err := r.take(1)
		if err != nil {
			return 0, err
		}
		return int(size[0]), nil
	}
	size, err := r.take(4)
	if err != nil {
		return 0, err
	}
	return int(endian.BigEndian.Uint32(size)), nil
}

//nolint:gosec // the types are those of the wire
func fixed(code byte, data []byte) (any, error) {
	switch code {
	case 0x40:
		return nil, nil //nolint:nilnil // AMQP's null
	case 0x41:
		return true, nil
	case 0x42:
		return false, nil
	case 0x43:
		return uint32(0), nil
	case 0x44:
		return uint64(0), nil
	case 0x45:
		return list{}, nil
	case 0x50:
		return data[0], nil
	case 0x51:
		return int8(data[0]), nil
	case 0x52:
		return uint32(data[0]), nil
	case 0x53:
		return uint64(data[0]), nil
	case 0x54:
		return int32(int8(data[0])), nil
	case 0x55:
		return int64(int8(data[0])), nil
	case 0x56:
		return data[0] != 0, nil
	}
	return wide(code, data)
}

//nolint:gosec // the types are those of the wire
func wide(code byte, data []byte) (any, error) {
	switch code {
	case 0x60:
		return endian.BigEndian.Uint16(data), nil
	case 0x61:
		return int16(endian.BigEndian.Uint16(data)), nil
	case 0x70:
		return endian.BigEndian.Uint32(data), nil
	case 0x71:
		return int32(endian.BigEndian.Uint32(data)), nil
	case 0x72:
		return math.Float32frombits(endian.BigEndian.Uint32(data)), nil
	case 0x73:
		return char(endian.BigEndian.Uint32(data)), nil
	case 0x80:
		return endian.BigEndian.Uint64(data), nil
	case 0x81:
		return int64(endian.BigEndian.Uint64(data)), nil
	case 0x82:
		return math.Float64frombits(endian.BigEndian.Uint64(data)), nil
	case 0x83:
		return time.UnixMilli(int64(endian.BigEndian.Uint64(data))), nil
	case 0x74, 0x84, 0x94:
		return decimal(data), nil
	case 0x98:
		return uuid(data), nil
	}
	return nil, errUnknown
}

func variable(code byte, data []byte) (any, error) {
	switch code & 0xf {
	case 0x0:
		return data, nil
	case 0x1:
		return string(data), nil
	case 0x3:
		return symbol(data), nil
	}
	return nil, errUnknown
}

func compound(code byte, data []byte, depth int) (any, error) {
	r := &reader{data}
	count, err := r.number(code)
	if err != nil {
		return nil, err
	}
	switch code {
	case 0xc0, 0xd0:
		return r.values(count, depth)
	case 0xc1, 0xd1:
		return r.entries(count/2, depth)
	case 0xe0, 0xf0:
		return r.elements(count, depth)
	}
	return nil, errUnknown
}

func (r *reader) values(count, depth int) (list, error) {
	values := list{}
	for range count {
		v, err := r.value(depth)
		if err != nil {
			return nil, err
		}
		values = append(values, v)
	}
	return values, nil
}

func (r *reader) entries(count, depth int) (dict, error) {
	entries := dict{}
	for range count {
		var e entry
		var err error
		if e.key, err = r.value(depth); err != nil {
			return nil, err
		}
		if e.value, err = r.value(depth); err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// elements reads the elements of an array. The type stands only once, before the first element.
func (r *reader) elements(count, depth int) (array, error) {
	code, err := r.take(1)
	if err != nil {
		return nil, err
	}
	for code[0] == 0 { // descriptors, which no message needs
		if _, err := r.value(depth); err != nil {
			return nil, err
		}
		if code, err = r.take(1); err != nil {
			return nil, err
		}
	}
	elements := array{}
	for range min(count, maxElements) { // some types take no bytes at all
		v, err := r.content(code[0], depth)
		if err != nil {
			return nil, err
		}
		elements = append(elements, v)
	}
	return elements, nil
}

// maxElements bounds how many elements a few bytes can ask for.
const maxElements = 1 << 16
