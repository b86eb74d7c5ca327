package delaying_test

import (
	"maps"
	"math"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delaying"
)

func newExchange(t testing.TB, maxDelay, precision string) *delaying.Exchange {
	t.Helper()
	return delaying.NewExchange(delayed.Worker{
		Version: delayed.WorkerVersion, Name: "events", Vhost: "/", MaxDelay: maxDelay, Precision: precision,
	})
}

var stamp = deadletter.Stamp{Now: time.UnixMilli(1_700_000_000_000), PublishID: "id", FrameMax: 131_072}

func TestDelayIsReadAsThePluginReadsIt(t *testing.T) {
	t.Parallel()
	e := newExchange(t, "1h", "1s")
	const atOnce, tooLong = 0, -1
	for name, test := range map[string]struct {
		value any
		want  time.Duration
	}{
		"int8":             {int8(100), 100},
		"uint8":            {uint8(200), 200},
		"int16":            {int16(1500), 1500},
		"uint16":           {uint16(40_000), 40_000},
		"int32":            {int32(1500), 1500},
		"uint32":           {uint32(1500), 1500},
		"int64":            {int64(1500), 1500},
		"text":             {"1500", 1500},
		"text with a sign": {"+1500", 1500},
		"float":            {float32(1500.9), 1500},
		"double":           {1500.9, 1500},
		"the longest":      {int64(3_600_000), 3_600_000},
		"zero":             {int64(0), atOnce},
		"negative":         {int32(-5), atOnce},
		"negative text":    {"-5", atOnce},
		"below one":        {0.9, atOnce},
		"very negative":    {"-99999999999999999999", atOnce},
		"absent":           {nil, atOnce},
		"words":            {"soon", atOnce},
		"text of a float":  {"1500.5", atOnce},
		"bool":             {true, atOnce},
		"bytes":            {[]byte("1500"), atOnce},
		"time":             {time.UnixMilli(1500), atOnce},
		"list":             {[]any{int32(5)}, atOnce},
		"no number":        {math.NaN(), atOnce},
		"decimal":          {amqp.Decimal{Scale: 1, Value: 15_000}, atOnce},
		"too long":         {int64(3_600_001), tooLong},
		"too long a text":  {"99999999999999999999", tooLong},
		"the largest":      {int64(math.MaxInt64), tooLong},
		"infinite":         {math.Inf(1), tooLong},
	} {
		d := &amqp.Delivery{RoutingKey: "key", Headers: amqp.Table{"x-delay": test.value}}
		v := e.Decide(d)
		m, err := e.Publishing(v, d, stamp)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		switch test.want {
		case atOnce:
			if v.Action != delaying.Deliver || e.Route(v).Exchange != "events.deliver" || name != "no number" && !same(m.Headers["x-delay"], test.value) {
				t.Errorf("%s: %+v, %v", name, v, m.Headers)
			}
		case tooLong:
			if v.Action != delaying.Refuse || e.Route(v).Exchange != "events.delay.unrouted" || m.Headers["dead-letter-reason"] != "delay_too_long" ||
				m.Headers["dead-letter-at"] != int64(1_700_000_000_000) || m.Headers["x-delay"] != test.value {
				t.Errorf("%s: %+v, %v", name, v, m.Headers)
			}
		default:
			ms := test.want.Nanoseconds()
			if v.Action != delaying.Delay || v.Delay.Milliseconds() != ms || m.Headers["x-delay"] != int32(-ms) {
				t.Errorf("%s: %+v, %v", name, v, m.Headers)
			}
		}
	}
}

func same(a, b any) bool {
	switch b.(type) {
	case []byte, []any:
		return a != nil
	}
	return a == b
}

// For every level on its way, the message says whether it waits there. The publisher's values are overwritten.
func TestLevelsAreTheWorkersWord(t *testing.T) {
	t.Parallel()
	e := newExchange(t, "1h", "100ms")
	d := &amqp.Delivery{RoutingKey: "key", Headers: amqp.Table{
		"x-delay": int32(450), "delay-0": "true", "delay-1": int32(1), "delay-2": false, "delay-7": true, "delay-01": true, "delay-99999999999999999999": true,
		"delay-x": "kept", "delay-": "kept", "delay--1": "kept", "Delay-1": "kept", "retry-user-id": "kept",
		"delay-user-id": "forged", "delay-expiration": "1", "delay-priority": int64(1), "delay-reply-to": "forged", "delay-due-at": int64(1),
	}}
	v := e.Decide(d)
	m, err := e.Publishing(v, d, stamp)
	want := amqp.Table{
		"x-delay": int32(-450), "delay-0": true, "delay-1": false, "delay-2": true, "delay-publish-id": "id",
		"delay-due-at": int64(1_700_000_000_500), // rounded up to the precision
		"delay-x":      "kept", "delay-": "kept", "delay--1": "kept", "Delay-1": "kept", "retry-user-id": "kept", "delay-delivery-mode": int64(0),
	}
	if err != nil || !maps.Equal(m.Headers, want) {
		t.Errorf("headers %v, want %v; error %v", m.Headers, want, err)
	}
	if r := e.Route(v); r.Exchange != "events.delay.100ms.2" || r.Key != "key" {
		t.Errorf("route %+v", r)
	}
}

