package topology

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2"
)

// matchTimeout limits the time for one name, because patterns with backtracking can run indefinitely. All other
// patterns finish much sooner, even on a busy machine.
const matchTimeout = 2 * time.Second

var (
	errUnreadable = errors.New("the pattern has a part of PCRE that is not supported here")
	errTooSlow    = errors.New("the pattern takes too long to match")
	errNotASCII   = errors.New("whether the pattern matches a name that is not ASCII depends on the broker's release of Erlang")
)

// brokerPattern is a policy's pattern, read as brokers read it.
type brokerPattern struct {
	expression *regexp2.Regexp
	// prefixes begin the names that match. Comparing them is much faster than the expression.
	prefixes [][]rune
	// onlyASCII means that the pattern depends on the definition of a letter. Older Erlang releases take a byte above
	// 127 for a Latin-1 character, and newer ones do not. The broker's Erlang release is unknown here.
	onlyASCII bool
	// tooSlow is set after a name took too long, so that later names fail at once.
	tooSlow atomic.Bool
}

// compilations has a function for each pattern that was compiled. A run matches the same policies for many objects.
var compilations sync.Map

func compiled(text string) (*brokerPattern, error) {
	once, _ := compilations.LoadOrStore(text, sync.OnceValues(func() (*brokerPattern, error) { return compile(text) }))
	return once.(func() (*brokerPattern, error))() //nolint:forcetypeassert // only this function stores
}

func compile(text string) (*brokerPattern, error) {
	var t translation
	bytes := string(bytewise(text))
	expression, err := regexp2.Compile(t.translate(bytes), regexp2.None)
	if unreadable := errors.Join(t.err, err); unreadable != nil {
		return nil, unreadable
	}
	expression.MatchTimeout = matchTimeout
	return &brokerPattern{expression: expression, prefixes: prefixesOf(bytes), onlyASCII: t.onlyASCII}, nil
}

// prefixesOf returns the beginnings of all names that can match. One of them is empty if the pattern has no simple
// beginning.
func prefixesOf(pattern string) (prefixes [][]rune) {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return [][]rune{nil}
	}
	begins, _ := beginnings(parsed, false)
	for _, text := range begins {
		prefixes = append(prefixes, []rune(text))
	}
	return prefixes
}

// mostBeginnings limits their number, because each is compared with each name.
const mostBeginnings = 50

// beginnings returns the texts that a part of a pattern matches, or their beginnings if whole is false. A part can begin
// anywhere in a name unless it is anchored.
func beginnings(part *syntax.Regexp, anchored bool) (texts []string, whole bool) {
	switch {
	case part.Op == syntax.OpBeginText:
		return []string{""}, true
	case part.Op == syntax.OpCapture:
		return beginnings(part.Sub[0], anchored)
	case part.Op == syntax.OpConcat && (anchored || part.Sub[0].Op == syntax.OpBeginText):
		return beginningsInOrder(part.Sub)
	case part.Op == syntax.OpAlternate:
		whole = true
		for _, alternative := range part.Sub {
			more, complete := beginnings(alternative, anchored)
			texts, whole = append(texts, more...), whole && complete
		}
		if len(texts) <= mostBeginnings {
			return texts, whole
		}
	case part.Op == syntax.OpLiteral && part.Flags&syntax.FoldCase == 0 && anchored:
		return []string{string(part.Rune)}, true
	}
	return []string{""}, false
}

// beginningsInOrder joins parts that follow each other, up to the first one that is not a simple text.
func beginningsInOrder(parts []*syntax.Regexp) (texts []string, whole bool) {
	texts = []string{""}
	for _, part := range parts {
		more, complete := beginnings(part, true)
		if len(texts)*len(more) > mostBeginnings {
			return texts, false
		}
		var longer []string
		for _, text := range texts {
			for _, next := range more {
				longer = append(longer, text+next)
			}
		}
		if texts = longer; !complete {
			return texts, false
		}
	}
	return texts, true
}

