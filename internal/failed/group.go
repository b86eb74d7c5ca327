package failed

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Columns that messages can be grouped by.
const (
	ByReason    = "reason"
	ByWorkQueue = "work_queue"
	ByError     = "error"
	// ByRun is not among [UsualColumns].
	ByRun = "run"
)

// These limit the size of groups, in bytes.
const (
	maxErrorText = 120
	// maxName is the longest name that a broker accepts.
	maxName = 255
)

// Traits are the columns that all messages of a group share. A column that is not grouped by is empty.
type Traits struct {
	Reason    string `json:"reason"`
	WorkQueue string `json:"work_queue"`
	Error     string `json:"error"`
	Run       string `json:"run,omitempty"`
}

// TraitsOf are the message's traits in these columns.
func TraitsOf(e *Entry, columns []string) (t Traits) {
	for _, column := range columns {
		switch column {
		case ByReason:
			t.Reason = shortened(e.Reason, maxErrorText)
		case ByWorkQueue:
			t.WorkQueue = shortened(e.WorkQueue, maxName)
		case ByError:
			t.Error = e.Failure()
		case ByRun:
			t.Run = shortened(e.Run, maxErrorText)
		}
	}
	return t
}

// groupDigits is the length of a group's id.
const groupDigits = 12

// id identifies the traits. The first digit tells the columns, a bit for each of [Columns].
func (t Traits) id(columns []string) string {
	bits := 0
	for i, column := range Columns() {
		if slices.Contains(columns, column) {
			bits |= 1 << i
		}
	}
	return fmt.Sprintf("%x%x", bits, sha256.Sum256(fmt.Appendf(nil, "%q", t)))[:groupDigits]
}

// columnsOf are the columns of a group by its id, none if the text is not an id.
func columnsOf(id string) (columns []string) {
	if len(id) != groupDigits || strings.Trim(id, "0123456789abcdef") != "" {
		return nil
	}
	bits, _ := strconv.ParseUint(id[:1], 16, 8) // a digit
	for i, column := range Columns() {
		if bits&(1<<i) != 0 {
			columns = append(columns, column)
		}
	}
	return columns
}

// IsGroup reports whether a text has the form of a group's id.
func IsGroup(text string) bool { return columnsOf(text) != nil }

// Group is a row of a list.
type Group struct {
	// ID selects the group's messages in a [Filter].
	ID string `json:"group"`
	Traits
	Count int `json:"count"`
	// Oldest and Newest are when the group's first and last message failed, zero if no message has a time.
	Oldest time.Time `json:"oldest,omitzero"`
	Newest time.Time `json:"newest,omitzero"`
}

// Groups counts messages.
type Groups struct {
	// Columns are the columns to group by.
	Columns []string
	groups  map[Traits]*Group
}

// NewGroups groups by these columns. It returns an error for an unknown column.
func NewGroups(columns []string) (*Groups, error) {
	for _, column := range columns {
		if !slices.Contains(Columns(), column) {
			return nil, fmt.Errorf("%q: must be one of %s", column, strings.Join(Columns(), ", "))
		}
	}
	return &Groups{Columns: columns, groups: make(map[Traits]*Group)}, nil
}

// Add counts a message, and returns its group.
func (g *Groups) Add(e *Entry) *Group {
	traits := TraitsOf(e, g.Columns)
	group := g.groups[traits]
	if group == nil {
		group = &Group{ID: traits.id(g.Columns), Traits: traits}
		g.groups[traits] = group
	}
	group.Count++
	if at := e.FailedAt; !at.IsZero() {
		if group.Oldest.IsZero() || at.Before(group.Oldest) {
			group.Oldest = at
		}
		if at.After(group.Newest) {
			group.Newest = at
		}
	}
	return group
}

// Sorted are the groups, the largest first.
func (g *Groups) Sorted() []*Group {
	return slices.SortedFunc(maps.Values(g.groups), func(a, b *Group) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Reason, b.Reason), strings.Compare(a.WorkQueue, b.WorkQueue),
			strings.Compare(a.Error, b.Error), strings.Compare(a.Run, b.Run))
	})
}

// Columns are all columns that messages can be grouped by.
func Columns() []string { return append(UsualColumns(), ByRun) }

// UsualColumns are the columns of a list for which the user named no columns.
func UsualColumns() []string { return []string{ByReason, ByWorkQueue, ByError} }

// errorLine is the line that names the failure, from the error or else from the exception. A stack trace of Python names it in
// the last line, one of another language in the first.
func (e *Entry) errorLine() string {
	text := strings.TrimSpace(cmp.Or(e.Error, e.Exception))
	line, rest, _ := strings.Cut(text, "\n")
	if strings.HasPrefix(line, "Traceback (most recent call last):") && rest != "" {
		line = rest[strings.LastIndex(rest, "\n")+1:]
	}
	return strings.TrimSpace(line)
}

// ErrorLine is the line that names the failure, from the error or else from the exception. It is shortened to 120 bytes.
func (e *Entry) ErrorLine() string { return shortened(e.errorLine(), maxErrorText) }

// words matches texts that can differ between messages with the same failure. A match starts where a word starts.
var words = regexp.MustCompile(`(?i)` +
	`([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})|` +
	`(\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?|\d\d:\d\d:\d\d(?:[.,]\d+)?)|` +
	`\d+(?:[.,]\d+)+|[0-9a-z]+`)

var (
	hexadecimal = regexp.MustCompile(`(?i)^(?:0x[0-9a-f]+|[0-9a-f]{8,})$`)
	number      = regexp.MustCompile(`^\d+(?:[.,]\d+)*`)
)

// Failure is the line that names the failure, with placeholders for texts that differ between messages: <uuid>, <time>, <hex>
// and <n>.
func (e *Entry) Failure() string {
	const enough = 4 * maxErrorText // a placeholder is shorter than the text that it replaces
	line := e.errorLine()
	return shortened(words.ReplaceAllStringFunc(line[:min(len(line), enough)], placeholder), maxErrorText)
}

func placeholder(word string) string {
	const uuid, moment = 1, 2
	groups := words.FindStringSubmatch(word)
	digits := number.FindString(word)
	switch {
	case groups[uuid] != "":
		return "<uuid>"
	case groups[moment] != "":
		return "<time>"
	case digits != word && strings.ContainsAny(word, "0123456789") && hexadecimal.MatchString(word):
		return "<hex>"
	case digits != "": // perhaps followed by a unit
		return "<n>" + word[len(digits):]
	}
	return word
}

func shortened(line string, most int) string {
	if len(line) <= most {
		return strings.Clone(line)
	}
	end := most
	for end > 0 && !utf8.RuneStart(line[end]) {
		end--
	}
	return line[:end] + "…"
}
