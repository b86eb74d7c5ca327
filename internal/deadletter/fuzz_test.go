package deadletter

import (
	"encoding/binary"
	"errors"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
)

// seed adds deliveries that are nearly right, so that the fuzzer need not find them first. [source.delivery] describes
// their encoding.
func seed(f *testing.F, more ...any) {
	f.Helper()
	add := func(data ...byte) { f.Add(append([]any{data}, more...)...) }
	for i := range names {
		for _, value := range [][]byte{{17, byte(i)}, {2, 5}, {2, 0xfb}, {9, 127, 255, 255, 255, 255, 255, 255, 255}} {
			for exchange := range byte(2) {
				add(slices.Concat([]byte{exchange, 1, 0, 2, 3, 0, 3, 17, 2, 0, 2, 17, 1, 0, byte(i)}, value)...)
			}
		}
	}
	// x-death: one table with queue, reason, exchange and routing keys.
	add(0, 1, 0, 2, 1, 0, 0, 15, 1, 16, 4, 0, 23, 17, 2, 0, 24, 17, 7, 0, 25, 17, 13, 0, 26, 15, 1, 17, 11)
	// A consumer that gives every hint.
	add(0, 1, 0, 2, 5, 0, 3, 17, 2, 0, 2, 17, 1, 0, 8, 17, 17, 0, 18, 17, 16, 0, 19, 17, 15)
}

// Only the newest entry of x-death counts, and only names that AMQP can address.
func FuzzDeath(f *testing.F) {
	for i := range words {
		word := byte(i)
		f.Add([]byte{1, 16, 4, 0, 23, 17, word, 0, 24, 17, word, 0, 25, 17, word, 0, 26, 15, 1, 17, word})
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s := &source{data}
		deaths := s.list(3)
		headers := amqp.Table{headerDeath: deaths}
		last := newestDeath(headers)
		for _, text := range []string{last.queue, last.reason, last.exchange, last.key} {
			if len(text) > maxShortString {
				t.Errorf("%d bytes of %q", len(text), text)
			}
		}
		p := orders(t)
		if p.isDeath(last, headers) && (last.queue == "" || p.Names.OwnsQueue(last.queue)) {
			t.Errorf("%q cannot be a work queue", last.queue)
		}
		if len(deaths) > 0 {
			require.Equal(t, last, newestDeath(amqp.Table{headerDeath: append(slices.Clone(deaths), s.value(2))}))
		}
		if other := newestDeath(amqp.Table{headerDeath: s.value(3)}); len(other.queue) > maxShortString {
			t.Errorf("%+v", other)
		}
	})
}

// With any headers, the published message can be encoded and is within the budget. Reading it returns the written
// values.
func FuzzHeaders(f *testing.F) {
	for _, tooMuch := range []uint16{0, 300, 6000} {
		seed(f, tooMuch)
	}
	f.Fuzz(func(t *testing.T, data []byte, tooMuch uint16) {
		p, d := compile(t, pipeline.Worker{MaxAge: "720h"}), (&source{data}).delivery()
		before := len(d.Headers)
		letter := p.Read(d)
		require.Equal(t, letter, p.Read(d), "read twice, it is two letters")
		least := int64(1)
		if letter.Lost {
			least = 0
		}
		if letter.Count < least {
			t.Fatalf("count %d", letter.Count)
		}
		unlimited := stamp
		unlimited.FrameMax = 0
		for v, ok := p.Decide(letter, now), true; ok; v, ok = p.Returned(v) {
			checkPublish(t, p, v, d, unlimited)
			m, err := publishTrimmed(t, p, v, d, int(tooMuch))
			if err == nil && v.Action == Retry && !letter.Lost {
				checkReadsBack(t, p, v, m)
			}
		}
		if len(d.Headers) != before {
			t.Error("the delivery was changed")
		}
	})
}

