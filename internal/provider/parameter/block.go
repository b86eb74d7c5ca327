package parameter

import (
	"context"
	"maps"
	"strconv"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/attribute"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// block maps the attributes of a nested block to a parameter's value, which is a table.
type block struct {
	name, component string
	// key is the key in the table for an attribute.
	key func(attribute string) string
	// ends begin the names of the attributes with URIs: uri, uris and uris_wo.
	ends []string
	// defaults are the broker's own values for attributes.
	defaults map[string]any
}

// urisVersion is the attribute whose change writes the write-only URIs.
const urisVersion = "uris_wo_version"

func isWriteOnly(name string) bool { return strings.HasSuffix(name, "uris_wo") }

// attributes are the content of a block, nil if it has none.
func attributes(of types.List) map[string]attr.Value {
	elements := of.Elements()
	if len(elements) == 0 {
		return nil
	}
	object, _ := elements[0].(types.Object)
	return object.Attributes()
}

// value is the table that the attributes describe. It has no URIs unless they are configured.
func (b block) value(of types.List) any {
	table := map[string]any{}
	for name, configured := range attributes(of) {
		value := attribute.Decoded(configured)
		if value != nil && name != urisVersion {
			table[b.keyOf(name)] = typed(name, value)
		}
	}
	return table
}

func (b block) keyOf(name string) string {
	for _, end := range b.ends {
		if name == end+"uris" || name == end+"uris_wo" {
			name = end + "uri"
		}
	}
	return b.key(name)
}

// numbers are the keys of tables that RabbitMQ accepts as numbers only, by the end of the attribute's name.
var numbers = map[string][]string{
	"_properties":         {"delivery_mode", "priority", "timestamp"},
	"_consumer_arguments": {"x-priority"},
}

// typed converts a value to the type that RabbitMQ accepts. One URI becomes a list, as all versions of all clients can write it.
func typed(name string, value any) any {
	switch value := value.(type) {
	case string:
		if strings.HasSuffix(name, "uri") {
			return []any{value}
		}
		if number, err := strconv.ParseInt(value, 10, 64); err == nil && strings.HasSuffix(name, "delete_after") {
			return number
		}
	case map[string]any:
		table := topology.Typed(value)
		for end, keys := range numbers {
			for _, key := range keys {
				text, _ := table[key].(string)
				if number, err := strconv.ParseInt(text, 10, 64); err == nil && strings.HasSuffix(name, end) {
					table[key] = number
				}
			}
		}
		return map[string]any(table)
	}
	return value
}

// equal reports whether a live table is as wanted. URIs that are not configured, or are write-only, do not count.
func (b block) equal(wanted, live any) bool {
	return topology.Arguments(b.comparable(wanted, wanted)).Equal(b.comparable(live, wanted))
}

// comparable is a table with the broker's defaults and with those URIs that the wanted table has.
func (b block) comparable(value, wanted any) map[string]any {
	from, _ := value.(map[string]any)
	configured, _ := wanted.(map[string]any)
	table := map[string]any{}
	for name, byDefault := range b.defaults {
		table[b.key(name)] = byDefault
	}
	maps.Copy(table, from)
	for _, end := range b.ends {
		key := b.key(end + "uri")
		if table[key] = uris(from[key]); configured[key] == nil {
			delete(table, key)
		}
	}
	return table
}

// uris are the URIs of an end, which a table has as a text or a list.
func uris(from any) any {
	if text, isText := from.(string); isText {
		return []any{text}
	}
	return from
}

// keep adds to the wanted table what the live one has for no attribute, and its URIs if the wanted table has none. In tables of arguments
// it keeps the live values that have the same text, since the broker can need their type.
func (b block) keep(of types.List, wanted, live any) {
	to, _ := wanted.(map[string]any)
	from, _ := live.(map[string]any)
	known := map[string]bool{}
	for name := range attributes(of) {
		known[b.keyOf(name)] = true
	}
	for _, end := range b.ends {
		known[b.key(end+"uri")] = to[b.key(end+"uri")] != nil
	}
	for key, value := range from {
		table, isTable := to[key].(map[string]any)
		switch was, _ := value.(map[string]any); {
		case !known[key]:
			to[key] = value
		case isTable:
			for name, value := range table {
				if was[name] != nil && topology.ValueText(was[name]) == topology.ValueText(value) {
					table[name] = was[name]
				}
			}
		}
	}
}

// lacksURIs reports whether an end has no URIs, neither in the table nor write-only.
func (b block) lacksURIs(of types.List) (end string, lacks bool) {
	all := attributes(of)
	for _, end := range b.ends {
		if all != nil && all[urisVersion].IsNull() && all[end+"uri"].IsNull() && all[end+"uris"].IsNull() {
			return end, true
		}
	}
	return "", false
}

// withWriteOnly returns a block with the write-only URIs of another block.
func (b block) withWriteOnly(ctx context.Context, of types.List, from map[string]attr.Value) types.List {
	return b.with(ctx, of, func(name string, was attr.Value) attr.Value {
		if isWriteOnly(name) {
			return from[name]
		}
		return was
	})
}

// with is a block with other values.
func (b block) with(ctx context.Context, of types.List, value func(name string, was attr.Value) attr.Value) types.List {
	kind, _ := of.ElementType(ctx).(types.ObjectType)
	values, was := map[string]attr.Value{}, attributes(of)
	for name, of := range kind.AttrTypes {
		before := was[name]
		if before == nil {
			before = as(of, nil)
		}
		values[name] = value(name, before)
	}
	return types.ListValueMust(kind, []attr.Value{types.ObjectValueMust(kind.AttrTypes, values)})
}

// shown is a block that shows a live table. URIs are shown if they are configured.
func (b block) shown(of types.List, live any) types.List {
	table, _ := live.(map[string]any)
	return b.with(attribute.Background, of, func(name string, was attr.Value) attr.Value {
		value, has := table[b.keyOf(name)]
		if !has {
			value = b.defaults[name]
		}
		switch {
		case name == urisVersion, isWriteOnly(name):
			return was
		case strings.HasSuffix(name, "uri"):
			return shownURI(was, uris(value))
		case strings.HasSuffix(name, "uris") && was.IsNull():
			return was
		}
		return as(was.Type(attribute.Background), value)
	})
}

// shownURI is one URI, "" if it is configured and the broker has several.
func shownURI(was attr.Value, live any) attr.Value {
	list, _ := live.([]any)
	switch {
	case was.IsNull():
		return was
	case len(list) == 1:
		return as(types.StringType, list[0])
	}
	return types.StringValue("")
}

// as is a decoded value as a type of the attributes, null if it has another shape.
func as(of attr.Type, value any) attr.Value {
	switch of := of.(type) {
	case types.MapType:
		table, _ := value.(map[string]any)
		return attribute.TextArgumentsValue(table)
	case types.ListType:
		list, isList := uris(value).([]any)
		if !isList {
			return types.ListNull(of.ElemType)
		}
		var texts []attr.Value
		for _, element := range list {
			texts = append(texts, types.StringValue(topology.ValueText(element)))
		}
		return types.ListValueMust(of.ElemType, texts)
	}
	switch of {
	case types.BoolType:
		if flag, isFlag := value.(bool); isFlag {
			return types.BoolValue(flag)
		}
		return types.BoolNull()
	case types.Int64Type:
		if number, isNumber := value.(int64); isNumber {
			return types.Int64Value(number)
		}
		return types.Int64Null()
	}
	if value == nil {
		return types.StringNull()
	}
	return types.StringValue(topology.ValueText(value))
}
