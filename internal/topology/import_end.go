package topology

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// Meant are the bindings, of those between two ends, that the end of an import id means. A fully encoded properties key always means its
// binding. A percent-encoded one, as in the attribute id, does so unless another binding has that routing key. All else is compared with
// all keys, encoded or not.
func Meant(end string, between []Binding) (found []Binding) {
	decoded, full := Unescaped(end), 3*strings.Count(end, "%") == len(end) && end == strings.ToLower(end)
	isKey := !full && slices.ContainsFunc(between, func(b Binding) bool { return b.RoutingKey == end })
	for _, b := range between {
		switch exact := b.PropertiesKey == decoded; {
		case exact && (!isKey || b.RoutingKey == end):
			return []Binding{b}
		case exact, b.PropertiesKey == end, b.RoutingKey == end, b.RoutingKey == decoded:
			found = append(found, b)
		}
	}
	return found
}

// OnlyEnd is the end of an import id that means only this binding, fully encoded if necessary. Hardly a routing key looks like that.
func OnlyEnd(b Binding, between []Binding) string {
	if end := url.PathEscape(b.PropertiesKey); len(Meant(end, between)) == 1 {
		return end
	}
	return strings.ReplaceAll(fmt.Sprintf(" % x", b.PropertiesKey), " ", "%")
}

// Unescaped is a text without percent-encoding, if it has any.
func Unescaped(text string) string {
	decoded, _ := url.PathUnescape(text)
	return cmp.Or(decoded, text)
}
