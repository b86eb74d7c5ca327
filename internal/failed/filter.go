package failed

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/content"
)

// Filter selects messages; its zero value selects all of them. A message must match each field that is set. It matches a list
// if it matches one of its elements.
type Filter struct {
	Reasons []string `json:"reasons,omitempty"`
	// FromQueues are work queues.
	FromQueues []string `json:"from_queues,omitempty"`
	// Since and Until bound the time when a message failed, or when it is due if it waits. A message without a time matches no bounds.
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"`
	// Headers must all be present.
	Headers []Header `json:"headers,omitempty"`
	// RoutingKey is a pattern: * stands for any text and ? for any character.
	RoutingKey string   `json:"routing_key,omitempty"`
	MessageIDs []string `json:"message_ids,omitempty"`
	// Errors are parts of the error or the exception. Case does not matter.
	Errors []string `json:"errors,omitempty"`
	// Groups are ids of groups.
	Groups []string `json:"groups,omitempty"`
	// Runs are ids of the runs that imported messages.
	Runs []string `json:"runs,omitempty"`
	// IDs are ids or message-ids; nil selects any message. An id selects as many messages as it is listed, since equal messages
	// share one id. A text that does not have the form of an id is a message-id, and selects all messages that have it.
	IDs []string `json:"ids,omitempty"`
	// Not leaves out messages that the fields above select.
	Not Exclusion `json:"not,omitzero"`
}

// Exclusion leaves out messages that match any of its elements. Each element matches as in a [Filter].
type Exclusion struct {
	Reasons    []string `json:"reasons,omitempty"`
	FromQueues []string `json:"from_queues,omitempty"`
	Headers    []Header `json:"headers,omitempty"`
	Errors     []string `json:"errors,omitempty"`
	Groups     []string `json:"groups,omitempty"`
}

// Header is a header with its value as text.
type Header struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// Selector applies a filter to the messages of one pass.
type Selector struct {
	// Timeless counts messages that the bounds of time excluded because they have no time.
	Timeless int

	filter Filter
	// routingKey is the filter's pattern, nil for no pattern.
	routingKey *regexp.Regexp
	// unseen are the message-ids that were not found so far, and absent the runs.
	unseen, absent map[string]bool
	// left is how many more messages each id can select.
	left map[string]int
}

// Selector begins a pass.
func (f Filter) Selector() *Selector {
	s := &Selector{filter: f, unseen: make(map[string]bool, len(f.MessageIDs)), absent: make(map[string]bool, len(f.Runs))}
	if f.RoutingKey != "" {
		s.routingKey = pattern(f.RoutingKey)
	}
	for _, id := range f.MessageIDs {
		s.unseen[id] = true
	}
	for _, run := range f.Runs {
		s.absent[run] = true
	}
	if f.IDs != nil {
		s.left = make(map[string]int, len(f.IDs))
	}
	for _, id := range f.IDs {
		if s.left[id]++; !IsID(id) {
			s.unseen[id] = true
		}
	}
	return s
}

// Selects reports whether the filter selects the message. If the filter lists ids, it counts one occurrence of the message's
// id as used, even if the filter then leaves the message out.
func (s *Selector) Selects(e *Entry) bool {
	delete(s.absent, e.Run)
	if s.routingKey != nil && !s.routingKey.MatchString(runes(e.FirstRoutingKey)) {
		return false
	}
	if !s.filter.matches(e) || !s.inTime(e) {
		return false
	}
	switch {
	case s.left == nil:
	case s.left[e.ID] > 0:
		s.left[e.ID]--
	case IsID(e.MessageID) || s.left[e.MessageID] == 0:
		return false
	}
	delete(s.unseen, e.MessageID)
	return !s.filter.Not.has(e)
}

// Missing are the listed ids and message-ids without a message, sorted. An id is repeated for each missing message.
func (s *Selector) Missing() []string {
	missing := slices.Collect(maps.Keys(s.unseen))
	for id, n := range s.left {
		if IsID(id) { // otherwise it is one of the unseen message-ids
			missing = append(missing, slices.Repeat([]string{id}, n)...)
		}
	}
	slices.Sort(missing)
	return missing
}

