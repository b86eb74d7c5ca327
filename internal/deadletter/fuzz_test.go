package deadletter

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// seed adds what is nearly right, so that the fuzzer need not find it first.
func seed(f *testing.F) {
	f.Helper()
	for i := range names {
		f.Add([]byte{0, 1, 0, 2, 3, 2, byte(i), 17, 2, 1, byte(i), 9, 0, 0, 0, 0, 0, 0, 0, 3, 3, 2, 17, 1})
		f.Add([]byte{1, 2, 1, 1, 4, 0, 2, 17, 1, 0, 3, 17, 2, 0, 1, 9, 0, 0, 0, 0, 0, 0, 0, 2, 0, byte(i), 17, byte(i)})
	}
	// x-death: one table with queue, reason, exchange and routing keys.
	f.Add([]byte{0, 1, 0, 2, 1, 0, 0, 15, 1, 16, 4, 0, 23, 17, 2, 0, 24, 17, 7, 0, 25, 17, 13, 0, 26, 15, 1, 17, 11})
}

// Of x-death only the newest entry counts, and of that only what AMQP can address.
func FuzzDeath(f *testing.F) {
	seed(f)
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
			if more := newestDeath(amqp.Table{headerDeath: append(slices.Clone(deaths), s.value(2))}); more != last {
				t.Errorf("an older entry makes %+v of %+v", more, last)
			}
		}
		if other := newestDeath(amqp.Table{headerDeath: s.value(3)}); len(other.queue) > maxShortString {
			t.Errorf("%+v", other)
		}
	})
}

// Whatever the headers hold, what is published can be, is within the budget, and reads back as what
// it was written for.
func FuzzHeaders(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		p, d := compile(t, topology.Worker{MaxAge: "720h"}), (&source{data}).delivery()
		before := len(d.Headers)
		letter := p.Read(d)
		if !reflect.DeepEqual(letter, p.Read(d)) {
			t.Fatal("read twice, it is two letters")
		}
		least := int64(1)
		if letter.Lost {
			least = 0
		}
		if letter.Count < least {
			t.Fatalf("count %d", letter.Count)
		}
		small, unlimited := stamp, stamp
		small.FrameMax, unlimited.FrameMax = 8192, 0
		for v, ok := p.Decide(letter, now), true; ok; v, ok = p.Returned(v) {
			checkPublish(t, p, v, d, unlimited)
			m, err := p.Publishing(v, d, small)
			if err == nil && headerFrameSize(m) > p.frameBudget(v, p.Route(v), small.FrameMax) || err != nil && !errors.Is(err, ErrNotRepublishable) {
				t.Fatalf("%d bytes, %v", headerFrameSize(m), err)
			}
			if err == nil && v.Action == Retry && !letter.Lost {
				checkReadsBack(t, p, v, m)
			}
		}
		if len(d.Headers) != before {
			t.Error("the delivery was changed")
		}
	})
}

// checkReadsBack has the work queue reject the message once more.
func checkReadsBack(t *testing.T, p *Pipeline, v Verdict, m amqp.Publishing) {
	t.Helper()
	headers := maps.Clone(m.Headers)
	headers[headerDeath] = []any{deathIn(v.Letter.Queue, "rejected")}
	got := p.Read(&amqp.Delivery{Exchange: "orders.dlx", RoutingKey: "key", Headers: headers})
	want := v.Letter
	want.Count, want.FirstFailedAt = max(want.Count, want.Count+1), headers[HeaderFirstFailedAt].(int64)
	if got.Count != want.Count || got.Queue != want.Queue || got.Exchange != want.Exchange || got.RoutingKey != want.RoutingKey ||
		got.FirstFailedAt != want.FirstFailedAt || v.Letter.FirstFailedAt != 0 && got.FirstFailedAt != v.Letter.FirstFailedAt {
		t.Fatalf("wrote %+v\nread %+v", want, got)
	}
	if got.Never || got.After >= 0 {
		t.Fatalf("what the consumer asked for is obeyed twice: %+v", got)
	}
	text, _ := headers[HeaderHistory].(string)
	if text != "" && (encodeHistory(parseHistory(text), maxHistory) != text || got.History[0].Attempt != v.Letter.Count) {
		t.Fatalf("history %s", text)
	}
}

