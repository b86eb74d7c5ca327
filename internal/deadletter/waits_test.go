package deadletter

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
)

func TestPlanOfWaits(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		delays []string
		after  time.Duration
		waits  []string
	}{
		{[]string{"5s", "30s"}, 90 * time.Second, []string{"30s", "30s", "30s"}},
		{[]string{"5s", "30s"}, 30*time.Second + time.Millisecond, []string{"30s", "5s"}},
		{[]string{"30s", "5s", "30s"}, 58 * time.Second, []string{"30s", "5s", "5s", "5s", "5s", "5s", "5s"}},
		{[]string{"5s", "30s"}, 59 * time.Second, []string{"30s", "30s"}},
		{[]string{"1s", "2s"}, 5 * time.Second, []string{"2s", "2s", "1s"}},
		{[]string{"9500ms", "10s"}, 19*time.Second + 400*time.Millisecond, []string{"10s", "9.5s"}},
		{[]string{"9500ms", "10s"}, 19*time.Second + 500*time.Millisecond, []string{"10s", "9.5s"}},
		{[]string{"9500ms", "10s"}, 19*time.Second + 600*time.Millisecond, []string{"10s", "10s"}},
		{[]string{"10ms", "999ms", "1s", "2s"}, 4*time.Second + time.Millisecond, []string{"2s", "2s", "1s"}},
		{[]string{"0s", "100ms", "1m"}, 61 * time.Second, []string{"1m", "1m"}},
		{[]string{"100ms", "500ms"}, time.Minute, []string{"500ms"}},
		{[]string{"0s"}, time.Minute, []string{"0s"}},
	} {
		got, _ := journey(t, orders(t, test.delays...), test.after, 0)
		require.Equalf(t, test.waits, got, "%s with %v", test.after, test.delays)
	}
}

// If each wait ends late, the message is still never early. It is late by at most the last wait's delay and the
// shortest one.
func TestWaitsAreLongEnough(t *testing.T) {
	t.Parallel()
	for range 300 {
		var delays []string
		shortest, longest := time.Duration(1<<62), time.Duration(0)
		for range 1 + rand.IntN(4) {
			d := time.Second + rand.N(time.Minute).Truncate(time.Millisecond)
			shortest, longest = min(shortest, d), max(longest, d)
			delays = append(delays, pipeline.FormatDelay(d))
		}
		delays = append(delays, "100ms")
		p := orders(t, delays...)
		after := longest + time.Millisecond + rand.N(500*shortest).Truncate(time.Millisecond)
		w := p.plan(after)
		if w.total < after || w.total > after+shortest {
			t.Fatalf("%s with %v: a plan of %s", after, delays, w.total)
		}
		for _, late := range []time.Duration{0, 300 * time.Millisecond} {
			waits, took := journey(t, p, after, late)
			if took < after || took > after+shortest+late {
				t.Fatalf("%s with %v: back after %s: %v", after, delays, took, waits)
			}
			if n := int64(len(waits)); n > maxWaits || late == 0 && n != w.waits {
				t.Fatalf("%s with %v: %d waits, planned %d", after, delays, n, w.waits)
			}
		}
	}
}

// journey makes a consumer ask for a wait. It returns the delays that the message takes, and when it is back. Each wait
// ends a little late.
func journey(t *testing.T, p *Pipeline, after, late time.Duration) (waits []string, took time.Duration) {
	t.Helper()
	d := byConsumer(with(ours("orders.created", 1), HeaderAfter, after.Milliseconds()))
	for {
		at := stamp
		at.Now = now.Add(took)
		v := p.Decide(p.Read(d), at.Now)
		m, err := p.Publishing(v, d, at)
		if err != nil || v.Action != Retry {
			t.Fatalf("%+v, %v", v, err)
		}
		if v.Delay > 0 || len(waits) == 0 {
			waits = append(waits, pipeline.FormatDelay(v.Delay))
		}
		if m.Headers[HeaderCount] != int64(2) || m.Headers[HeaderLastFailedAt] != now.UnixMilli() {
			t.Fatalf("another attempt: %v", m.Headers)
		}
		route := p.Route(v)
		if slices.Contains(route.CC, "return:orders.created") {
			want := after.Milliseconds()
			if len(p.counted) == 0 {
				want = v.Delay.Milliseconds()
			}
			if m.Headers[HeaderDueAt] != nil || m.Headers[HeaderDelay] != want || route.Key != "first.key" {
				t.Fatalf("it comes back with key %s and %v", route.Key, m.Headers)
			}
			return waits, took + v.Delay + late
		}
		took += v.Delay + late
		d = lost(m.Headers)
		d.RoutingKey = route.Key
	}
}

// Other delays replace an unavailable one, and a message with a requested wait is not early.
func TestWaitsWithoutADelay(t *testing.T) {
	t.Parallel()
	p := orders(t, "0s", "100ms", "5s", "30s", "1m")
	for name, test := range map[string]struct {
		delivery *amqp.Delivery
		want     []string
	}{
		"several delays": {
			byConsumer(with(ours("orders.created", 1), HeaderAfter, 95_000)),
			[]string{"delay:1m true", "delay:30s true", "delay:5s true", "delay:100ms true"},
		},
		"one delay": {
			byConsumer(with(ours("orders.created", 1), HeaderAfter, 20_000)),
			[]string{"first.key false", "first.key false", "delay:5s true", "delay:100ms true"},
		},
		"in between": {
			lost(due(ours("orders.created", 1), 50*time.Second)),
			[]string{"delay:30s true", "first.key false", "delay:5s true", "delay:100ms true"},
		},
	} {
		var tried []string
		v := judge(p, test.delivery)
		for v.Action == Retry {
			tried = append(tried, fmt.Sprintf("%s %t", p.Route(v).Key, v.waitsOn()))
			v, _ = p.Returned(v)
		}
		if !slices.Equal(tried, test.want) || v.Reason != ReasonWorkerError {
			t.Errorf("%s: tried %v, want %v, then %+v", name, tried, test.want, v)
		}
	}
}

// The time in the header counts only if the worker has written it.
func TestDueTimeOfAPublisher(t *testing.T) {
	t.Parallel()
	for name, d := range map[string]*amqp.Delivery{
		"rejected":  rejected("orders.created", due(amqp.Table{}, time.Hour)),
		"again":     rejected("orders.created", due(ours("orders.created", 1), time.Hour)),
		"consumer":  byConsumer(due(ours("orders.created", 1), time.Hour)),
		"exhausted": rejected("orders.created", due(ours("orders.created", 3), time.Hour)),
		"no queue":  lost(due(amqp.Table{HeaderPipeline: "orders"}, time.Hour)),
		"forever":   lost(with(ours("orders.created", 3), HeaderDueAt, int64(1)<<62)),
		"is due":    lost(due(ours("orders.created", 3), 0)),
		"no time":   lost(with(ours("orders.created", 3), HeaderDueAt, "now")),
	} {
		if m := publish(t, orders(t), d); m.Headers[HeaderDueAt] != nil {
			t.Errorf("%s: %v", name, m.Headers)
		}
	}
}
