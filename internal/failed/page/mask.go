package page

import (
	"slices"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/content"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
)

// Masked stands for a value that a page must not show.
const Masked = "[masked]"

// Mask has the names of headers and of members of JSON bodies whose values a page must not show. Case does not matter.
type Mask []string

// Has reports whether the name is masked.
func (m Mask) Has(name string) bool {
	return slices.ContainsFunc(m, func(masks string) bool { return strings.EqualFold(masks, name) })
}

// entry is the message without the values of the headers and of the members of its body. The facts that were read from them are gone, too.
func (m Mask) entry(e *failed.Entry) *failed.Entry {
	properties, err := content.Parse(e.Properties)
	if len(m) == 0 || err != nil {
		return e
	}
	message := e.Message
	properties.SetHeaders(m.table(properties.Headers(), 0))
	message.Properties = properties.Encode()
	if text, ok := indented(e.Body, false, m); ok {
		message.Body = []byte(text)
	}
	without := failed.Read(message)
	without.ID, without.Digest, without.Body = e.ID, e.Digest, e.Body
	return &without
}

// table is a table of headers without the values, at any depth.
func (m Mask) table(t content.Table, depth int) content.Table {
	var to content.Table
	for name, value := range t.All() {
		if m.Has(string(name)) {
			value = content.Text(Masked)
		}
		to = to.With(string(name), m.value(value, depth+1))
	}
	return to
}

func (m Mask) value(v content.Value, depth int) content.Value {
	const maxDepth = 20 // of tables and arrays that are shown
	table, isTable := v.Table()
	array, isArray := v.Array()
	switch {
	case (isTable || isArray) && depth > maxDepth:
		return content.Text(Masked)
	case isTable:
		v.Bytes = m.table(table, depth)
	case isArray:
		var values []content.Value
		for value := range array.All() {
			values = append(values, m.value(value, depth+1))
		}
		return content.List(values...)
	}
	return v
}
