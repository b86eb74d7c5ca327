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

// death is the newest entry of x-death; its queue is "" if there is none.
type death struct {
	queue, reason, exchange, key string
}

// newestDeath reads x-death[0]: newer entries come first. The broker writes it whenever it
// dead-letters a message, but whoever publishes to the dead-letter exchange writes what they like:
// most often a copy of the headers that he was delivered.
func newestDeath(h amqp.Table) death {
	deaths, _ := h[headerDeath].([]any)
	if len(deaths) == 0 {
		return death{}
	}
	entry, _ := deaths[0].(amqp.Table)
	d := death{queue: queueName(entry["queue"])}
	d.reason, _ = shortString(entry["reason"])
	d.exchange, _ = shortString(entry["exchange"])
	if keys, _ := entry["routing-keys"].([]any); len(keys) > 0 {
		d.key, _ = shortString(keys[0])
	}
	return d
}

// isDeath reports whether the entry says how the message came here. No header of a copy differs from
// the broker's own, x-first-death-* and x-last-death-* included.
//
// A queue that is not configured may be a work queue that was attached after this worker started; or
// one that the message passed earlier, in a consumer's copy. It is taken for the latter if
// retry-queue names a work queue. Mistaken, a message that an application moved from that work queue
// to the new one goes back to the former, and its count continues. Mistaken the other way, each copy
// would go to a queue that is none of ours with a count of 1, and round indefinitely.
func (p *Pipeline) isDeath(d death, h amqp.Table) bool {
	switch {
	case d.queue == "" || p.Names.OwnsQueue(d.queue):
		return false
	case p.hasWorkQueue(d.queue) || p.areOfAnother(h):
		return true
	}
	return !p.hasWorkQueue(queueName(h[HeaderQueue]))
}
