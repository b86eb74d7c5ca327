package deadletter

import (
	"errors"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// maxShortString is the longest name or routing key that AMQP 0-9-1 can carry, in bytes.
const maxShortString = 255

// longestWait is 146 years, half of the longest duration, which leaves room for another wait.
const longestWait = time.Duration(math.MaxInt64 / 2)

// asText reads a text. Some clients send texts back as bytes.
func asText(value any) string {
	switch value := value.(type) {
	case string:
		return value
	case []byte:
		return string(value)
	}
	return ""
}

// shortString reads a name or a routing key.
func shortString(value any) (string, bool) {
	switch value.(type) {
	case string, []byte:
		if s := asText(value); len(s) <= maxShortString {
			return s, true
		}
	}
	return "", false
}

// queueName returns "" if the value cannot be the name of a queue.
func queueName(value any) string {
	name, _ := shortString(value)
	return name
}

// isNever reports whether the value is [HintNever] in any case.
func isNever(value any) bool { return strings.EqualFold(asText(value), HintNever) }

// whole reads a number without a fraction, of any type that clients send it back in. A number beyond an int64 becomes
// the largest or the smallest int64.
func whole(value any) (int64, bool) {
	if n, ok := integer(value); ok {
		return n, true
	}
	f, ok := number(value)
	n, isNumber := truncated(f)
	return n, ok && isNumber && f == math.Trunc(f)
}

// number reads a number of any type that clients send it back in: integers of every width, floating-point and decimal
// numbers, and texts and bytes with one of these.
func number(value any) (float64, bool) {
	switch value := value.(type) {
	case string, []byte:
		f, err := strconv.ParseFloat(asText(value), 64)
		return f, err == nil || errors.Is(err, strconv.ErrRange)
	case float32:
		return float64(value), true
	case float64:
		return value, true
	case amqp.Decimal:
		return float64(value.Value) / math.Pow10(int(value.Scale)), true
	}
	n, ok := integer(value)
	return float64(n), ok
}

// readWait reads how long a consumer asks to wait, in this unit. It is -1 if the value cannot be read.
func readWait(value any, unit time.Duration) (time.Duration, bool) {
	f, ok := number(value)
	if !ok || math.IsNaN(f) || f < 0 {
		return -1, false
	}
	return time.Duration(math.Ceil(min(f*float64(unit), float64(longestWait)))), true
}

// httpDate reads a date in the formats of RFC 9110, which HTTP's Retry-After has.
func httpDate(value any) (time.Time, bool) {
	for _, format := range []string{"Mon, 02 Jan 2006 15:04:05 GMT", time.RFC850, time.ANSIC} {
		if at, err := time.Parse(format, asText(value)); err == nil {
			return at, true
		}
	}
	return time.Time{}, false
}

// Milliseconds reads every type that the plugin for delayed messages reads: integers of every width, also as text, and
// floating-point numbers, truncated. A number beyond an int64 becomes the largest or the smallest int64.
func Milliseconds(value any) (ms int64, ok bool) {
	switch value := value.(type) {
	case string:
		n, err := strconv.ParseInt(value, 10, 64)
		return n, err == nil || errors.Is(err, strconv.ErrRange)
	case float32:
		return truncated(float64(value))
	case float64:
		return truncated(value)
	default:
		return integer(value)
	}
}

func truncated(f float64) (int64, bool) {
	switch {
	case math.IsNaN(f):
		return 0, false
	case f >= math.MaxInt64:
		return math.MaxInt64, true
	case f <= math.MinInt64:
		return math.MinInt64, true
	}
	return int64(f), true
}

// integer reads any of AMQP's integer types, since clients in other languages choose the smallest one.
func integer(value any) (int64, bool) {
	switch n := reflect.ValueOf(value); {
	case n.CanInt():
		return n.Int(), true
	case n.CanUint():
		return int64(n.Uint()), true //nolint:gosec // AMQP 0-9-1 has none of 64 bits
	}
	return 0, false
}