// publishTrimmed publishes within a frame that is this much too small. Optional parts are dropped in their order, and
// no more than needed.
func publishTrimmed(t *testing.T, p *Pipeline, v Verdict, d *amqp.Delivery, tooMuch int) (amqp.Publishing, error) {
	t.Helper()
	s := stamp
	s.FrameMax = 0
	full, err := p.Publishing(v, d, s)
	require.NoError(t, err)
	reserved := p.reserved(v, p.Route(v))
	s.FrameMax = max(1, headerFrameSize(full)+reserved-tooMuch)
	m, err := p.Publishing(v, d, s)
	if err != nil && !errors.Is(err, errNotRepublishable) {
		t.Fatal(err)
	}
	if size := headerFrameSize(m); (size > s.FrameMax-reserved) != (err != nil) {
		t.Fatalf("%d bytes where there is room for %d: %v", size, s.FrameMax-reserved, err)
	}
	dispensable := []string{HeaderHistory, HeaderDeadLetterException, HeaderDeadLetterError}
	for i, later := range dispensable[1:] {
		before := dispensable[i]
		if isCut(m, full, later) && m.Headers[before] != nil {
			t.Fatalf("%s is cut before %s is gone", later, before)
		}
	}
	if err != nil && m.Headers[HeaderDeadLetterError] != nil || tooMuch == 0 && isCut(m, full, HeaderHistory) {
		t.Fatalf("too much by %d: %v, %v", tooMuch, m.Headers, err)
	}
	return m, err
}

func isCut(m, full amqp.Publishing, key string) bool {
	if text, ok := full.Headers[key].(string); ok {
		return m.Headers[key] != text
	}
	return (m.Headers[key] == nil) != (full.Headers[key] == nil)
}

// checkReadsBack makes the work queue reject the message once more.
func checkReadsBack(t *testing.T, p *Pipeline, v Verdict, m amqp.Publishing) {
	t.Helper()
	headers := maps.Clone(m.Headers)
	headers[headerDeath] = []any{deathIn(v.Letter.Queue, "rejected")}
	got := p.Read(&amqp.Delivery{Exchange: "orders.dlx", RoutingKey: "key", Headers: headers})
	want := v.Letter
	want.Count, want.FirstFailedAt = max(want.Count, want.Count+1), headers[HeaderFirstFailedAt].(int64)
	if got.Count != want.Count || got.Queue != want.Queue || got.Exchange != want.Exchange || got.RoutingKey != want.RoutingKey ||
		got.FirstFailedAt != want.FirstFailedAt || v.Letter.FirstFailedAt != 0 && got.FirstFailedAt != min(v.Letter.FirstFailedAt, stamp.Now.UnixMilli()) {
		t.Fatalf("wrote %+v\nread %+v", want, got)
	}
	if got.Never || got.After >= 0 {
		t.Fatalf("what the consumer asked for is obeyed twice: %+v", got)
	}
	text, _ := headers[HeaderHistory].(string)
	if text != "" && (encodeHistory(ParseHistory(text), maxHistory) != text || got.History[0].Attempt != v.Letter.Count) {
		t.Fatalf("history %s", text)
	}
}

// A decision is always a known one with an existing target, and a message gets a limited number of them.
func FuzzDecide(f *testing.F) {
	f.Add("orders.created", "rejected", int64(1), int64(0), int64(-1), uint8(0), uint8(0))
	f.Add("", "rejected", int64(1), int64(0), int64(-1), uint8(0), uint8(0))
	f.Add("orders.paid", "expired", int64(3), int64(1_699_999_000_000), int64(20_000), uint8(4), uint8(2))
	f.Add("orders.created", "rejected", int64(1), now.UnixMilli()-6000, int64(-1), uint8(4), uint8(0))
	f.Add("orders.paid", "rejected", int64(1), int64(0), int64(90_000_000_000), uint8(2), uint8(0))
	f.Add("orders.paid", "rejected", int64(1), int64(0), now.UnixMilli()+61_000, uint8(2), uint8(5))
	f.Add("new", "bored", int64(3), int64(1_700_000_000_123), int64(1)<<62, uint8(8), uint8(1))
	f.Fuzz(func(t *testing.T, queue, reason string, count, firstFailedAt, after int64, pipeline, hints uint8) {
		p := compile(t, pipelines[int(pipeline)%len(pipelines)])
		l := Letter{
			Queue: queue, Reason: reason, Count: max(1, count), FirstFailedAt: max(0, firstFailedAt), After: time.Duration(after),
			Lost: hints&1 > 0, Never: hints&2 > 0,
		}
		if hints&4 > 0 {
			l.DueAt = max(0, after)
		}
		v := p.Decide(l, now)
		checkDecision(t, p, v)
		tried := map[time.Duration]bool{}
		for ok := true; ok; v, ok = p.Returned(v) {
			checkTarget(t, p, v)
			if next, ok := p.Nacked(v); ok {
				checkTarget(t, p, next)
			}
			if v.Action == Retry && tried[v.Delay] {
				t.Fatalf("%s is tried twice", v.Delay)
			}
			tried[v.Delay] = true
			if v.Action == Fail && !v.ToOwnFailedQueue() {
				break
			}
		}
		require.Equal(t, Fail, v.Action, v)
	})
}

