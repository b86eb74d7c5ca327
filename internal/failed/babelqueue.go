package failed

import (
	"bytes"
	"cmp"
	"encoding/json"
)

// Members of a BabelQueue message, whose failure is described in its body.
const (
	babelBlock       = "dead_letter"
	babelBodyAttempt = "attempts"
)

// readBabelQueue reads the block in the body.
func readBabelQueue(e *Entry, _ fields) {
	if !bytes.Contains(e.Body, []byte(`"`+babelBlock+`"`)) {
		return
	}
	var envelope struct {
		Block *struct {
			Reason        string `json:"reason"`
			Error         string `json:"error"`
			Exception     string `json:"exception"`
			FailedAt      int64  `json:"failed_at"`
			OriginalQueue string `json:"original_queue"`
			Attempts      int64  `json:"attempts"`
		} `json:"dead_letter"`
	}
	if err := json.Unmarshal(e.Body, &envelope); err != nil || envelope.Block == nil {
		return
	}
	l := envelope.Block
	e.System, e.Reason, e.WorkQueue = SystemBabelQueue, cmp.Or(l.Reason, reasonFailed), cmp.Or(l.OriginalQueue, e.queueOfName(), e.WorkQueue)
	e.Error, e.Exception, e.Attempts = l.Error, l.Exception, max(0, l.Attempts)
	if at := fromMillis(l.FailedAt); !at.IsZero() {
		e.FailedAt = at
	}
}

// babelRestored is the body without the block and with no attempts; every other byte is as it was.
func babelRestored(body []byte) []byte {
	var restored []byte
	last := 0
	for _, m := range members(body) {
		switch m.name {
		case babelBlock:
			restored = append(restored, body[last:m.from]...)
		case babelBodyAttempt:
			restored = append(append(restored, body[last:m.value]...), '0')
		default:
			continue
		}
		last = m.to
		if m.name == babelBlock {
			restored, last = withoutComma(restored, body, last)
		}
	}
	return append(restored, body[last:]...)
}

// withoutComma removes the comma that separated a removed member from the next one, or else from the last one.
func withoutComma(before, body []byte, at int) (kept []byte, next int) {
	rest := bytes.TrimLeft(body[at:], " \t\r\n")
	if len(rest) > 0 && rest[0] == ',' {
		return before, len(body) - len(rest) + 1
	}
	trimmed := bytes.TrimRight(before, " \t\r\n")
	return bytes.TrimSuffix(trimmed, []byte(",")), at
}

// member is where a member of a JSON object is: from its name, from its value, to its end.
type member struct {
	name            string
	from, value, to int
}

// members finds those of the outermost object. The body is valid JSON.
func members(body []byte) (found []member) {
	decoder := json.NewDecoder(bytes.NewReader(body))
	if _, err := decoder.Token(); err != nil {
		return nil
	}
	for decoder.More() {
		before := int(decoder.InputOffset())
		name, err := decoder.Token()
		if err != nil {
			return nil
		}
		text, _ := name.(string)
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return nil
		}
		to := int(decoder.InputOffset())
		from := before + bytes.IndexByte(body[before:], '"')
		found = append(found, member{text, from, to - len(value), to})
	}
	return found
}
