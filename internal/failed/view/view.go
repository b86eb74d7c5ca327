// Package view describes failed messages as people read them, on a terminal or a page. It is pure, and escapes nothing.
package view

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/content"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/file"
)

// Fact is a fact about a message.
type Fact struct{ Name, Value string }

// Facts are the facts that are known about a message, without its error and its exception.
func Facts(e *failed.Entry) []Fact {
	facts := []Fact{
		{"ID", e.ID},
		{"Reason", e.Reason},
		{"Queue", e.WorkQueue},
		{"Pipeline", e.Pipeline},
		{"Waits in", e.Level},
		{"System", string(e.System)},
		{"Failed at", Time(e.FailedAt)},
		{"Due at", Due(e.Due, e.DueBy)},
		{"First failed at", Time(e.FirstFailedAt)},
		{"Attempts", Attempts(e.Attempts, e.MaxAttempts)},
		{"Replays", fmt.Sprint(e.Replays)},
		{"Exchange", e.FirstExchange},
		{"Routing key", e.FirstRoutingKey},
		{"Message id", e.MessageID},
		{"Imported by", e.Run},
	}
	if e.Unreadable != nil {
		facts = append(facts, Fact{"Unreadable", e.Unreadable.Error()})
	}
	return slices.DeleteFunc(facts, func(f Fact) bool { return f.Value == "" || f.Value == "-" })
}

// Due is when a message is due, or the bounds of that time.
func Due(at, by time.Time) string {
	if by.IsZero() {
		return Time(at)
	}
	return Time(at) + " to " + Time(by)
}

// Attempt is a failed attempt.
type Attempt struct {
	Number int64
	// When is the attempt's time, Reason why it failed, and Waited how long the message waited afterwards, "-" if it did not.
	When, Reason, Waited string
}

// History are the failed attempts, newest first.
func History(e *failed.Entry) []Attempt {
	attempts := make([]Attempt, 0, len(e.History))
	for _, f := range e.History {
		waited := "-"
		if f.DelayMS != nil {
			waited = (time.Duration(*f.DelayMS) * time.Millisecond).String()
		}
		attempts = append(attempts, Attempt{f.Attempt, Time(time.UnixMilli(f.At)), f.Reason, waited})
	}
	return attempts
}

// Properties are the properties and headers that are not among [Facts], the error, the exception and the history. Both are sorted by name.
func Properties(e *failed.Entry) (properties, headers []Fact) {
	encoded, err := content.Parse(e.Properties)
	var all, tables map[string]json.RawMessage
	if err != nil || json.Unmarshal(file.Properties(e.Properties), &all) != nil {
		return nil, nil
	}
	_ = json.Unmarshal(all["headers"], &tables) // there can be no headers
	for name, value := range all {
		if name != "headers" && name != "message_id" {
			properties = append(properties, Fact{name, text(value)})
		}
	}
	for key, value := range encoded.Headers().All() {
		name := string(key)
		if e.HasRead(name) || slices.ContainsFunc(headers, func(f Fact) bool { return f.Name == name }) {
			continue
		}
		shown, ok := failed.Text(value)
		if !ok {
			shown = string(tables[name])
		}
		headers = append(headers, Fact{name, shown})
	}
	byName := func(a, b Fact) int { return cmp.Compare(a.Name, b.Name) }
	slices.SortFunc(properties, byName)
	slices.SortFunc(headers, byName)
	return properties, headers
}

// text is the text of a JSON string or number.
func text(value json.RawMessage) (s string) {
	if json.Unmarshal(value, &s) != nil {
		return string(value)
	}
	return s
}

// Attempts is a number of attempts and their greatest number, "-" if the number is not known.
func Attempts(n, most int64) string {
	switch {
	case n == 0:
		return "-"
	case most == 0:
		return fmt.Sprint(n)
	default:
		return fmt.Sprintf("%d/%d", n, most)
	}
}

// Time is a time in UTC, "-" if it is zero.
func Time(at time.Time) string {
	if at.IsZero() {
		return "-"
	}
	return at.UTC().Format("2006-01-02 15:04:05Z")
}

// Size is a number of bytes in the largest fitting unit.
func Size(n int) string {
	const unit = 1 << 10
	switch {
	case n < unit:
		return fmt.Sprintf("%d B", n)
	case n < unit*unit:
		return fmt.Sprintf("%.1f KiB", float64(n)/unit)
	default:
		return fmt.Sprintf("%.1f MiB", float64(n)/(unit*unit))
	}
}
