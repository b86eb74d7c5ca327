package deadletter

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
)

// hostile are values that no header of ours has, but any client can send.
func hostile() []any {
	long := strings.Repeat("x", 300)
	return []any{
		nil, true, int8(-1), byte(255), int16(math.MinInt16), uint32(math.MaxUint32), int64(math.MaxInt64), int64(math.MinInt64),
		float32(math.Inf(1)), math.NaN(),
		amqp.Decimal{Scale: 255, Value: -1},
		time.Time{},
		"", "orders", "orders.created", "orders.inbox",
		"orders.retry.5s", long, "\x00\xff", []byte("orders.created"), []any(nil),
		[]any{nil, []any{}},
		amqp.Table(nil),
		amqp.Table{"queue": "orders.created", "reason": int64(1)},
		[]any{amqp.Table{"queue": 1}},
		[]any{amqp.Table{"queue": "orders.created", "reason": "rejected", "routing-keys": []any{long}}},
		[]any{amqp.Table{"queue": long, "reason": long, "exchange": long}},
		[]any{amqp.Table{"queue": "orders.paid", "reason": "rejected", "exchange": nil, "routing-keys": "delay:5s"}},
		`[{"attempt":1e99}]`, `[null]`, "never",
	}
}

// Whatever a message's headers hold, it is published to one of the pipeline's exchanges or to a queue
// that is none of its own, with keys that AMQP can carry, or left to the broker.
func TestHostileHeaders(t *testing.T) {
	t.Parallel()
	keys := []string{
		headerDeath, HeaderCount, HeaderPipeline, HeaderQueue, HeaderExchange, HeaderRoutingKey, HeaderPublishID, HeaderReason,
		HeaderFirstFailedAt, HeaderHistory, HeaderUserID, HeaderDeliveryMode, HeaderHint, HeaderAfter, HeaderDeadLetterReason,
		HeaderDeadLetterError, HeaderDeadLetterException, HeaderCC,
	}
	values := hostile()
	random := rand.New(rand.NewPCG(1, 2))
	p := orders(t)
	for range 50_000 {
		headers := amqp.Table{}
		for _, key := range keys {
			if random.IntN(2) == 0 {
				headers[key] = values[random.IntN(len(values))]
			}
		}
		exchange := []string{"orders.dlx", "orders.return", "", "other"}[random.IntN(4)]
		d := &amqp.Delivery{Exchange: exchange, RoutingKey: "key", Headers: headers}
		v := judge(p, d)
		for ok := true; ok; v, ok = p.Returned(v) {
			checkPublish(t, p, v, d, stamp)
			if next, ok := p.Nacked(v); ok {
				checkPublish(t, p, next, d, stamp)
			}
		}
	}
}

func checkPublish(t *testing.T, p *Pipeline, v Verdict, d *amqp.Delivery, s Stamp) {
	t.Helper()
	m, err := p.Publishing(v, d, s)
	require.NoErrorf(t, err, "%v", d.Headers)
	if err := m.Headers.Validate(); err != nil {
		t.Fatalf("%v: %v", d.Headers, err)
	}
	route := p.Route(v)
	switch {
	case len(route.Key) > maxShortString:
		t.Fatalf("%v: key %q", d.Headers, route.Key)
	case route.Exchange == "" && (route.Key == "" || p.Names.OwnsQueue(route.Key)):
		t.Fatalf("%v: published to the queue %q", d.Headers, route.Key)
	case v.Letter.Count < 0:
		t.Fatalf("%v: count %d", d.Headers, v.Letter.Count)
	}
}
