package deadletter

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
)

// anyType makes a value of each AMQP type in turn, often a small number, sometimes one of our words.
func anyType(r *rand.Rand, kind int) any {
	n := int64(r.IntN(12) - 2)
	if r.IntN(4) == 0 {
		n = r.Int64() - r.Int64()
	}
	spelled := []string{
		strconv.FormatInt(n, 10), strconv.FormatFloat(float64(n)/2, 'g', -1, 64), words[r.IntN(len(words))], strconv.Quote(strconv.FormatInt(n, 10)),
		"NaN", "1e400", "0x10", "-0", " 1", "true", "Never", time.Unix(n, 0).UTC().Format(time.RFC1123),
	}[r.IntN(12)]
	return []any{
		nil, n%2 == 0, int8(n), uint8(n), int16(n), uint16(n), int32(n), uint32(n), n, float32(n) / 2, float64(n) / 2,
		[]float64{math.NaN(), math.Inf(1), math.Inf(-1), -0.5}[r.IntN(4)],
		amqp.Decimal{Scale: uint8(r.IntN(4)), Value: int32(n)},
		spelled, []byte(spelled), time.Unix(n, 0),
		[]any{n, spelled},
		amqp.Table{spelled[:min(len(spelled), 9)]: n},
	}[kind%18]
}

// Clients give headers back in other types. A message then gets no further attempts, unless its consumer sends a valid
// lower count, and it is never lost.
func TestAttemptsCountInAnyType(t *testing.T) {
	t.Parallel()
	const queue, values = "orders.created", 10_000 / 3
	p := compile(t, pipeline.Worker{MaxAge: "24h"})
	for name, publish := range map[string]func(amqp.Table) *amqp.Delivery{
		"to the dead-letter exchange": byConsumer,
		"to the return exchange":      answer,
		"to the work queue":           func(h amqp.Table) *amqp.Delivery { return rejected(queue, h) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for i, header := range []string{
				HeaderCount, HeaderMaxAttempts, HeaderPipeline, HeaderQueue, HeaderExchange, HeaderRoutingKey, HeaderPublishID, HeaderReason,
				HeaderFirstFailedAt, HeaderLastFailedAt, HeaderDelay, HeaderDueAt, HeaderHistory, HeaderUserID, HeaderReplyTo, HeaderDeliveryMode,
				HeaderHint, HeaderAfter, HeaderRetryAfter, HeaderDeadLetterReason, HeaderDeadLetterAt, HeaderDetour, HeaderDeadLetterError,
				HeaderDeadLetterException,
			} {
				if name == "to the return exchange" && (header == HeaderDueAt || header == HeaderDeadLetterReason) {
					continue // they say that no consumer had the message, and no consumer sees them
				}
				r := rand.New(rand.NewPCG(1, uint64(i)))
				for i := 0; i < values; {
					i += attempts(t, p, publish, header, func() any { return anyType(r, i) })
				}
			}
		})
	}
}

// attempts lets a message fail until it is parked, each time with another value in the header. It returns how many
// values that took.
func attempts(t *testing.T, p *Pipeline, publish func(amqp.Table) *amqp.Delivery, header string, value func() any) int {
	t.Helper()
	const queue = "orders.created"
	restarts, sent := false, []any{}
	d := rejected(queue, nil)
	for attempt := 1; ; attempt++ {
		v := judge(p, d)
		m, err := p.Publishing(v, d, stamp)
		require.NoErrorf(t, err, "%s %v", header, sent)
		if v.Action != Retry {
			require.Equal(t, Fail, v.Action, sent)
			return max(1, len(sent))
		}
		if attempt >= 4 && !restarts {
			t.Fatalf("%s %#v: attempt %d, then %+v", header, sent, attempt, v)
		}
		if attempt > 30 {
			return len(sent)
		}
		headers := without(without(m.Headers, HeaderCC), HeaderDueAt) // no consumer copies the one, or sees the other
		headers[header] = value()
		sent = append(sent, headers[header])
		restarts = restarts || saysOtherwise(header, headers[header], int64(attempt))
		d = publish(headers)
	}
}

// saysOtherwise reports whether the header has a valid value that lets the message begin again: a lower count, an
// earlier count of the history, or another queue.
func saysOtherwise(header string, value any, attempt int64) bool {
	switch header {
	case HeaderCount:
		n, ok := whole(value)
		return ok && n >= 0 && n < attempt
	case HeaderQueue:
		name, ok := shortString(value)
		return ok && name != "orders.created"
	}
	return false
}
