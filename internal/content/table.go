package content

import (
	"bytes"
	endian "encoding/binary"
	"iter"
	"slices"
)

// Table is an encoded table of names and values, without its length. A table that passed [CheckTable] has no errors. In
// any other table, reading stops at the first error.
type Table []byte

// Array is an encoded list of values, without its length.
type Array []byte

// All returns the entries in their order. A name can occur more than once.
func (t Table) All() iter.Seq2[[]byte, Value] {
	return func(yield func([]byte, Value) bool) {
		for data := []byte(t); len(data) > 0; {
			name, rest, err := cut(data, shortSize(data))
			if err != nil {
				return
			}
			value, rest, err := readValue(rest)
			if err != nil || !yield(name[1:], value) {
				return
			}
			data = rest
		}
	}
}

// Get returns the first value of this name.
func (t Table) Get(name string) (Value, bool) {
	for key, value := range t.All() {
		if string(key) == name {
			return value, true
		}
	}
	return Value{}, false
}

// Keep returns a table of the entries whose names keep accepts, in their order.
func (t Table) Keep(keep func(name []byte) bool) Table {
	kept := make(Table, 0, len(t))
	for name, value := range t.All() {
		if keep(name) {
			kept = kept.With(string(name), value)
		}
	}
	return kept
}

// With adds an entry. The name has at most 255 bytes.
func (t Table) With(name string, value Value) Table {
	return AppendValue(AppendShort(t, name), value)
}

// All returns the values in their order.
func (a Array) All() iter.Seq[Value] {
	return func(yield func(Value) bool) {
		for data := []byte(a); len(data) > 0; {
			value, rest, err := readValue(data)
			if err != nil || !yield(value) {
				return
			}
			data = rest
		}
	}
}

// First returns the first value. It returns false if the array is empty.
func (a Array) First() (Value, bool) {
	for value := range a.All() {
		return value, true
	}
	return Value{}, false
}

// AppendCanonical appends the table in a canonical form. Entries are sorted by name at every level. Values have the
// encoding that RabbitMQ uses once it has changed the headers. The table must have passed [CheckTable].
func (t Table) AppendCanonical(data []byte) []byte {
	type entry struct {
		name  []byte
		value Value
	}
	var entries []entry
	for name, value := range t.All() {
		entries = append(entries, entry{name, value})
	}
	slices.SortStableFunc(entries, func(a, b entry) int { return bytes.Compare(a.name, b.name) })
	for _, e := range entries {
		data = append(append(data, byte(len(e.name))), e.name...) //nolint:gosec // was read from one byte
		data = appendCanonical(data, e.value)
	}
	return data
}

func appendCanonical(data []byte, v Value) []byte {
	switch v.Type {
	case TypeTable:
		data = appendLength(append(data, v.Type), len(v.Bytes))
		return Table(v.Bytes).AppendCanonical(data)
	case TypeArray:
		data = appendLength(append(data, v.Type), len(v.Bytes))
		for element := range Array(v.Bytes).All() {
			data = appendCanonical(data, element)
		}
		return data
	case TypeBool:
		if v.Bytes[0] != 0 {
			return append(data, TypeBool, 1)
		}
	case TypeLongLong:
		v.Type = TypeInt64
	}
	return AppendValue(data, v)
}

// MaxDepth is how deep headers can nest to be read. A frame of the usual 131,072 bytes has no room for deeper ones, and
// reading them does not exhaust the stack.
const MaxDepth = 30_000

// Limits are the limits of a decoder.
type Limits struct {
	// Depth is how deep tables and arrays can nest, the headers themselves not counted.
	Depth int
	// Entries is how many entries a table or an array can have. 0 allows any number.
	Entries int
	// NoLongLong says that values of the type 'L' are not known.
	NoLongLong bool
}

// CheckTable returns an error if the table cannot be decoded.
func CheckTable(t Table, l Limits) error { return l.check(t, true, 0) }

// check walks through a table, or, if named is false, an array. Each delivery of every connection calls it, so it moves
// an index instead of cutting slices.
func (l *Limits) check(data []byte, named bool, depth int) error {
	for at, entries := 0, 0; at < len(data); entries++ {
		if l.Entries > 0 && entries == l.Entries {
			return ErrTooMany
		}
		if named {
			at += 1 + int(data[at])
		}
		if at >= len(data) {
			return ErrMalformed
		}
		tag := data[at]
		at++
		if size := sizes[tag]; size >= 0 {
			if tag == TypeLongLong && l.NoLongLong {
				return ErrUnknownType
			}
			if at += int(size); at > len(data) {
				return ErrMalformed
			}
			continue
		}
		size, err := l.compound(tag, data[at:], depth)
		if err != nil {
			return err
		}
		at += size
	}
	return nil
}

// compound checks a string, a table or an array, and returns its size, in bytes.
func (l *Limits) compound(tag byte, data []byte, depth int) (int, error) {
	if sizes[tag] == unknown {
		return 0, ErrUnknownType
	}
	if len(data) < lengthSize {
		return 0, ErrMalformed
	}
	size := lengthSize + int64(endian.BigEndian.Uint32(data))
	switch {
	case size > int64(len(data)):
		return 0, ErrMalformed
	case tag == TypeText || tag == TypeBinary:
		return int(size), nil
	case depth == l.Depth:
		return 0, ErrTooDeep
	}
	return int(size), l.check(data[lengthSize:size], tag == TypeTable, depth+1)
}
