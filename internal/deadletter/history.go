package deadletter

import (
	"encoding/json"
	"time"
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
	if text == "" || len(text) > maxHistory {
		return nil
	}
	var failures []Failure
	if err := json.Unmarshal([]byte(text), &failures); err != nil {
		return nil
	}
	return failures
}

// history encodes this failure and the earlier ones, newest first; the oldest are dropped when there
// is no room for them.
func history(v Verdict, now time.Time) string {
	latest := Failure{Attempt: v.Letter.Count, At: now.UnixMilli(), Reason: v.Letter.Reason}
	if v.Action == Retry {
		ms := v.Delay.Milliseconds()
		latest.DelayMS = &ms
	}
	text := []byte{'['}
	for i, failure := range append([]Failure{latest}, v.Letter.History...) {
		// A Failure has nothing that JSON cannot express.
		entry, _ := json.Marshal(failure)
		if len(text)+len(entry)+len(",]") > maxHistory {
			break
		}
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, entry...)
	}
	return string(append(text, ']'))
}
