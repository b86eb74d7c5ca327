package topology

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"

	"golang.org/x/text/unicode/norm"
)

// View is a topology as text, one line per object. Plans show these lines and states keep them.
//
//	exchange  direct alternate-exchange=orders.dlx
//	queue     quorum, transient x-dead-letter-exchange=orders.return x-message-ttl=5000
//	policy    queues ^(orders\.created)$ priority=1000 dead-letter-exchange=orders.dlx overflow=reject-publish
//	binding   orders.retry -> orders.retry.5s [delay:5s] argument=value
//
// A line depends only on its object. Equal objects have equal lines, and different objects have different lines. Numbers,
// booleans, lists and tables are JSON. A string has single quotes only if it is empty, reads like one of these, or would
// have an unclear end. So x-message-ttl=5000 is a number and x-message-ttl='5000' a string. Plans escape double quotes,
// but not single quotes.
//
// A release freezes the format of these lines. Later releases can add keys to objects that have them, and new kinds of
// objects. They must not change the line of an existing object, because every resource would then show a change.
type View struct {
	Exchanges map[string]string
	Queues    map[string]string
	Policies  map[string]string
	Bindings  []string
}

// Render returns the view of a topology.
func Render(t Topology) View {
	return View{Exchanges: lines(t.Exchanges), Queues: lines(t.Queues), Policies: lines(t.Policies), Bindings: Texts(t.Bindings)}
}

// Texts returns the lines of bindings.
func Texts(bindings []Binding) []string {
	var texts []string
	for _, b := range bindings {
		texts = append(texts, b.String())
	}
	return texts
}

func lines[T fmt.Stringer](objects map[string]T) map[string]string {
	all := make(map[string]string, len(objects))
	for name, object := range objects {
		all[name] = object.String()
	}
	return all
}

// String returns the exchange's line: type, flags, arguments.
func (e Exchange) String() string {
	kind := withFlags(e.Type, flag{e.Transient, "transient"}, flag{e.AutoDelete, "auto-delete"}, flag{e.Internal, "internal"})
	return e.Arguments.after(kind)
}

// String returns the queue's line: type, flags, arguments.
func (q Queue) String() string {
	kind := withFlags(q.Type, flag{q.Transient, "transient"}, flag{q.AutoDelete, "auto-delete"}, flag{q.Exclusive, "exclusive"})
	return q.Arguments.after(kind)
}

// String returns the policy's line: apply-to, pattern, priority, definition.
func (p Policy) String() string {
	return p.Definition.after(word(p.ApplyTo, ""), word(p.Pattern, ""), "priority="+strconv.Itoa(p.Priority))
}

// String returns the binding's line: source -> destination, "(exchange)" if it ends at an exchange, [routing key],
// arguments.
func (b Binding) String() string {
	words := []string{word(b.Source, ""), "->", word(b.Destination, "")}
	if b.ToExchange {
		words = append(words, "(exchange)")
	}
	if b.RoutingKey != "" {
		words = append(words, "["+word(b.RoutingKey, "")+"]")
	}
	return b.Arguments.after(words...)
}

type flag struct {
	set  bool
	name string
}

func withFlags(kind string, flags ...flag) string {
	kind = word(kind, ",")
	for _, f := range flags {
		if f.set {
			kind += ", " + f.name
		}
	}
	return kind
}

// after returns a line with these words and the arguments, sorted by key.
func (a Arguments) after(words ...string) string {
	for _, key := range slices.Sorted(maps.Keys(a)) {
		words = append(words, argumentKey(key)+"="+argumentValue(a[key]))
	}
	return strings.Join(words, " ")
}

// word returns a text such as a name or a pattern, whose position in the line shows its meaning. It is quoted if it
// contains a space or one of the ends.
func word(text, ends string) string {
	if text == "" || text[0] == '\'' || strings.ContainsFunc(text, separates) || strings.ContainsAny(text, ends) || !composed(text) {
		return quoted(text)
	}
	return text
}

func argumentKey(key string) string {
	if key == "" || strings.ContainsFunc(key, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_.", r)
	}) || !composed(key) {
		return quoted(key)
	}
	return key
}

func argumentValue(value any) string {
	text, isText := value.(string)
	switch {
	case !isText:
		return compact(value)
	case text == "" || strings.ContainsFunc(text, separates) || strings.ContainsAny(text, `'"=[]{}`) || isScalar(text) || !composed(text):
		return quoted(text)
	}
	return text
}

// composed reports whether Terraform keeps a text unchanged. Terraform normalizes all texts to NFC, which would make
// different objects equal.
func composed(text string) bool {
	return norm.NFC.IsNormalString(text) && norm.NFC.PropertiesString(text).BoundaryBefore()
}

func separates(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }

// isScalar reports whether a text reads like a number, a boolean or null.
func isScalar(text string) bool {
	_, err := strconv.ParseFloat(text, 64)
	return err == nil || json.Valid([]byte(text))
}

// quoted returns a JSON string in single quotes.
func quoted(text string) string {
	inner := compact(text)
	return "'" + strings.NewReplacer(`\"`, `"`, `'`, `\'`).Replace(inner[1:len(inner)-1]) + "'"
}

// compact returns a value as JSON without spaces. It escapes characters that Terraform would replace.
func compact(value any) string {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic("arguments hold JSON values only: " + err.Error())
	}
	encoded := strings.TrimSuffix(text.String(), "\n")
	if composed(encoded) {
		return encoded
	}
	return escaped(encoded)
}

// escaped returns the JSON with escapes for all characters beyond ASCII.
func escaped(encoded string) string {
	var ascii strings.Builder
	for _, unit := range utf16.Encode([]rune(encoded)) {
		if unit < unicode.MaxASCII {
			ascii.WriteByte(byte(unit))
			continue
		}
		fmt.Fprintf(&ascii, `\u%04x`, unit)
	}
	return ascii.String()
}

// ValueText returns a value as messages show it.
func ValueText(value any) string {
	if text, isText := value.(string); isText {
		return text
	}
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(text)
}
