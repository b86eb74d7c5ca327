package failed

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Columns by which messages are grouped.
const (
	ByReason = "reason"
	ByQueue  = "queue"
	ByError  = "error"
)

// maxErrorText keeps groups of messages with long errors small.
const maxErrorText = 120

// Kind is what the messages of a group have in common; a column that does not count is empty.
type Kind struct {
	Reason string `json:"reason"`
	Queue  string `json:"queue"`
	Error  string `json:"error"`
}

// Group is a row of a list.
type Group struct {
	Kind
	Count int `json:"count"`
	// Oldest and Newest are when messages failed, zero if none says it.
	Oldest time.Time `json:"oldest,omitzero"`
	Newest time.Time `json:"newest,omitzero"`
}

// Groups counts messages.
type Groups struct {
	reason, queue, error bool
	groups               map[Kind]*Group
}

// NewGroups groups by these columns.
func NewGroups(columns []string) (*Groups, error) {
	g := &Groups{groups: make(map[Kind]*Group)}
	for _, column := range columns {
		switch column {
		case ByReason:
			g.reason = true
		case ByQueue:
			g.queue = true
		case ByError:
			g.error = true
		default:
			return nil, fmt.Errorf("%q: must be %s, %s or %s", column, ByReason, ByQueue, ByError)
		}
	}
	return g, nil
}

// Add counts a message.
func (g *Groups) Add(e *Entry) {
	var kind Kind
	if g.reason {
		kind.Reason = e.Reason
	}
	if g.queue {
		kind.Queue = e.WorkQueue
	}
	if g.error {
		kind.Error = e.ErrorLine()
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
func (g *Groups) Sorted() []Group {
	// Pointers are sorted by code that is in the binary anyway.
	order := slices.SortedFunc(maps.Values(g.groups), func(a, b *Group) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Reason, b.Reason), strings.Compare(a.Queue, b.Queue),
			strings.Compare(a.Error, b.Error))
	})
	sorted := make([]Group, len(order))
	for i, group := range order {
		sorted[i] = *group
	}
	return sorted
}

// ErrorLine is the first line of the error, or else of the exception, shortened.
func (e *Entry) ErrorLine() string {
	line, _, _ := strings.Cut(strings.TrimSpace(cmp.Or(e.Error, e.Exception)), "\n")
	line = strings.TrimRight(line, "\r ")
	if len(line) <= maxErrorText {
		return strings.Clone(line)
	}
	end := maxErrorText
	for end > 0 && !utf8.RuneStart(line[end]) {
		end--
	}
	return line[:end] + "…"
}
