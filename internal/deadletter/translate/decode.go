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

// reader reads encoded values one after the other. After an error, its values mean nothing.
type reader struct {
	data []byte
	err  error
}

// fail notes the first error.
func (r *reader) fail(err error) any {
	if r.err == nil {
		r.err = err
	}
	return nil
}

// take returns the next bytes. After an error, it returns zeros, enough for any value of a fixed size.
func (r *reader) take(n int) []byte {
	if n < 0 || n > len(r.data) {
		r.fail(errCutOff)
		return make([]byte, largest)
	}
	taken := r.data[:n]
	r.data = r.data[n:]
	return taken
}

func (r *reader) value(depth int) any {
	code := r.take(1)[0]
	switch {
	case r.err != nil:
		return nil
	case code != 0:
		return r.content(code, depth)
	case depth >= maxDepth:
		return r.fail(errTooDeep)
	}
	return described{descriptor: r.value(depth + 1), value: r.value(depth + 1)}
}

// content reads a value of a known type. The upper half of the code says how to find the value's size.
func (r *reader) content(code byte, depth int) any {
	switch code >> 4 {
	case 0x4, 0x5, 0x6, 0x7, 0x8, 0x9:
		data := r.take(widths[code>>4])
		if value, known := fixed[code]; known {
			return value(data)
		}
	case 0xa, 0xb:
		data := r.sized(code)
		switch code & 0xf {
		case 0x0:
			return data
		case 0x1:
			return string(data)
		case 0x3:
			return symbol(data)
		}
	case 0xc, 0xd, 0xe, 0xf:
		data := r.sized(code)
		if depth >= maxDepth {
			return deep{}
		}
		part := &reader{data: data, err: r.err}
		value := part.compound(code, depth+1)
		r.err = part.err
		return value
	}
	return r.fail(errUnknown)
}

// widths are the sizes of fixed-size values, in bytes, by the upper half of their code. None is above the largest.
var widths = map[byte]int{0x4: 0, 0x5: 1, 0x6: 2, 0x7: 4, 0x8: 8, 0x9: largest}

const largest = 16

// sized takes a value that begins with its size. The size has four bytes if the upper half of the code is odd,
// otherwise one.
func (r *reader) sized(code byte) []byte { return r.take(r.number(code)) }

func (r *reader) number(code byte) int {
	if code>>4&1 == 0 {
		return int(r.take(1)[0])
	}
	return int(endian.BigEndian.Uint32(r.take(4)))
}

// fixed are the fixed-size values, by their code.
var fixed = map[byte]func(data []byte) any{
	0x40: func([]byte) any { return nil },
	0x41: func([]byte) any { return true },
	0x42: func([]byte) any { return false },
	0x43: func([]byte) any { return uint32(0) },
	0x44: func([]byte) any { return uint64(0) },
	0x45: func([]byte) any { return list{} },
	0x50: func(data []byte) any { return data[0] },
	0x51: func(data []byte) any { return int8(data[0]) },
	0x52: func(data []byte) any { return uint32(data[0]) },
	0x53: func(data []byte) any { return uint64(data[0]) },
	0x54: func(data []byte) any { return int32(int8(data[0])) },
	0x55: func(data []byte) any { return int64(int8(data[0])) },
	0x56: func(data []byte) any { return data[0] != 0 },
	0x60: func(data []byte) any { return endian.BigEndian.Uint16(data) },
	0x61: func(data []byte) any { return int16(endian.BigEndian.Uint16(data)) },
	0x70: func(data []byte) any { return endian.BigEndian.Uint32(data) },
	0x71: func(data []byte) any { return int32(endian.BigEndian.Uint32(data)) },
	0x72: func(data []byte) any { return math.Float32frombits(endian.BigEndian.Uint32(data)) },
	0x73: func(data []byte) any { return char(endian.BigEndian.Uint32(data)) },
	0x74: func(data []byte) any { return decimal(data) },
	0x80: func(data []byte) any { return endian.BigEndian.Uint64(data) },
	0x81: func(data []byte) any { return int64(endian.BigEndian.Uint64(data)) },
	0x82: func(data []byte) any { return math.Float64frombits(endian.BigEndian.Uint64(data)) },
	0x83: func(data []byte) any { return time.UnixMilli(int64(endian.BigEndian.Uint64(data))) },
	0x84: func(data []byte) any { return decimal(data) },
	0x94: func(data []byte) any { return decimal(data) },
	0x98: func(data []byte) any { return uuid(data) },
}

func (r *reader) compound(code byte, depth int) any {
	count := r.number(code)
	switch code {
	case 0xc0, 0xd0:
		values := list{}
		for i := 0; i < count && r.err == nil; i++ {
			values = append(values, r.value(depth))
		}
		return values
	case 0xc1, 0xd1:
		entries := dict{}
		for i := 0; i < count/2 && r.err == nil; i++ {
			entries = append(entries, entry{key: r.value(depth), value: r.value(depth)})
		}
		return entries
	case 0xe0, 0xf0:
		return r.elements(count, depth)
	}
	return r.fail(errUnknown)
}

// elements reads the elements of an array. The type stands only once, before the first element.
func (r *reader) elements(count, depth int) array {
	code := r.take(1)[0]
	for code == 0 && r.err == nil { // descriptors, which no message needs
		r.value(depth)
		code = r.take(1)[0]
	}
	elements := array{}
	for i := 0; i < min(count, maxElements) && r.err == nil; i++ { // some types take no bytes at all
		elements = append(elements, r.content(code, depth))
	}
	return elements
}

// maxElements bounds how many elements a few bytes can ask for.
const maxElements = 1 << 16
