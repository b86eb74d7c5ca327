package deadletter

import (
	"math"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
)

// A message comes back up to max_age after its first failure, and not later.
func TestMaxAge(t *testing.T) {
	t.Parallel()
	const queue = "orders.created"
	// aged failed first so long ago.
	aged := func(count int64, age time.Duration) amqp.Table {
		return with(ours(queue, count), HeaderFirstFailedAt, now.Add(-age).UnixMilli())
	}
	tests := map[string]struct {
		maxAge   string
		delivery *amqp.Delivery
		delay    time.Duration
		reason   string
	}{
		"first failure":                 {"1m", rejected(queue, nil), 5 * time.Second, ""},
		"first failure, wait too long":  {"4999ms", rejected(queue, nil), 0, "too_old"},
		"first failure, wait fits":      {"5s", rejected(queue, nil), 5 * time.Second, ""},
		"wait ends in time":             {"1m", rejected(queue, aged(1, 30*time.Second)), 30 * time.Second, ""},
		"wait ends too late":            {"1m", rejected(queue, aged(1, 30_001*time.Millisecond)), 0, "too_old"},
		"too old before":                {"1m", rejected(queue, aged(1, time.Hour)), 0, "too_old"},
		"no limit":                      {"", rejected(queue, aged(1, 1e6*time.Hour/100)), 30 * time.Second, ""},
		"exhausted as well":             {"1m", rejected(queue, aged(3, time.Hour)), 0, "exhausted"},
		"never":                         {"1m", rejected(queue, with(aged(1, time.Hour), HeaderHint, "never")), 0, "unrecoverable"},
		"not retried anyway":            {"1m", deadLettered(deathIn(queue, "expired"), aged(1, time.Hour)), 0, "expired"},
		"asked for a longer delay":      {"20s", rejected(queue, amqp.Table{HeaderAfter: 6000}), 0, "too_old"},
		"asked for a shorter delay":     {"20s", rejected(queue, with(aged(2, 10*time.Second), HeaderAfter, 1)), 5 * time.Second, ""},
		"asked for several delays":      {"90s", rejected(queue, amqp.Table{HeaderAfter: 90_000}), 30 * time.Second, ""},
		"several that are too long":     {"94s", rejected(queue, amqp.Table{HeaderAfter: 90_001}), 0, "too_old"},
		"too long in any case":          {"1m", rejected(queue, amqp.Table{HeaderAfter: int64(math.MaxInt64)}), 0, "retry_after_too_long"},
		"is in one of several delays":   {"1m", lost(due(aged(1, time.Hour), time.Minute)), 30 * time.Second, ""},
		"another clock, ahead":          {"1m", rejected(queue, aged(1, -time.Hour)), 30 * time.Second, ""},
		"never to come":                 {"1m", rejected(queue, with(aged(1, 0), HeaderFirstFailedAt, int64(math.MaxInt64))), 30 * time.Second, ""},
		"before the epoch":              {"1m", rejected(queue, with(aged(1, 0), HeaderFirstFailedAt, int64(math.MinInt64))), 30 * time.Second, ""},
		"in 1970":                       {"1m", rejected(queue, with(aged(1, 0), HeaderFirstFailedAt, int64(1))), 0, "too_old"},
		"no time":                       {"1m", rejected(queue, with(aged(1, 0), HeaderFirstFailedAt, "yesterday")), 30 * time.Second, ""},
		"time of the publisher's own":   {"1m", rejected(queue, with(aged(1, time.Hour), HeaderPipeline, nil)), 5 * time.Second, ""},
		"time of another pipeline":      {"1m", rejected(queue, with(with(aged(1, time.Hour), HeaderPipeline, "x"), HeaderQueue, nil)), 5 * time.Second, ""},
		"time of the pipeline before":   {"1m", rejected(queue, with(aged(1, time.Hour), HeaderPipeline, "x")), 0, "too_old"},
		"time of another queue":         {"1m", rejected("orders.paid", aged(1, time.Hour)), 5 * time.Second, ""},
		"by a consumer, with its count": {"1m", byConsumer(aged(1, time.Hour)), 0, "too_old"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := compile(t, pipeline.Worker{MaxAge: test.maxAge})
			v := judge(p, test.delivery)
			if v.Delay != test.delay || v.Reason != test.reason || (v.Action == Fail) != (test.reason != "") {
				t.Errorf("verdict %d after %s for %q, want %s for %q", v.Action, v.Delay, v.Reason, test.delay, test.reason)
			}
		})
	}
}

// A message that was on its way back has had its wait, and has not failed.
func TestMaxAgeDoesNotStopARescue(t *testing.T) {
	t.Parallel()
	p := compile(t, pipeline.Worker{MaxAge: "1ms"})
	if v := judge(p, lost(ours("orders.created", 1))); v.Action != Rescue {
		t.Errorf("%+v", v)
	}
}

func TestMaxAttemptsOfAWorkQueue(t *testing.T) {
	t.Parallel()
	p := compile(t, pipeline.Worker{WorkQueues: map[string]pipeline.WorkerQueue{
		"plain": {}, "fewer": {MaxAttempts: 2}, "more": {MaxAttempts: 6}, "one less": {MaxAttempts: 3},
	}})
	for queue, want := range map[string]int64{"plain": 4, "fewer": 2, "more": 6, "one less": 3, "attached": 4} {
		headers := amqp.Table{}
		for attempt := int64(1); ; attempt++ {
			d := rejected(queue, headers)
			v := judge(p, d)
			m, err := p.Publishing(v, d, stamp)
			require.NoError(t, err)
			if m.Headers[HeaderMaxAttempts] != want {
				t.Fatalf("%s: %s is %v, want %d", queue, HeaderMaxAttempts, m.Headers[HeaderMaxAttempts], want)
			}
			if v.Action == Fail {
				if attempt != want || v.Reason != ReasonExhausted {
					t.Errorf("%s: %s after %d attempts, want %d", queue, v.Reason, attempt, want)
				}
				break
			}
			headers = m.Headers
		}
	}
	if m := publish(t, p, byConsumer(nil)); m.Headers[HeaderMaxAttempts] != int64(4) {
		t.Errorf("of an unknown queue: %v", m.Headers)
	}
}

// A first failure in the future would never grow old.
func TestFirstFailureInTheFutureIsNow(t *testing.T) {
	t.Parallel()
	p := orders(t)
	d := rejected("orders.created", with(ours("orders.created", 1), HeaderFirstFailedAt, int64(math.MaxInt64)))
	m, err := p.Publishing(p.Decide(p.Read(d), stamp.Now), d, stamp)
	require.NoError(t, err)
	if got := m.Headers[HeaderFirstFailedAt]; got != stamp.Now.UnixMilli() {
		t.Errorf("%s is %v", HeaderFirstFailedAt, got)
	}
}
