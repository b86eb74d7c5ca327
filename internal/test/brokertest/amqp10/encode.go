package amqp10

import "encoding/binary"

// Value is an encoded value.
type Value []byte

// Null is AMQP's null.
var Null = Value{0x40}

// Fixed is a value with a fixed size. Its code is 0x98 for a UUID and 0x73 for a char, for example.
func Fixed(code byte, data ...byte) Value { return append(Value{code}, data...) }

// UUID is always the same UUID.
func UUID() Value {
	return Fixed(0x98, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
}

// Text is a string.
func Text(s string) Value { return sized(0xb1, []byte(s)) }

// Symbol is a symbolic string, such as the keys of annotations.
func Symbol(s string) Value { return sized(0xb3, []byte(s)) }

// Binary is a sequence of bytes.
func Binary(b []byte) Value { return sized(0xb0, b) }

// List is a list of values.
func List(values ...Value) Value { return compound(0xd0, len(values), values) }

// Map is a map. Its arguments are keys and values in turn.
func Map(keysAndValues ...Value) Value { return compound(0xd1, len(keysAndValues), keysAndValues) }

// Array is an array. Its elements have one type, whose code they omit.
func Array(code byte, elements ...Value) Value {
	return compound(0xf0, len(elements), append([]Value{{code}}, elements...))
}

// Described is a value with a descriptor.
func Described(descriptor, value Value) Value {
	return append(append(Value{0}, descriptor...), value...)
}

// Nested is a value in depth lists.
func Nested(depth int, value Value) Value {
	for range depth {
		value = List(value)
	}
	return value
}

func sized(code byte, data []byte) Value {
	return append(binary.BigEndian.AppendUint32(Value{code}, uint32(len(data))), data...)
}

func compound(code byte, count int, values []Value) Value {
	content := binary.BigEndian.AppendUint32(nil, uint32(count))
	for _, v := range values {
		content = append(content, v...)
	}
	return sized(code, content)
}

// Message has the sections of a message. A nil section is absent.
type Message struct {
	// Header and Properties are lists; Annotations and ApplicationProperties are maps.
	Header, Annotations, Properties, ApplicationProperties Value
	// Data is the body, unless Body has other sections.
	Data []byte
	Body []byte
}

// Section is an encoded section of a message.
func Section(code byte, value Value) []byte { return Described(Value{0x53, code}, value) }

// Encode is the message on the wire.
func (m Message) Encode() (raw []byte) {
	for _, section := range []struct {
		code  byte
		value Value
	}{{0x70, m.Header}, {0x72, m.Annotations}, {0x73, m.Properties}, {0x74, m.ApplicationProperties}} {
		if section.value != nil {
			raw = append(raw, Section(section.code, section.value)...)
		}
	}
	if m.Body != nil {
		return append(raw, m.Body...)
	}
	return append(raw, Section(0x75, Binary(m.Data))...)
}
