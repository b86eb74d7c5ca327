package file

import (
	"strconv"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/content"
)

// maxDepth is how deep headers are shown. Tools for JSON refuse deeper nesting.
const maxDepth = 100

// maxExact is the largest integer that every tool for JSON preserves. Larger integers are written as text.
const maxExact = 1 << 53

// types has the letter of each value for which JSON has no type, by the value's JSON pointer.
type types map[string]string

// view is how a line shows properties.
type view struct {
	// properties is a JSON object. types has the members of a JSON object, without its braces.
	properties, types []byte
	letters           types
}

// viewOf shows an empty object if the properties cannot be read.
func viewOf(encoded []byte) *view {
	v := &view{letters: types{}, properties: []byte{'{'}}
	p, _ := content.Parse(encoded)
	for i, name := range names {
		property := content.Property(i)
		if !p.Has(property) {
			continue
		}
		v.comma()
		v.properties = append(appendString(v.properties, name), ':')
		switch {
		case property == content.Headers:
			v.table(p.Headers(), pointer("", name), 0)
		case property.IsText():
			v.properties = appendString(v.properties, p.Text(property))
		case p.Number(property) > maxExact:
			v.properties = appendString(v.properties, strconv.FormatUint(p.Number(property), 10))
		default:
			v.properties = strconv.AppendUint(v.properties, p.Number(property), 10)
		}
	}
	v.properties = append(v.properties, '}')
	return v
}

// comma writes a comma, except before the first member or element.
func (v *view) comma() {
	if last := v.properties[len(v.properties)-1]; last != '{' && last != '[' {
		v.properties = append(v.properties, ',')
	}
}

// table shows only the first of several headers with the same name, since a JSON object has each name once.
func (v *view) table(t content.Table, at string, depth int) {
	v.properties = append(v.properties, '{')
	seen := make(map[string]bool)
	for key, value := range t.All() {
		name := strings.ToValidUTF8(string(key), "�")
		if seen[name] {
			continue
		}
		seen[name] = true
		v.comma()
		v.properties = append(appendText(v.properties, name), ':')
		v.value(value, pointer(at, name), depth+1)
	}
	v.properties = append(v.properties, '}')
}

func (v *view) array(a content.Array, at string, depth int) {
	v.properties = append(v.properties, '[')
	i := 0
	for value := range a.All() {
		v.comma()
		v.value(value, pointer(at, strconv.Itoa(i)), depth+1)
		i++
	}
	v.properties = append(v.properties, ']')
}

func (v *view) value(value content.Value, at string, depth int) {
	table, isTable := value.Table()
	array, isArray := value.Array()
	switch {
	case value.Type == content.TypeVoid, (isTable || isArray) && depth > maxDepth:
		v.properties = append(v.properties, "null"...)
	case isTable:
		v.table(table, at, depth)
	case isArray:
		v.array(array, at, depth)
	case value.Type == content.TypeText:
		v.properties = appendString(v.properties, value.Bytes)
	case value.Type == content.TypeBool:
		v.properties = strconv.AppendBool(v.properties, value.Bytes[0] != 0)
	default:
		v.other(value, at)
	}
}

// other shows a value of a type that JSON can lack.
func (v *view) other(value content.Value, at string) {
	text, quoted := spell(value)
	if letter := string(value.Type); quoted || value.Type != content.TypeInt64 {
		if len(v.types) > 0 {
			v.types = append(v.types, ',')
		}
		v.letters[at] = letter
		v.types = appendString(append(appendString(v.types, at), ':'), letter)
	}
	if quoted {
		v.properties = appendString(v.properties, text)
	} else {
		v.properties = append(v.properties, text...)
	}
}

var escaped = strings.NewReplacer("~", "~0", "/", "~1")

// pointer is the JSON pointer of a member.
func pointer(at, name string) string { return at + "/" + escaped.Replace(name) }

const hex = "0123456789abcdef"

// escapes has the letter after the backslash of each character that JSON escapes with one letter.
var escapes = [0x80]byte{'"': '"', '\\': '\\', '\n': 'n', '\r': 'r', '\t': 't'}

// appendString writes text as JSON. Invalid UTF-8 becomes U+FFFD.
func appendString[T string | []byte](data []byte, text T) []byte {
	return appendText(data, strings.ToValidUTF8(string(text), "�"))
}

// appendText writes valid UTF-8 as JSON.
func appendText[T string | []byte](data []byte, text T) []byte {
	data = append(data, '"')
	from := 0
	for i := range len(text) {
		c := text[i]
		if c >= ' ' && c != '"' && c != '\\' && c != 0x7f {
			continue
		}
		data = append(data, text[from:i]...)
		from = i + 1
		if letter := escapes[c]; letter != 0 {
			data = append(data, '\\', letter)
		} else {
			data = append(data, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xf])
		}
	}
	return append(append(data, text[from:]...), '"')
}
