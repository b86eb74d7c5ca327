package page

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"unicode/utf8"
)

// pretty is a body as text: JSON with a line for each member, other text as it is, or else bytes in hexadecimal digits. The body can
// be the beginning of a longer one. If names of JSON members are masked, a body of another form is left out.
func pretty(body []byte, cut bool, mask Mask) string {
	if text, ok := indented(body, cut, mask); ok {
		return text
	}
	if len(mask) > 0 {
		return "(left out: it is not JSON, in which values can be masked by name)"
	}
	if cut {
		body = whole(body)
	}
	if utf8.Valid(body) {
		return strings.ReplaceAll(string(body), "\r\n", "\n")
	}
	return hex.Dump(body)
}

// whole is the text without the beginning of a last character that was cut.
func whole(text []byte) []byte {
	for i := max(0, len(text)-utf8.UTFMax+1); i < len(text); i++ {
		if utf8.RuneStart(text[i]) && !utf8.FullRune(text[i:]) {
			return text[:i]
		}
	}
	return text
}

// indenter writes JSON with a line for each member and element.
type indenter struct {
	*json.Decoder
	mask Mask
	to   strings.Builder
	// most is how many bytes the text can have.
	most int
}

// indented returns false unless the body is a JSON object or array, or the beginning of one. Numbers keep their spelling.
func indented(body []byte, cut bool, mask Mask) (string, bool) {
	if first := bytes.TrimLeft(body, " \t\r\n"); len(first) == 0 || first[0] != '{' && first[0] != '[' {
		return "", false
	}
	w := &indenter{Decoder: json.NewDecoder(bytes.NewReader(body)), mask: mask, most: 8*len(body) + 1<<10}
	w.UseNumber()
	if err := w.value("\n"); err != nil {
		return w.to.String(), cut && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF))
	}
	_, more := w.Token()
	return w.to.String(), errors.Is(more, io.EOF)
}

// value writes the next value. A line of the value begins with indent.
func (w *indenter) value(indent string) error {
	token, err := w.Token()
	if err != nil {
		return err
	}
	open, compound := token.(json.Delim)
	if !compound {
		w.scalar(token)
		return nil
	}
	w.to.WriteRune(rune(open))
	const maxIndent = 200 // deeper than people can read
	inner := indent + "  "
	for first := true; w.More(); first = false {
		if len(inner) > maxIndent || w.to.Len() > w.most {
			return errors.New("too deep or too long with a line for each member")
		}
		if !first {
			w.to.WriteByte(',')
		}
		w.to.WriteString(inner)
		if open == '{' {
			err = w.member(inner)
		} else {
			err = w.value(inner)
		}
		if err != nil {
			return err
		}
	}
	end, err := w.Token()
	if err != nil {
		return err
	}
	w.to.WriteString(indent)
	w.to.WriteRune(rune(end.(json.Delim))) //nolint:forcetypeassert // the decoder checks it
	return nil
}

func (w *indenter) member(indent string) error {
	name, err := w.Token()
	if err != nil {
		return err
	}
	text, _ := name.(string) // the decoder checks it
	w.scalar(text)
	w.to.WriteString(": ")
	if !w.mask.Has(text) {
		return w.value(indent)
	}
	w.scalar(Masked)
	var dropped json.RawMessage
	return w.Decode(&dropped)
}

// scalar writes a text, a number, a boolean or null, with the characters that people read.
func (w *indenter) scalar(token json.Token) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(token) // these can be encoded
	w.to.Write(bytes.TrimSuffix(text.Bytes(), []byte("\n")))
}
