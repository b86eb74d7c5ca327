package topology

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// View is a topology as text, the form in which a plan shows it.
type View struct {
	Exchanges map[string]ObjectView
	Queues    map[string]ObjectView
	Bindings  []string
	Policies  map[string]PolicyView
}

// ObjectView is an exchange or a queue as text. Arguments are nil where there are none.
type ObjectView struct {
	Type      string
	Arguments map[string]string
}

// PolicyView is a policy as text.
type PolicyView struct {
	Pattern    string
	ApplyTo    string
	Priority   int64
	Definition map[string]string
}

// Render shows a topology. A value of another type than the one expected shows it, as in
// "5000 (string)", since the number and the text would look equal otherwise.
func Render(t, expected Topology) View {
	v := View{Exchanges: map[string]ObjectView{}, Queues: map[string]ObjectView{}, Policies: map[string]PolicyView{}}
	for name, e := range t.Exchanges {
		kind := withFlags(e.Type, flag{e.Transient, "transient"}, flag{e.AutoDelete, "auto-delete"}, flag{e.Internal, "internal"})
		v.Exchanges[name] = ObjectView{kind, e.Arguments.render(expected.Exchanges[name].Arguments)}
	}
	for name, q := range t.Queues {
		kind := withFlags(q.Type, flag{q.Transient, "transient"}, flag{q.AutoDelete, "auto-delete"}, flag{q.Exclusive, "exclusive"})
		v.Queues[name] = ObjectView{kind, q.Arguments.render(expected.Queues[name].Arguments)}
	}
	for name, p := range t.Policies {
		v.Policies[name] = PolicyView{p.Pattern, p.ApplyTo, int64(p.Priority), p.Definition.render(expected.Policies[name].Definition)}
	}
	for _, b := range t.Bindings {
		v.Bindings = append(v.Bindings, b.String())
	}
	return v
}

// String shows a binding as "source -> destination [routing key] argument=value".
func (b Binding) String() string {
	parts := []string{b.Source, "->", b.Destination}
	if b.ToExchange {
		parts = append(parts, "(exchange)")
	}
	if b.RoutingKey != "" {
		parts = append(parts, "["+b.RoutingKey+"]")
	}
	for _, key := range slices.Sorted(maps.Keys(b.Arguments)) {
		parts = append(parts, key+"="+argumentText(b.Arguments[key]))
	}
	return strings.Join(parts, " ")
}

// argumentText tells tables and lists from texts that look like them.
func argumentText(value any) string {
	switch kind := kindOf(value); kind {
	case "table", "list":
		return ValueText(value) + " (" + kind + ")"
	}
	return ValueText(value)
}

type flag struct {
	set  bool
	name string
}

func withFlags(kind string, flags ...flag) string {
	for _, f := range flags {
		if f.set {
			kind += ", " + f.name
		}
	}
	return kind
}

func (a Arguments) render(expected Arguments) map[string]string {
	if len(a) == 0 {
		return nil
	}
	text := make(map[string]string, len(a))
	for key, value := range a {
		text[key] = renderValue(value, expected[key])
	}
	return text
}

func renderValue(value, expected any) string {
	text := ValueText(value)
	if expected != nil && kindOf(value) != kindOf(expected) {
		text += " (" + kindOf(value) + ")"
	}
	return text
}

func ValueText(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case int64:
		return strconv.FormatInt(v, 10)
	default:
		text, err := json.Marshal(v)
		if err != nil {
			return fmt.Sprint(v)
		}
		return strings.TrimSpace(string(text))
	}
}

func kindOf(value any) string {
	switch value.(type) {
	case string:
		return "string"
	case bool:
		return "bool"
	case int64:
		return "integer"
	case float64:
		return "float"
	case []any:
		return "list"
	default:
		return "table"
	}
}
