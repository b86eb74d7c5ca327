package deadletter

import (
	"encoding/json"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// maxHistory is the longest retry-history, in bytes.
const maxHistory = 4096

// Failure is one element of retry-history.
type Failure struct {
	// Attempt is 1 for the first delivery.
	Attempt int64 `json:"attempt"`
	// At is in milliseconds since the epoch.
	At int64 `json:"at"`
	// Reason is why the message was dead-lettered.
	Reason string `json:"reason"`
	// DelayMS is how long the message waited afterwards, absent if it did not.
	DelayMS *int64 `json:"delay_ms,omitempty"`
}

// parseHistory reads retry-history; whatever is not one counts as none.
func parseHistory(value any) []Failure {
	text, _ := value.(string)
	return ParseHistory(text)
}

// ParseHistory reads the text of [HeaderHistory]; whatever is not one counts as none.
func ParseHistory(text string) []Failure {
	if text == "" || len(text) > maxHistory {
		return nil
	}
	var failures []Failure
	if err := json.Unmarshal([]byte(text), &failures); err != nil {
		return nil
	}
	return failures
}

// history encodes this failure and the earlier ones.
func history(v Verdict, now time.Time) string {
	latest := Failure{Attempt: v.Letter.Count, At: now.UnixMilli(), Reason: v.Letter.Reason}
	if v.Action == Retry {
		ms := v.wait().Milliseconds()
		latest.DelayMS = &ms
	}
	return encodeHistory(append([]Failure{latest}, v.Letter.History...), maxHistory)
}

// encodeHistory drops the oldest failures when there is no room for them.
func encodeHistory(failures []Failure, limit int) string {
	text := []byte{'['}
	for i, failure := range failures {
		// A Failure has nothing that JSON cannot express.
		entry, _ := json.Marshal(failure)
		if len(text)+len(entry)+len(",]") > limit {
			break
		}
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, entry...)
	}
	return string(append(text, ']'))
}

// trimHistory makes a message's history shorter by so many bytes, at the cost of its oldest entries.
func trimHistory(h amqp.Table, excess int) {
	text, _ := h[HeaderHistory].(string)
	if trimmed := encodeHistory(parseHistory(text), len(text)-excess); trimmed != "[]" {
		h[HeaderHistory] = trimmed
	} else {
		delete(h, HeaderHistory)
	}
}
