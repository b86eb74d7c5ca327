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
	// DelayMS is how long the message waited afterwards. It is absent if the message did not wait.
	DelayMS *int64 `json:"delay_ms,omitempty"`
}

// ParseHistory reads the text of [HeaderHistory]. An invalid text counts as empty.
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

// encodeHistory drops the oldest failures if they do not fit the limit, in bytes.
func encodeHistory(failures []Failure, limit int) string {
	text := []byte{'['}
	for i, failure := range failures {
		// JSON can express every Failure.
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

// trimHistory shortens a message's history by this many bytes. It drops the oldest entries.
func trimHistory(h amqp.Table, excess int) {
	text, _ := h[HeaderHistory].(string)
	if trimmed := encodeHistory(ParseHistory(text), len(text)-excess); trimmed != "[]" {
		h[HeaderHistory] = trimmed
	} else {
		delete(h, HeaderHistory)
	}
}

// death is the newest entry of x-death. Its queue is "" if there is no entry.
type death struct {
	queue, reason, exchange, key string
	at                           time.Time
}

// newestDeath reads x-death[0], since newer entries come first. The broker writes x-death when it dead-letters a
// message. Clients that publish to the dead-letter exchange can write anything there, and most often copy the headers
// of a delivery.
func newestDeath(h amqp.Table) death {
	deaths, _ := h[headerDeath].([]any)
	if len(deaths) == 0 {
		return death{}
	}
	entry, _ := deaths[0].(amqp.Table)
	d := death{queue: queueName(entry["queue"])}
	d.reason, _ = shortString(entry["reason"])
	d.exchange, _ = shortString(entry["exchange"])
	d.at, _ = entry["time"].(time.Time)
	if keys, _ := entry["routing-keys"].([]any); len(keys) > 0 {
		d.key, _ = shortString(keys[0])
	}
	return d
}

// isDeath reports whether the entry says how the message came here. A client's copy has the same headers as the
// broker's message, x-first-death-* and x-last-death-* included.
//
// A queue that is not configured can be a work queue that was attached after this worker started. In a consumer's copy,
// it can also be a queue that the message passed earlier. If retry-queue names a work queue, isDeath assumes a copy. If
// that is wrong, an application has moved the message from that work queue to the new one. The message then goes back
// to the first one, and its count continues. The opposite error is worse: each copy would go to a foreign queue with a
// count of 1, and round indefinitely.
func (p *Pipeline) isDeath(d death, h amqp.Table) bool {
	switch {
	case d.queue == "" || p.Names.OwnsQueue(d.queue):
		return false
	case p.hasWorkQueue(d.queue) || p.areOfAnother(h):
		return true
	}
	return !p.hasWorkQueue(queueName(h[HeaderQueue]))
}
