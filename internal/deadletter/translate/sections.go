package translate

import (
	"errors"
	"strings"
)

// Sections of a message.
const (
	sectionHeader                = 0x70
	sectionDeliveryAnnotations   = 0x71
	sectionMessageAnnotations    = 0x72
	sectionProperties            = 0x73
	sectionApplicationProperties = 0x74
	sectionData                  = 0x75
	sectionSequence              = 0x76
	sectionValue                 = 0x77
	sectionFooter                = 0x78
)

var errSections = errors.New("the message has no sections that make sense")

// sections are the parts of a message.
type sections struct {
	header, properties     list
	annotations, appValues dict
	footer                 dict
	// body is the data, or the encoded rest of the message if that is not what it has.
	body    []byte
	encoded bool
}

// read takes a message apart. A body that is not data is not decoded.
func read(raw []byte) (s sections, err error) {
	r := &reader{raw}
	for len(r.data) > 0 {
		rest := r.data
		kind, err := r.descriptor()
		if err != nil {
			return s, err
		}
		if kind == sectionSequence || kind == sectionValue {
			s.body, s.encoded = rest, true
			return s, nil
		}
		value, err := r.value(0)
		if err != nil {
			return s, err
		}
		if !s.set(kind, value) {
			return s, errSections
		}
	}
	return s, nil
}

// descriptor reads what begins a section.
func (r *reader) descriptor() (uint64, error) {
	zero, err := r.take(1)
	if err != nil || zero[0] != 0 {
		return 0, errSections
	}
	value, err := r.value(0)
	kind, ok := value.(uint64)
	if err != nil || !ok {
		return 0, errSections
	}
	return kind, nil
}

func (s *sections) set(kind uint64, value any) (ok bool) {
	switch kind {
	case sectionHeader:
		s.header, ok = value.(list)
	case sectionMessageAnnotations:
		s.annotations, ok = value.(dict)
	case sectionProperties:
		s.properties, ok = value.(list)
	case sectionApplicationProperties:
		s.appValues, ok = value.(dict)
	case sectionData:
		var data []byte
		data, ok = value.([]byte)
		s.body = append(s.body, data...)
	case sectionFooter:
		s.footer, ok = value.(dict)
	case sectionDeliveryAnnotations:
		ok = true // no part of a message of AMQP 0-9-1
	}
	return ok
}

// isAnnotation reports whether a key is one that the broker takes for an annotation.
func isAnnotation(key any) bool {
	s, ok := key.(symbol)
	return ok && strings.HasPrefix(string(s), "x-")
}

// at is the field of a list that may end early.
func (l list) at(i int) any {
	if i < len(l) {
		return l[i]
	}
	return nil
}

// get is the value of an annotation.
func (d dict) get(key string) any {
	for _, e := range d {
		if e.key == symbol(key) {
			return e.value
		}
	}
	return nil
}
