package guard

import endian "encoding/binary"

// Parts of a content header, in bytes.
const (
	contentSize = 2 + 2 + 8 // class, weight, body size
	flagsSize   = 2
	fixedSize   = contentSize + flagsSize
	lengthSize  = 4
)

// Property flags, in the order of the properties.
const (
	flagContentType     = 0x8000
	flagContentEncoding = 0x4000
	flagHeaders         = 0x2000
	flagDeliveryMode    = 0x1000
	flagPriority        = 0x0800
	flagTimestamp       = 0x0040
	flagLast            = 0x0004
)

// eachProperty hands over the encoded properties of a content header one by one, until one is cut
// off.
func eachProperty(payload []byte, do func(flag uint16, value []byte) error) error {
	flags, rest := endian.BigEndian.Uint16(payload[contentSize:]), payload[fixedSize:]
	for flag := uint16(flagContentType); flag >= flagLast; flag >>= 1 {
		if flags&flag == 0 {
			continue
		}
		value, after, err := cut(rest, propertySize(flag, rest))
		if err != nil {
			return err
		}
		if err := do(flag, value); err != nil {
			return err
		}
		rest = after
	}
	return nil
}

func propertySize(flag uint16, data []byte) int64 {
	switch flag {
	case flagHeaders:
		return longSize(data)
	case flagDeliveryMode, flagPriority:
		return 1
	case flagTimestamp:
		return 8
	default:
		return shortSize(data)
	}
}

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
		return nil, nil, errMalformed
	}
	return data[:n], data[n:], nil
}