var pipelines = []pipeline.Worker{
	{},
	{Delays: []string{"0s"}},
	{Delays: []string{"30s", "5s", "1m", "0s", "30s"}, RetryOn: pipeline.Reasons()},
	{MaxAge: "1ms"},
	{MaxAge: "10s", RetryOn: pipeline.Reasons()},
	{MaxAge: "2562047h", WorkQueues: map[string]pipeline.WorkerQueue{"orders.created": {MaxAttempts: 2}, "orders.paid": {MaxAttempts: 2147483647}}},
}

func checkDecision(t *testing.T, p *Pipeline, v Verdict) {
	t.Helper()
	l := v.Letter
	reasons := append(pipeline.Reasons(), ReasonExhausted, ReasonTooOld, ReasonRetryAfterTooLong, ReasonUnrecoverable, ReasonUnknownQueue, ReasonMalformed)
	wrong := false
	switch v.Action {
	case Fail:
		wrong = !slices.Contains(reasons, v.Reason)
	case Rescue:
		wrong = !l.Lost || l.Queue == ""
	case Retry:
		if l.Lost {
			wrong = l.DueAt == 0 || l.Queue == "" || (v.Delay == 0) != (l.DueAt <= now.UnixMilli() || slices.Max(p.delays) == 0)
			break
		}
		late := p.maxAge > 0 && l.FirstFailedAt > 0 && now.Add(v.wait()).Sub(time.UnixMilli(l.FirstFailedAt)) > p.maxAge
		wrong = l.Never || l.Queue == "" || l.Count >= p.maxAttemptsIn(l.Queue) || late ||
			!slices.Contains(p.Worker.RetryOn, l.Reason) || !slices.Contains(p.delays, v.Delay)
	}
	require.False(t, wrong, v)
}

// checkTarget checks where a message would go.
func checkTarget(t *testing.T, p *Pipeline, v Verdict) {
	t.Helper()
	queue, delay := v.Letter.Queue, pipeline.DelayKey(v.Delay)
	back := pipeline.ReturnKey(queue)
	want := map[Action]Route{
		Fail:   {Exchange: p.Names.FailedRouteExchange(), Target: queue, Key: v.Letter.RoutingKey, CC: []string{pipeline.FailedKey(queue)}},
		Rescue: {Key: queue, Target: queue},
		Retry:  {Exchange: p.Names.RetryExchange(), Target: delay, Key: v.Letter.RoutingKey, CC: []string{delay, back}},
	}[v.Action]
	if v.waitsOn() {
		want.Key, want.CC = delay, nil
	}
	if v.Action == Retry && v.Delay == 0 {
		want.Exchange, want.Target, want.CC = p.Names.ReturnExchange(), queue, []string{back}
	}
	if v.Action == Fail && !v.ToOwnFailedQueue() {
		want = Route{Exchange: p.Names.FailedExchange(), Key: v.Letter.RoutingKey}
	}
	if route := p.Route(v); !reflect.DeepEqual(route, want) || v.Action != Fail && v.Letter.Queue == "" {
		t.Fatalf("%+v goes to %+v, want %+v", v, route, want)
	}
}

// source makes headers of the fuzzer's bytes. After the last byte, all values are nil.
type source struct{ data []byte }

