package failed

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
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

// maxErrorText limits the size of groups, in bytes of the error's text.
const maxErrorText = 120

// Kind has the columns that all messages of a group share. A column that is not grouped by is empty.
type Kind struct {
	Reason    string `json:"reason"`
	WorkQueue string `json:"work_queue"`
	Error     string `json:"error"`
	Run       string `json:"run,omitempty"`
}

// Group is a row of a list.
type Group struct {
	Kind
	Count int `json:"count"`
	// Oldest and Newest are when the group's first and last message failed, zero if no message has a time.
	Oldest time.Time `json:"oldest,omitzero"`
	Newest time.Time `json:"newest,omitzero"`
}

// Groups counts messages.
type Groups struct {
	columns []string
	groups  map[Kind]*Group
}

// NewGroups groups by these columns. It returns an error for an unknown column.
func NewGroups(columns []string) (*Groups, error) {
	for _, column := range columns {
		if !slices.Contains(Columns(), column) {
			return nil, fmt.Errorf("%q: must be one of %s", column, strings.Join(Columns(), ", "))
		}
	}
	return &Groups{columns: columns, groups: make(map[Kind]*Group)}, nil
}

// Add counts a message.
func (g *Groups) Add(e *Entry) {
	var kind Kind
	for _, column := range g.columns {
		switch column {
		case ByReason:
			kind.Reason = e.Reason
		case ByWorkQueue:
			kind.WorkQueue = e.WorkQueue
		case ByError:
			kind.Error = e.Failure()
		case ByRun:
			kind.Run = e.Run
		}
	}
	group := g.groups[kind]
	if group == nil {
		group = &Group{Kind: kind}
		g.groups[kind] = group
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

// pythonTrace begins a Python stack trace, whose last line names the failure. Traces of other languages name it in the first
// line.
const pythonTrace = "Traceback (most recent call last):"

// errorLine is the line that names the failure, from the error or else from the exception.
func (e *Entry) errorLine() string {
	text := strings.TrimSpace(cmp.Or(e.Error, e.Exception))
	line, rest, _ := strings.Cut(text, "\n")
	if strings.HasPrefix(line, pythonTrace) && rest != "" {
		line = rest[strings.LastIndex(rest, "\n")+1:]
	}
	return strings.TrimSpace(line)
}

// ErrorLine is the line that names the failure, from the error or else from the exception. It is shortened to 120 bytes.
func (e *Entry) ErrorLine() string { return shortened(e.errorLine()) }

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
	return shortened(words.ReplaceAllStringFunc(line[:min(len(line), enough)], placeholder))
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

func shortened(line string) string {
	if len(line) <= maxErrorText {
		return strings.Clone(line)
	}
	end := maxErrorText
	for end > 0 && !utf8.RuneStart(line[end]) {
		end--
	}
	return line[:end] + "…"
}
