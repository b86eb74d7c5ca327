package adopt

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// body writes attributes between braces, as `terraform fmt` does: it aligns the equals signs of neighbours that take a line each.
func body(attributes []attribute, indent string) string {
	inner := indent + "  "
	lines := make([]string, len(attributes))
	for first := 0; first < len(attributes); {
		end, width := first, 0
		for ; end < len(attributes); end++ {
			lines[end] = value(attributes[end].value, inner)
			if strings.Contains(lines[end], "\n") {
				break
			}
			width = max(width, utf8.RuneCountInString(attributes[end].name))
		}
		for i := first; i < end; i++ {
			lines[i] = fmt.Sprintf("%s%-*s = %s", inner, width, attributes[i].name, lines[i])
		}
		if end < len(attributes) {
			equals := " = "
			if _, is := attributes[end].value.(block); is {
				equals = " "
			}
			lines[end] = inner + attributes[end].name + equals + lines[end]
			end++
		}
		first = end
	}
	if len(lines) == 0 {
		return "{}"
	}
	return "{\n" + strings.Join(lines, "\n") + "\n" + indent + "}"
}

// comment writes a text as comment lines.
func comment(text, indent string) string {
	var out strings.Builder
	line := indent + "#"
	for word := range strings.FieldsSeq(text) {
		if len(line)+len(word) > 110 {
			out.WriteString(line + "\n")
			line = indent + "#"
		}
		line += " " + word
	}
	return out.String() + line + "\n"
}

// value writes a value. Tables take a line for each key, except in lists.
func value(of any, indent string) string {
	switch v := of.(type) {
	case expression:
		return string(v)
	case asJSON:
		return "jsonencode(" + value(map[string]any(v), indent) + ")"
	case map[string]any:
		return body(entries(v), indent)
	case []attribute:
		return body(v, indent)
	case block:
		return body(v, indent)
	case []any:
		elements := make([]string, len(v))
		for i, element := range v {
			elements[i] = inline(element)
		}
		return "[" + strings.Join(elements, ", ") + "]"
	case string:
		return quoted(v)
	case nil:
		return "null"
	}
	return fmt.Sprint(of)
}

// inline writes a value on one line.
func inline(of any) string {
	table, is := of.(map[string]any)
	if !is || len(table) == 0 {
		return value(of, "")
	}
	var pairs []string
	for _, entry := range entries(table) {
		pairs = append(pairs, entry.name+" = "+inline(entry.value))
	}
	return "{ " + strings.Join(pairs, ", ") + " }"
}

// bareKey matches keys that need no quotes. A table that begins with "for" would be a loop.
var bareKey = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

func entries(table map[string]any) []attribute {
	var sorted []attribute
	for _, key := range slices.Sorted(maps.Keys(table)) {
		name := key
		if !bareKey.MatchString(key) || key == "for" {
			name = quoted(key)
		}
		sorted = append(sorted, attribute{name, table[key]})
	}
	return sorted
}

// quoted writes a text. A brace after $ or % would begin an expression.
func quoted(text string) string {
	var out strings.Builder
	out.WriteByte('"')
	for i, r := range text {
		beginsExpression := (r == '$' || r == '%') && strings.HasPrefix(text[i+1:], "{")
		switch {
		case r == '"' || r == '\\':
			out.WriteString(`\` + string(r))
		case r == '\n':
			out.WriteString(`\n`)
		case unicode.IsPrint(r) && !beginsExpression:
			out.WriteRune(r)
		case r > 0xffff:
			_, _ = fmt.Fprintf(&out, `\U%08x`, r)
		default:
			_, _ = fmt.Fprintf(&out, `\u%04x`, r)
		}
	}
	return out.String() + `"`
}