// MatchesPattern reports whether brokers would find the pattern, of a policy or of a permission, in the name. It returns
// an error if the pattern cannot be evaluated.
func MatchesPattern(pattern, name string) (bool, error) {
	p, err := compiled(pattern)
	if err != nil {
		return false, err
	}
	return p.matches(bytewise(name))
}

// matches reports whether brokers would find the pattern in a name, given with one character for each byte.
func (p *brokerPattern) matches(name []rune) (bool, error) {
	if p.onlyASCII && slices.ContainsFunc(name, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return false, errNotASCII
	}
	begins := func(prefix []rune) bool { return len(name) >= len(prefix) && slices.Equal(name[:len(prefix)], prefix) }
	if !slices.ContainsFunc(p.prefixes, begins) {
		return false, nil
	}
	if p.tooSlow.Load() {
		return false, errTooSlow
	}
	matches, err := p.expression.MatchRunes(name)
	if err != nil { // can only be a timeout
		p.tooSlow.Store(true)
		return false, errTooSlow
	}
	return matches, nil
}

func isASCII(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf })
}

// bytewise returns one character for each byte of the text, because brokers match bytes.
func bytewise(text string) []rune {
	characters := make([]rune, len(text))
	for i := range len(text) {
		characters[i] = rune(text[i])
	}
	return characters
}

// inClass matches a part of a character class: a POSIX class, an escape or a character.
const inClass = `\[:[^\]\\]*:\]|\\.|[^\]\\]`

var (
	classBegin = regexp.MustCompile(`^\[\^?\]?`)
	classToken = regexp.MustCompile(`(?s)` + inClass)
	// token matches syntax that regexp2 can read differently from PCRE: escapes, classes and groups that begin with
	// "(?". It also matches braces that only the newest PCRE releases take for a quantifier.
	token      = regexp.MustCompile(`(?s)\\.|\[\^?\]?(?:` + inClass + `)*\]|\(\?[ims-]*.|\{[\s,]`)
	plainGroup = regexp.MustCompile(`^\(\?[ims-]*[ims:)=!<>']$`)
)

// sets maps escapes to the same POSIX classes. In regexp2 these escapes mean Unicode classes, and it misreads some
// classes with several of them.
var sets = map[string]string{
	`\d`: "[:digit:]", `\s`: "[:space:]", `\w`: "[:word:]",
	`\D`: "[:^digit:]", `\S`: "[:^space:]", `\W`: "[:^word:]",
}

// everywhere matches the POSIX classes without bytes above 127 in every Erlang release.
var everywhere = regexp.MustCompile(`^\[:\^?(?:blank|digit|space|xdigit):\]$`)

// translation translates a pattern from PCRE to regexp2. If there is no equivalent, it fails: a policy that wrongly
// counts as not matching would cost messages.
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

// escape refuses references, octal numbers, and properties, which depend on the release where (?i) precedes them. It
// also refuses \v, which is a set in PCRE, and escapes that PCRE does not have.
func (t *translation) escape(found string) string {
	if strings.ContainsAny(found, `0123456789kpPuv<'`) {
		t.err = errUnreadable
	}
	t.onlyASCII = t.onlyASCII || found == `\b` || found == `\B`
	return found
}

// class escapes brackets in a character class, because regexp2 reads them as a subtraction and has no POSIX classes.
func (t *translation) class(found string) string {
	begin := classBegin.FindString(found)
	if begin == found {
		return found // an unclosed class, which regexp2 reports
	}
	return begin + classToken.ReplaceAllStringFunc(found[len(begin):len(found)-1], func(part string) string {
		switch {
		case part == "[" || part == `\-`:
			return fmt.Sprintf(`\x%x`, part[len(part)-1]) // regexp2 misreads \- at the end of a range
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

// set spells out a POSIX class. For ASCII, Go knows the classes by the same names.
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
