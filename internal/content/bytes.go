package content

import (
	endian "encoding/binary"
	"errors"
)

// Why properties cannot be read.
var (
	ErrMalformed   = errors.New("the properties are malformed")
	ErrTooDeep     = errors.New("the headers nest too deep")
	ErrTooMany     = errors.New("the headers have a table or list with too many entries")
	ErrUnknownType = errors.New("the headers have a value of an unknown type")
)

// shortSize is the size of a short string with its length.
func shortSize(data []byte) int64 {
	if len(data) == 0 {
		return 1
	}
	return 1 + int64(data[0])
}

// longSize is the size of a long string, a table or an array with its length.
func longSize(data []byte) int64 {
	if len(data) < lengthSize {
		return lengthSize
	}
	return lengthSize + int64(endian.BigEndian.Uint32(data))
}

// cut splits data after so many bytes.
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