// Absent are the listed runs without a message, sorted.
func (s *Selector) Absent() []string { return slices.Sorted(maps.Keys(s.absent)) }

// Selective reports whether the filter chooses messages. What it leaves out chooses none.
func (f *Filter) Selective() bool {
	return len(f.Reasons)+len(f.FromQueues)+len(f.Headers)+len(f.MessageIDs)+len(f.Errors)+len(f.Groups)+len(f.Runs) > 0 || f.IDs != nil ||
		!f.Since.IsZero() || !f.Until.IsZero() || f.RoutingKey != ""
}

func (s *Selector) inTime(e *Entry) bool {
	since, until := s.filter.Since, s.filter.Until
	if since.IsZero() && until.IsZero() {
		return true
	}
	at := cmp.Or(e.FailedAt, e.Due)
	if at.IsZero() {
		s.Timeless++
		return false
	}
	return !cmp.Or(e.DueBy, at).Before(since) && (until.IsZero() || !at.After(until))
}

// matches leaves the routing key, times and ids to the selector.
func (f *Filter) matches(e *Entry) bool {
	return among(f.Reasons, e.Reason) && among(f.FromQueues, e.WorkQueue) && among(f.MessageIDs, e.MessageID) &&
		among(f.Runs, e.Run) &&
		(len(f.Errors) == 0 || slices.ContainsFunc(f.Errors, e.hasError)) &&
		(len(f.Groups) == 0 || slices.ContainsFunc(f.Groups, e.isIn)) &&
		!slices.ContainsFunc(f.Headers, func(h Header) bool { return !e.hasHeader(h) })
}

// has reports whether the message has one of the elements.
func (x *Exclusion) has(e *Entry) bool {
	return slices.Contains(x.Reasons, e.Reason) || slices.Contains(x.FromQueues, e.WorkQueue) ||
		slices.ContainsFunc(x.Errors, e.hasError) || slices.ContainsFunc(x.Groups, e.isIn) || slices.ContainsFunc(x.Headers, e.hasHeader)
}

// hasError also compares the text with [Entry.Failure], which a table shows and can cut off.
func (e *Entry) hasError(text string) bool {
	text = strings.TrimSuffix(text, "…")
	return contains(e.Error, text) || contains(e.Exception, text) || contains(e.Failure(), text)
}

// isIn reports whether the message belongs to the group with the id.
func (e *Entry) isIn(group string) bool {
	columns := columnsOf(group)
	return TraitsOf(e, columns).id(columns) == group
}

func among(list []string, text string) bool { return len(list) == 0 || slices.Contains(list, text) }

func contains(text, part string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(part))
}

func (e *Entry) hasHeader(wanted Header) bool {
	properties, _ := content.Parse(e.Properties) // properties that cannot be read have no headers
	value, found := properties.Headers().Get(wanted.Key)
	text, ok := Text(value)
	return found && ok && text == wanted.Value
}

// Text is a value as people write it; false for a table, an array or a value that does not fit one line.
func Text(v content.Value) (string, bool) {
	if n, ok := v.Integer(); ok {
		return strconv.FormatInt(n, 10), true
	}
	switch v.Type {
	case content.TypeText:
		return string(v.Bytes), true
	case content.TypeBool:
		return strconv.FormatBool(v.Bytes[0] != 0), true
	case content.TypeFloat32, content.TypeFloat64:
		n, _ := v.Float()
		return strconv.FormatFloat(n, 'g', -1, 8*len(v.Bytes)), true
	case content.TypeTimestamp:
		at, ok := v.Time()
		return at.Format(time.RFC3339), ok
	case content.TypeVoid:
		return "", true
	}
	return "", false
}

// pattern compiles a pattern where * stands for any text and ? for any character.
func pattern(text string) *regexp.Regexp {
	quoted := regexp.QuoteMeta(runes(text))
	return regexp.MustCompile("(?s)^" + strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(quoted) + "$")
}

// runes replaces each byte that is not part of a character by U+FFFD, so that a pattern can match it.
func runes(text string) string { return string([]rune(text)) }