// A decision is one of those that there are, with a target that exists, and there are only so many.
func FuzzDecide(f *testing.F) {
	f.Add("orders.created", "rejected", int64(1), int64(0), int64(-1), uint8(0), uint8(0))
	f.Add("", "rejected", int64(1), int64(0), int64(-1), uint8(0), uint8(0))
	f.Add("orders.paid", "expired", int64(3), int64(1_699_999_000_000), int64(20_000), uint8(4), uint8(2))
	f.Add("new", "bored", int64(3), int64(1_700_000_000_123), int64(1)<<62, uint8(8), uint8(1))
	f.Fuzz(func(t *testing.T, queue, reason string, count, firstFailedAt, after int64, pipeline, hints uint8) {
		p := compile(t, pipelines[int(pipeline)%len(pipelines)])
		l := Letter{
			Queue: queue, Reason: reason, Count: max(1, count), FirstFailedAt: max(0, firstFailedAt), After: time.Duration(after),
			Lost: hints&1 > 0, Never: hints&2 > 0,
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
		}
		if v.Action != Fail {
			t.Fatalf("it ends with %+v", v)
		}
	})
}

var pipelines = []topology.Worker{
	{},
	{Delays: []string{"0s"}},
	{Delays: []string{"30s", "5s", "1m", "0s", "30s"}, RetryOn: topology.Reasons()},
	{MaxAge: "1ms"},
	{MaxAge: "10s", RetryOn: topology.Reasons()},
	{MaxAge: "2562047h", WorkQueues: map[string]topology.WorkerQueue{"orders.created": {MaxAttempts: 1}, "orders.paid": {MaxAttempts: 2147483647}}},
}

func checkDecision(t *testing.T, p *Pipeline, v Verdict) {
	t.Helper()
	l := v.Letter
	reasons := append(topology.Reasons(), ReasonExhausted, ReasonTooOld, ReasonUnrecoverable, ReasonUnknownQueue, ReasonMalformed)
	wrong := false
	switch v.Action {
	case Fail:
		wrong = !slices.Contains(reasons, v.Reason)
	case Rescue:
		wrong = !l.Lost || l.Queue == ""
	case Retry:
		late := p.maxAge > 0 && l.FirstFailedAt > 0 && now.Add(v.Delay).Sub(time.UnixMilli(l.FirstFailedAt)) > p.maxAge
		wrong = l.Lost || l.Never || l.Queue == "" || l.Count >= p.maxAttemptsIn(l.Queue) || late ||
			!slices.Contains(p.retryOn, l.Reason) || !slices.Contains(p.delays, v.Delay)
	}
	if wrong {
		t.Fatalf("%+v", v)
	}
}

// checkTarget looks where a message would go.
func checkTarget(t *testing.T, p *Pipeline, v Verdict) {
	t.Helper()
	back := topology.ReturnKey(v.Letter.Queue)
	want := map[Action]Route{
		Fail:   {Exchange: p.Names.FailedExchange(), Key: v.Letter.RoutingKey},
		Rescue: {Key: v.Letter.Queue},
		Retry:  {Exchange: p.Names.RetryExchange(), Key: v.Letter.RoutingKey, CC: []string{topology.DelayKey(v.Delay), back}},
	}[v.Action]
	if v.Action == Retry && v.Delay == 0 {
		want.Exchange, want.CC = p.Names.ReturnExchange(), []string{back}
	}
	if route := p.Route(v); !reflect.DeepEqual(route, want) || v.Action != Fail && v.Letter.Queue == "" {
		t.Fatalf("%+v goes to %+v, want %+v", v, route, want)
	}
}
