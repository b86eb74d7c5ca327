package translate

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
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

var errSections = errors.New("a section of the message is invalid")

type sections struct {
	header, properties     list
	annotations, appValues dict
	footer                 dict
	// body is the data of the message. If its body is not data, body is the encoded rest of the message.
	body    []byte
	encoded bool
}

// read splits a message into its sections. It decodes a body only if it is data.
func read(raw []byte) (s sections, err error) {
	r := &reader{data: raw}
	for len(r.data) > 0 {
		rest := r.data
		kind, ok := r.descriptor()
		switch {
		case !ok:
			return s, errSections
		case kind == sectionSequence || kind == sectionValue:
			s.body, s.encoded = rest, true
			return s, nil
		}
		value := r.value(0)
		if r.err != nil {
			return s, r.err
		}
		if !s.set(kind, value) {
			return s, errSections
		}
	}
	return s, nil
}

// descriptor reads the descriptor at the start of a section.
func (r *reader) descriptor() (kind uint64, ok bool) {
	start := r.take(1)[0]
	kind, ok = r.value(0).(uint64)
	return kind, ok && start == 0 && r.err == nil
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
		ok = true // AMQP 0-9-1 has no counterpart
	}
	return ok
}

// isAnnotation reports whether the broker takes the key for an annotation.
func isAnnotation(key any) bool {
	s, ok := key.(symbol)
	return ok && strings.HasPrefix(string(s), "x-")
}

// at returns a field of a list, or nil if the list ends before it.
func (l list) at(i int) any {
	if i < len(l) {
		return l[i]
	}
	return nil
}

// get returns the value of an annotation.
func (d dict) get(key string) any {
	for _, e := range d {
		if e.key == symbol(key) {
			return e.value
		}
	}
	return nil
}

// deathForm lists the keys and types of a death that the broker writes. The time to live is optional.
var deathForm = []string{
	"ttl uint32", "queue string", "reason translate.symbol", "count uint64", "first-time time.Time", "last-time time.Time",
	"exchange string", "routing-keys translate.array",
}

// translateDeaths turns the broker's annotation into the header x-death. The broker fails on an annotation that it did
// not write itself.
func (t *translation) translateDeaths(value any) {
	elements, _ := value.(array)
	deaths := []any{}
	for _, element := range elements {
		d, ok := element.(dict)
		if !ok {
			return
		}
		if !d.isDeath() {
			t.change("annotation", "x-opt-deaths", "not the broker's, left out")
			return
		}
		deaths = append(deaths, d.death())
	}
	if len(deaths) > 0 {
		t.Delivery.Headers["x-death"] = deaths
	}
}

// isDeath reports whether the broker can have written the entry.
func (d dict) isDeath() bool {
	form := []string{}
	for _, e := range d {
		form = append(form, fmt.Sprintf("%s %T", text(e.key), e.value))
	}
	keys, _ := d.get("routing-keys").(array)
	return (slices.Equal(form, deathForm) || slices.Equal(form, deathForm[1:])) &&
		!slices.ContainsFunc(keys, func(key any) bool { _, ok := key.(string); return !ok })
}

func (d dict) death() amqp.Table {
	count, _ := d.get("count").(uint64)
	at, _ := d.get("first-time").(time.Time)
	routingKeys, _ := d.get("routing-keys").(array)
	death := amqp.Table{
		"count": int64(count), "time": seconds(at), "routing-keys": []any(routingKeys), //nolint:gosec // the broker counts to less
		"reason": text(d.get("reason")), "queue": text(d.get("queue")), "exchange": text(d.get("exchange")),
	}
	if ttl, ok := d.get("ttl").(uint32); ok {
		death["original-expiration"] = text(ttl)
	}
	return death
}
