package content

import endian "encoding/binary"

// MaxDepth is how deep headers may nest to be read: deeper than a frame of the usual 131,072 bytes has
// room for, and not so deep that reading them exhausts the stack.
const MaxDepth = 30_000

// Limits are what somebody can decode.
type Limits struct {
	// Depth is how deep tables and arrays may nest, the headers themselves not counted.
	Depth int
	// Entries is how many entries a table or an array may have, 0 for any number.
	Entries int
	// NoLongLong says that values of the type 'L' are not known.
	NoLongLong bool
}

// CheckTable is an error if the table cannot be decoded.
func CheckTable(t Table, l Limits) error { return l.check(t, true, 0) }

// check walks through a table, or else an array. It is called for each delivery of every connection, so it
// moves an index rather than cutting slices.
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

// compound checks a string, a table or an array, and returns its size.
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
