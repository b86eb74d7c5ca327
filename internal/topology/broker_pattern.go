package topology

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2"
)

// matchTimeout bounds the matching of one name: patterns with backtracking can take indefinitely long. It is
// much longer than any other takes on a machine that is busy.
const matchTimeout = 2 * time.Second

var (
	errUnreadable = errors.New("the pattern has a part of PCRE that is not supported here")
	errTooSlow    = errors.New("the pattern takes too long to match")
	errNotASCII   = errors.New("whether the pattern matches a name that is not ASCII depends on the broker's release of Erlang")
)

// brokerPattern is a policy's pattern as brokers read it.
type brokerPattern struct {
	expression *regexp2.Regexp
	// onlyASCII means that the pattern asks what a letter is. A byte above 127 is a character of Latin-1 to
	// older releases of Erlang and nothing to newer ones, and which of them runs the broker is not known here.
	onlyASCII bool
	// tooSlow is set once a name took too long, so that the next ones do not take as long again.
	tooSlow atomic.Bool
}

func compiled(text string) (*brokerPattern, error) {
	var t translation
	expression, err := regexp2.Compile(t.translate(bytewise(text)), regexp2.None)
	if unreadable := errors.Join(t.err, err); unreadable != nil {
		return nil, unreadable
	}
	expression.MatchTimeout = matchTimeout
	return &brokerPattern{expression: expression, onlyASCII: t.onlyASCII}, nil
}

// matches reports whether brokers find the pattern in the name.
func (p *brokerPattern) matches(name string) (bool, error) {
	if p.onlyASCII && !isASCII(name) {
		return false, errNotASCII
	}
	if p.tooSlow.Load() {
		return false, errTooSlow
	}
	matches, err := p.expression.MatchString(bytewise(name))
	if err != nil { // which is nothing but the time
		p.tooSlow.Store(true)
		return false, errTooSlow
	}
	return matches, nil
}

func isASCII(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf })
}

// bytewise has a character for each byte of the text: brokers match bytes.
func bytewise(text string) string {
	if isASCII(text) {
		return text
	}
	characters := make([]rune, len(text))
	for i := range len(text) {
		characters[i] = rune(text[i])
	}
	return string(characters)
}

// inClass is a part of a character class: a POSIX class, an escape or a character.
const inClass = `\[:[^\]\\]*:\]|\\.|[^\]\\]`

var (
	classBegin = regexp.MustCompile(`^\[\^?\]?`)
	classToken = regexp.MustCompile(`(?s)` + inClass)
	// token is what regexp2 might read in another way than PCRE: escapes, classes, what begins with "(?",
	// and braces that are a quantifier for the newest releases of PCRE only.
	token      = regexp.MustCompile(`(?s)\\.|\[\^?\]?(?:` + inClass + `)*\]|\(\?[ims-]*.|\{[\s,]`)
	plainGroup = regexp.MustCompile(`^\(\?[ims-]*[ims:)=!<>']$`)
)

// sets are the POSIX classes that are like these escapes. To regexp2 they are Unicode's, and it mistakes
// some classes that hold several.
var sets = map[string]string{
	`\d`: "[:digit:]", `\s`: "[:space:]", `\w`: "[:word:]",
	`\D`: "[:^digit:]", `\S`: "[:^space:]", `\W`: "[:^word:]",
}

// everywhere are the POSIX classes that have no bytes above 127 to any release of Erlang.
var everywhere = regexp.MustCompile(`^\[:\^?(?:blank|digit|space|xdigit):\]$`)

// translation is a pattern on its way from PCRE to what means the same to regexp2. What nothing does is
// an error, since a policy that counts as not matching when it does costs messages.
type translation struct {
	onlyASCII bool
	err       error
}

func (t *translation) translate(pattern string) string {
	return token.ReplaceAllStringFunc(pattern, func(found string) string {
		switch {
		case found[0] == '[':
			return t.class(found)
		case sets[found] != "":
			return "[" + t.set(sets[found]) + "]"
		case found[0] == '\\':
			return t.escape(found)
		case !plainGroup.MatchString(found):
			t.err = errUnreadable
		case strings.Contains(found, "i"):
			t.onlyASCII = true
		}
		return found
	})
}

// escape refuses references and octal, properties, which depend on the release where (?i) stands before
// them, what is not an escape in PCRE, and \v, which is a set there.
func (t *translation) escape(found string) string {
	if strings.ContainsAny(found, `0123456789kpPuv<'`) {
		t.err = errUnreadable
	}
	t.onlyASCII = t.onlyASCII || found == `\b` || found == `\B`
	return found
}

// class escapes the brackets within a class, where regexp2 has subtraction but no POSIX classes.
func (t *translation) class(found string) string {
	begin := classBegin.FindString(found)
	if begin == found {
		return found // not closed, which regexp2 says itself
	}
	return begin + classToken.ReplaceAllStringFunc(found[len(begin):len(found)-1], func(part string) string {
		switch {
		case part == "[" || part == `\-`:
			return fmt.Sprintf(`\x%x`, part[len(part)-1]) // regexp2 is wrong about \- at the end of a range
		case sets[part] != "":
			return t.set(sets[part])
		case part[0] == '[':
			return t.set(part)
		case part[0] == '\\':
			return t.escape(part)
		}
		return part
	}) + "]"
}

// set spells out a POSIX class. Go knows them by the same names, for ASCII.
func (t *translation) set(name string) string {
	class, err := syntax.Parse("["+name+"]", syntax.Perl)
	if err != nil {
		t.err = errUnreadable
		return name
	}
	t.onlyASCII = t.onlyASCII || !everywhere.MatchString(name)
	var ranges strings.Builder
	for i := 0; i < len(class.Rune); i += 2 {
		fmt.Fprintf(&ranges, `\x{%x}-\x{%x}`, class.Rune[i], class.Rune[i+1])
	}
	return ranges.String()
}