// words are texts that have a meaning for the pipeline "orders".
var words = []string{
	"", "orders", "orders.created", "orders.paid", "orders.inbox", "orders.retry.5s", "new", "rejected", "expired", "maxlen",
	"never", "delay:5s", "return:orders.created", "bills", strings.Repeat("x", 255), strings.Repeat("y", 256), strings.Repeat("z", 5000),
	`[{"attempt":1,"at":1600000000000,"reason":"rejected","delay_ms":5000}]`, `[{"reason":"<&>"},{"at":-1}]`, "[null]",
}

// names are the headers that have a meaning.
var names = []string{
	headerDeath, HeaderCount, HeaderPipeline, HeaderQueue, HeaderExchange, HeaderRoutingKey, HeaderReason, HeaderFirstFailedAt,
	HeaderHistory, HeaderHint, HeaderAfter, HeaderPublishID, HeaderUserID, HeaderDeliveryMode, HeaderDelay, HeaderMaxAttempts,
	HeaderDeadLetterReason, HeaderDeadLetterAt, HeaderDeadLetterError, HeaderDeadLetterException, HeaderCC, headerBCC,
	"x-first-death-queue", "queue", "reason", "exchange", "routing-keys", "tenant", HeaderDueAt,
}

func (s *source) next() byte {
	if len(s.data) == 0 {
		return 0
	}
	b := s.data[0]
	s.data = s.data[1:]
	return b
}

func (s *source) number() int64 {
	var b [8]byte
	n := copy(b[:], s.data)
	s.data = s.data[n:]
	return int64(binary.BigEndian.Uint64(b[:]))
}

// text returns a word, or as many bytes as the next byte says.
func (s *source) text() string {
	b := int(s.next())
	if b < 128 {
		return words[b%len(words)]
	}
	n := min(b-128, len(s.data))
	text := string(s.data[:n])
	s.data = s.data[n:]
	return text
}

// value returns a value of any type that amqp091-go decodes.
func (s *source) value(depth int) any {
	switch s.next() % 18 {
	case 1:
		return s.next() > 127
	case 2:
		return int8(s.next())
	case 3:
		return s.next()
	case 4:
		return int16(s.number())
	case 5:
		return uint16(s.number())
	case 6:
		return int32(s.number())
	case 7:
		return uint32(s.number())
	case 8, 9:
		return s.number()
	case 10:
		return math.Float32frombits(uint32(s.number()))
	case 11:
		return math.Float64frombits(uint64(s.number()))
	case 12:
		return amqp.Decimal{Scale: s.next(), Value: int32(s.number())}
	case 13:
		return time.Unix(s.number()>>24, 0)
	case 14:
		return []byte(s.text())
	case 15:
		if depth > 0 {
			return s.list(depth - 1)
		}
	case 16:
		if depth > 0 {
			return s.table(depth - 1)
		}
	case 17:
		return s.text()
	}
	return nil
}

func (s *source) list(depth int) []any {
	list := make([]any, s.next()%4)
	for i := range list {
		list[i] = s.value(depth)
	}
	return list
}

func (s *source) table(depth int) amqp.Table {
	table := amqp.Table{}
	for range s.next() % 24 {
		key := s.text()
		if b := int(s.next()); b < 200 {
			key = names[b%len(names)]
		}
		if len(key) <= maxShortString { // the publishing client checks this, too
			table[key] = s.value(depth)
		}
	}
	return table
}

// delivery returns a delivery from the inbox.
func (s *source) delivery() *amqp.Delivery {
	d := &amqp.Delivery{
		Exchange:     []string{"orders.dlx", "orders.return", "orders.failed", ""}[s.next()%4],
		RoutingKey:   s.text(),
		UserId:       s.text(),
		DeliveryMode: s.next(),
		Headers:      s.table(3),
	}
	d.RoutingKey, d.UserId = d.RoutingKey[:min(len(d.RoutingKey), maxShortString)], d.UserId[:min(len(d.UserId), maxShortString)]
	return d
}

// hostile returns values that the worker never writes, but any client can send.
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

// With any headers, a message is published to one of the pipeline's exchanges or to a queue outside the pipeline. Its
// keys are keys that AMQP can carry. Otherwise the message is left to the broker.
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
	require.NoError(t, m.Headers.Validate(), d.Headers)
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
