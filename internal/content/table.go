package content

import (
	"bytes"
	"iter"
	"slices"
)

// Table is an encoded table of names and values, without its length. One that was checked has no errors;
// in another one, all ends at the first.
type Table []byte

// Array is an encoded list of values, without its length.
type Array []byte

// All are the entries in their order. A name may be there more than once.
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

// Keep is a table of those entries whose names it is true for, in their order.
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

// All are the values in their order.
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

// First is the value at the beginning.
func (a Array) First() (Value, bool) {
	for value := range a.All() {
		return value, true
	}
	return Value{}, false
}

// AppendCanonical appends the table as any broker might have sent it: entries are sorted by name at every
// level, and what RabbitMQ spells differently once it has changed the headers is spelled so. The table was
// checked.
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
