package failed

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Count is a number of things, whose plural has an s.
func Count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// Messages is a number of messages.
func Messages(n int) string { return Count(n, "message") }

// Printable escapes what is no text, or would move a terminal's cursor, change its colors or reorder what it shows. Ends
// of lines and tabs stay.
func Printable(text string) string {
	if utf8.ValidString(text) && !strings.ContainsFunc(text, acts) {
		return text
	}
	var printable strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		if part := text[:size]; r == utf8.RuneError && size == 1 || acts(r) {
			quoted := strconv.QuoteToASCII(part)
			printable.WriteString(quoted[1 : len(quoted)-1])
		} else {
			printable.WriteString(part)
		}
		text = text[size:]
	}
	return printable.String()
}

// acts reports whether a terminal does something else than show it.
func acts(r rune) bool {
	return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029')
}
