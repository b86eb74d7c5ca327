// Package content reads and writes the properties in a content header of AMQP 0-9-1, and preserves them exactly.
//
// A client library changes them: it drops priority 0 and empty strings, and forgets the order of headers. It also
// cannot read some values that brokers accept. Here, a value keeps its bytes and its type on the wire. Properties that
// are not looked at cost nothing.
package content

import (
	"cmp"
	endian "encoding/binary"
	"time"
)

// Property is one of the properties of a message, in wire order.
type Property uint8

// All properties.
const (
	ContentType Property = iota
	ContentEncoding
	Headers
	DeliveryMode
	Priority
	CorrelationID
	ReplyTo
	Expiration
	MessageID
	Timestamp
	Type
	UserID
	AppID
	ClusterID

	propertyCount
)

const (
	flagsSize = 2
	// lengthSize is the size of the length before a long string, a table or an array, in bytes.
	lengthSize = 4
	// maxShort is the longest short string, in bytes.
	maxShort = 255
)

// ReservedFlags are the flags that belong to no property. Brokers ignore them.
const ReservedFlags = 0x0003

// Flag is the bit that says that the property is there.
func (p Property) Flag() uint16 { return 0x8000 >> p }

// Properties are the properties of one message. Its slices share the memory of the bytes that it was read from.
type Properties struct {
	reserved uint16
	// values are encoded. An absent value is nil.
	values [propertyCount][]byte
}

// Parse reads flags and properties, to the last byte.
func Parse(encoded []byte) (Properties, error) {
	var p Properties
	rest, err := p.Read(encoded)
	err = cmp.Or(CheckTable(p.Headers(), Limits{Depth: MaxDepth}), err)
	if err != nil {
		return Properties{}, err
	}
	if len(rest) > 0 {
		return Properties{}, ErrMalformed
	}
	p.reserved = endian.BigEndian.Uint16(encoded) & ReservedFlags
	return p, nil
}

// Read reads flags and properties, and does not look into the headers. It returns the bytes after the last property,
// which clients ignore. If a property is cut off, it reads those before, and returns an error.
func (p *Properties) Read(encoded []byte) (rest []byte, err error) {
	if len(encoded) < flagsSize {
		return nil, ErrMalformed
	}
	flags, rest := endian.BigEndian.Uint16(encoded), encoded[flagsSize:]
	for property := range propertyCount {
		if flags&property.Flag() == 0 {
			continue
		}
		if p.values[property], rest, err = cut(rest, property.size(rest)); err != nil {
			return nil, err
		}
	}
	return rest, nil
}

// size is the size, in bytes, of the encoded property at the beginning of the data.
func (p Property) size(data []byte) int64 {
	switch p {
	case Headers:
		return longSize(data)
	case DeliveryMode, Priority:
		return 1
	case Timestamp:
		return 8
	default:
		return shortSize(data)
	}
}

// Encode is the reverse of [Parse].
func (p *Properties) Encode() []byte {
	flags, size := p.reserved, flagsSize
	for i, value := range p.values {
		if value != nil {
			flags |= Property(i).Flag()
			size += len(value)
		}
	}
	encoded := endian.BigEndian.AppendUint16(make([]byte, 0, size), flags)
	for _, value := range p.values {
		encoded = append(encoded, value...)
	}
	return encoded
}

// Has reports whether the property is there.
func (p *Properties) Has(property Property) bool { return p.values[property] != nil }

// Text returns a text property. It returns "" if the property is absent.
func (p *Properties) Text(property Property) string {
	value := p.values[property]
	if value == nil || !property.IsText() {
		return ""
	}
	return string(value[1:])
}

// Number returns a numeric property. It returns 0 if the property is absent.
func (p *Properties) Number(property Property) uint64 {
	if property.IsText() || property == Headers {
		return 0
	}
	return unsigned(p.values[property])
}

// Time returns the timestamp. It returns zero if the timestamp is absent or after the year 9999.
func (p *Properties) Time() time.Time {
	if !p.Has(Timestamp) {
		return time.Time{}
	}
	return seconds(p.Number(Timestamp))
}

// Headers returns the message's headers. It returns nil if the message has no headers.
func (p *Properties) Headers() Table {
	if !p.Has(Headers) {
		return nil
	}
	return Table(p.values[Headers][lengthSize:])
}

// IsText reports whether the property is a text. The others are the headers and numbers.
func (p Property) IsText() bool {
	return p != Headers && p != DeliveryMode && p != Priority && p != Timestamp
}

// Remove makes the property absent.
func (p *Properties) Remove(property Property) { p.values[property] = nil }

// SetText sets a text property. If the text is too long, it returns false and changes nothing.
func (p *Properties) SetText(property Property, text string) bool {
	if len(text) > maxShort {
		return false
	}
	p.values[property] = AppendShort(nil, text)
	return true
}

// SetNumber sets a numeric property. If the number is too large, it returns false and changes nothing.
func (p *Properties) SetNumber(property Property, n uint64) bool {
	switch {
	case property == Timestamp:
		p.values[property] = endian.BigEndian.AppendUint64(nil, n)
	case n > 0xff:
		return false
	default:
		p.values[property] = []byte{byte(n)}
	}
	return true
}

// SetHeaders sets the headers, also to an empty table.
func (p *Properties) SetHeaders(t Table) {
	p.values[Headers] = append(appendLength(make([]byte, 0, lengthSize+len(t)), len(t)), t...)
}
