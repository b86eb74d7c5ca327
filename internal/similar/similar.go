// Package similar finds what a misspelt name probably means. It is pure.
package similar

import (
	"fmt"
	"iter"
	"strings"
	"unicode"

	"github.com/agext/levenshtein"
)

// To returns the name that is most similar to a misspelt one. It is "" if none is similar, or if the name is among them. Of about five
// letters and digits, one can be wrong. Case and punctuation do not count.
func To(misspelt string, names iter.Seq[string]) (meant string) {
	wanted := letters(misspelt)
	atMost := min((len(wanted)+4)/5, len(wanted)/4)
	for name := range names {
		if name == misspelt {
			return ""
		}
		has := letters(name)
		if apart := len(has) - len(wanted); has == "" || max(apart, -apart) > atMost {
			continue
		}
		distance := levenshtein.Distance(wanted, has, nil) // with a maximum, v1.2.3 returns distances that are too short
		if distance < atMost || distance == atMost && (meant == "" || name < meant) {
			meant, atMost = name, distance
		}
	}
	return meant
}

// Hint asks, in brackets after a misspelt name, whether a similar one is meant. It is "" if there is none.
func Hint(misspelt string, names iter.Seq[string]) string {
	if meant := To(misspelt, names); meant != "" {
		return fmt.Sprintf(" (did you mean %q?)", meant)
	}
	return ""
}

// letters returns the letters and digits of a name, in lower case.
func letters(name string) string {
	others := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }
	return strings.Join(strings.FieldsFunc(strings.ToLower(name), others), "")
}
