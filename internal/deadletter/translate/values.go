package translate

import (
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// maxTable is how deep the tables and lists of a header can nest for amqp091-go to read them.
const maxTable = 31

// maxChanges bounds the list of changes to a readable length.
const maxChanges = 20

// String returns the usual spelling of a UUID.
func (u uuid) String() string {
	s := hex.EncodeToString(u[:])
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}

// change notes a value that was replaced or left out because the broker fails on it.
func (t *translation) change(kind, key, format string, values ...any) {
	t.Undeliverable = true
	t.note(kind, key, format, values...)
}

// note notes a value that was replaced or left out.
func (t *translation) note(kind, key, format string, values ...any) {
	change := fmt.Sprintf("%s %.255q: ", kind, key) + fmt.Sprintf(format, values...)
	if len(t.Changes) < maxChanges && !slices.Contains(t.Changes, change) {
		t.Changes = append(t.Changes, change)
	}
}

func (t *translation) set(kind, key string, value any) {
	t.Delivery.Headers[key] = t.value(kind, key, value, 0)
}

// value translates a header's value. The kind and the key name the header.
func (t *translation) value(kind, key string, value any, depth int) any {
	switch v := value.(type) {
	case nil, bool, int8, uint8, int16, uint16, int32, uint32, int64, string, []byte:
		return v
	case float32, float64:
		if isOdd(v) { // no broker accepts these from a client of AMQP 0-9-1
			t.change(kind, key, "%v, written as text", v)
			return fmt.Sprint(v)
		}
		return v
	case uint64:
		return int64(v) //nolint:gosec // the broker does the same
	case symbol:
		return string(v)
	case time.Time:
		return seconds(v)
	case uuid:
		t.change(kind, key, "a UUID, written as text")
		return v.String()
	case char:
		t.change(kind, key, "a char, written as text")
		return string(rune(v)) //nolint:gosec // an invalid character becomes U+FFFD
	case decimal:
		t.change(kind, key, "a decimal number, its bytes written as text")
		return hex.EncodeToString(v)
	case described:
		t.change(kind, key, "a described value, its descriptor left out")
		return t.value(kind, key, v.value, depth)
	case array:
		if depth > 0 {
			t.change(kind, key, "an array in another value, written as a list")
		}
		return t.list(kind, key, list(v), depth)
	case list:
		return t.list(kind, key, v, depth)
	case dict:
		return t.table(kind, key, v, depth)
	}
	t.change(kind, key, "nested too deep, cut off")
	return nil
}

func (t *translation) list(kind, key string, values list, depth int) any {
	translated := make([]any, len(values))
	for i, v := range values {
		translated[i] = t.value(kind, key, v, depth+1)
	}
	if t.cut(kind, key, depth) {
		return nil
	}
	return translated
}

func (t *translation) table(kind, key string, entries dict, depth int) any {
	table := amqp.Table{}
	for _, e := range entries {
		k, ok := t.key(kind, key, e.key)
		if v := t.value(kind, key, e.value, depth+1); ok {
			table[k] = v
		}
	}
	if t.cut(kind, key, depth) {
		return nil
	}
	return table
}

// cut reports whether tables and lists nest too deep for the client. The broker itself can deliver them.
func (t *translation) cut(kind, key string, depth int) bool {
	if depth > maxTable {
		t.note(kind, key, "nested deeper than %d levels, cut off", maxTable+1)
	}
	return depth > maxTable
}

func (t *translation) key(kind, name string, key any) (string, bool) {
	switch k := key.(type) {
	case []byte:
		return string(k), len(k) <= maxShortString
	case uuid:
		return k.String(), true
	case list:
		return "", false // the broker takes it for text
	}
	k := text(key)
	if !isText(key) {
		t.change(kind, name, "a key that is not text, written as text")
	}
	if len(k) > maxShortString {
		t.change(kind, name, "a key of %d bytes, left out", len(k))
	}
	return k, len(k) <= maxShortString
}

func isText(value any) bool {
	switch value.(type) {
	case string, symbol:
		return true
	}
	return false
}

// isOdd reports whether a value is NaN or infinite.
func isOdd(value any) bool {
	n, _ := value.(float64)
	if f, ok := value.(float32); ok {
		n = float64(f)
	}
	return math.IsNaN(n) || math.IsInf(n, 0)
}

// text writes a simple value as text. It returns "" for other values and for nil.
func text(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case symbol:
		return string(v)
	case bool, int8, uint8, int16, uint16, int32, uint32, int64, uint64:
		return fmt.Sprint(v)
	}
	return ""
}

// seconds truncates a time to whole seconds, the precision of AMQP 0-9-1.
func seconds(at time.Time) time.Time { return at.Truncate(time.Second) }
