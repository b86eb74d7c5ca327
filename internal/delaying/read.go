package delaying

import (
	"errors"
	"math"
	"strconv"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
)

// HeaderDelay is how many milliseconds a message waits. Once it has waited, the number is negative.
const HeaderDelay = "x-delay"

// readDelay reads what the plugin for delayed messages reads: integers of every width, also as text, and floating-point
// numbers without what follows the point. A number beyond an int64 is the largest or the smallest one.
func readDelay(h amqp.Table) (ms int64, ok bool) {
	switch value := h[HeaderDelay].(type) {
	case string:
		n, err := strconv.ParseInt(value, 10, 64)
		return n, err == nil || errors.Is(err, strconv.ErrRange)
	case float32:
		return truncated(float64(value))
	case float64:
		return truncated(value)
	default:
		return deadletter.Integer(value)
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