func TestPropertiesAreKept(t *testing.T) {
	t.Parallel()
	e := newExchange(t, "1h", "100ms")
	d := &amqp.Delivery{
		Headers: amqp.Table{
			"x-delay": int32(100), "x-death": []any{amqp.Table{"queue": "events.delay.100ms.0"}}, "x-first-death-queue": "q", "x-last-death-reason": "expired",
			"x-delivery-count": int64(3), "CC": []any{"other"}, "BCC": []any{"secret"}, "mine": "kept", "dead-letter-reason": "kept",
		},
		ContentType: "text/plain", ContentEncoding: "gzip", DeliveryMode: amqp.Transient, Priority: 7, CorrelationId: "c", ReplyTo: "r", Expiration: "5",
		MessageId: "m", Timestamp: time.Unix(5, 0), Type: "t", UserId: "u", AppId: "a", Body: []byte("body"),
	}
	m, err := e.Publishing(e.Decide(d), d, stamp)
	require.NoError(t, err)
	for key, want := range map[string]any{
		"mine": "kept", "dead-letter-reason": "kept", "delay-expiration": "5", "delay-priority": int64(7), "delay-user-id": "u", "delay-delivery-mode": int64(1),
	} {
		if m.Headers[key] != want {
			t.Errorf("%s is %v, want %v", key, m.Headers[key], want)
		}
	}
	for _, key := range []string{"x-death", "x-first-death-queue", "x-last-death-reason", "x-delivery-count"} {
		require.NotContains(t, m.Headers, key)
	}
	if m.Headers["CC"] == nil || m.Headers["BCC"] == nil {
		t.Errorf("other keys are lost: %v", m.Headers)
	}
	m.Headers, m.Body = nil, nil
	want := amqp.Publishing{
		ContentType: "text/plain", ContentEncoding: "gzip", DeliveryMode: amqp.Persistent, CorrelationId: "c", ReplyTo: "r",
		MessageId: "m", Timestamp: time.Unix(5, 0), Type: "t", AppId: "a",
	}
	require.Equal(t, want, m)
}

// The headers leave room for the broker's additions in each level. A longer way, longer names and more keys need more
// room.
func TestHeadersLeaveRoomForTheWay(t *testing.T) {
	t.Parallel()
	e := newExchange(t, "87600h", "1ms")
	fits := func(delay int64, key string, cc int, size int) bool {
		more := make([]any, cc)
		for i := range more {
			more[i] = key
		}
		d := &amqp.Delivery{RoutingKey: key, Headers: amqp.Table{"x-delay": delay, "CC": more, "large": strings.Repeat("x", size)}}
		_, err := e.Publishing(e.Decide(d), d, stamp)
		return err == nil
	}
	room := func(delay int64, key string, cc int) int {
		for size := stamp.FrameMax; ; size -= 16 {
			if fits(delay, key, cc, size) {
				return stamp.FrameMax - size
			}
		}
	}
	const oneLevel, allLevels = 1 << 30, 1<<38 - 1
	long := strings.Repeat("k", 255)
	one, all, longKey, many := room(oneLevel, "k", 0), room(allLevels, "k", 0), room(allLevels, long, 0), room(allLevels, long, 3)
	if all-one < 37*118 || longKey-all < 38*250 || many-longKey < 3*38*250 {
		t.Errorf("room for %d, %d, %d, %d bytes", one, all, longKey, many)
	}
}

func TestWhatCannotBeBuiltIsRefusedOnce(t *testing.T) {
	t.Parallel()
	e := newExchange(t, "1h", "1s")
	d := &amqp.Delivery{RoutingKey: "key", Headers: amqp.Table{"x-delay": int32(5)}}
	next, ok := e.Decide(d).Unbuilt()
	if !ok || next.Action != delaying.Refuse || next.Reason != "worker_error" || e.Route(next).Key != "key" {
		t.Errorf("%+v, %t", next, ok)
	}
	_, ok = next.Unbuilt()
	require.False(t, ok, "it is tried for ever")
	_, ok = delaying.Unjudged(d).Unbuilt()
	require.False(t, ok, "a message that was not judged either is tried for ever")
}

// With any headers, a message waits at least for its delay, and no other header of the levels is left.
func FuzzDecide(f *testing.F) {
	f.Add(int64(1500), "delay-3", "x")
	f.Add(int64(-1), "x-death", "delay-0")
	f.Add(int64(math.MaxInt64), "CC", "BCC")
	e := newExchange(f, "87600h", "7ms")
	f.Fuzz(func(t *testing.T, delay int64, first, second string) {
		d := &amqp.Delivery{Headers: amqp.Table{first: "a", second: true, "x-delay": delay}}
		v := e.Decide(d)
		m, err := e.Publishing(v, d, stamp)
		if err != nil {
			return
		}
		var waits, passes int64
		for bit := range delayed.MostLevels {
			switch here, found := m.Headers[delayed.BitKey(bit)]; {
			case here == true:
				waits += 7 << bit
			case found && here != false:
				t.Errorf("%v", m.Headers)
			case found:
				passes++
			}
		}
		if v.Action == delaying.Delay && (waits < delay || waits-delay >= 7) || v.Action != delaying.Delay && waits+passes > 0 {
			t.Errorf("%d: waits %d, %+v", delay, waits, v)
		}
	})
}
