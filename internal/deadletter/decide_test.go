package deadletter

import (
	"math"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
)

func TestDecide(t *testing.T) {
	t.Parallel()
	const queue = "orders.created"
	tests := map[string]struct {
		delivery *amqp.Delivery
		action   Action
		delay    time.Duration
		reason   string
		queue    string
		count    int64
	}{
		"first failure":  {rejected(queue, nil), Retry, 5 * time.Second, "", queue, 1},
		"second failure": {rejected(queue, ours(queue, 1)), Retry, 30 * time.Second, "", queue, 2},
		"third failure":  {rejected(queue, ours(queue, 2)), Retry, 30 * time.Second, "", queue, 3},
		"last failure":   {rejected(queue, ours(queue, 3)), Fail, 0, "exhausted", queue, 4},
		"unknown to the configuration, known to the broker": {rejected("new", nil), Retry, 5 * time.Second, "", "new", 1},

		"above the maximum": {rejected(queue, ours(queue, 9)), Fail, 0, "exhausted", queue, 10},
		"overflow":          {rejected(queue, ours(queue, math.MaxInt64)), Fail, 0, "exhausted", queue, math.MaxInt64},
		"negative count":    {rejected(queue, ours(queue, math.MinInt64)), Retry, 30 * time.Second, "", queue, 2},
		"count as text":     {rejected(queue, with(ours(queue, 0), HeaderCount, "3")), Fail, 0, "exhausted", queue, 4},
		"count as bytes":    {rejected(queue, with(ours(queue, 0), HeaderCount, []byte("2"))), Retry, 30 * time.Second, "", queue, 3},
		"count as words":    {rejected(queue, with(ours(queue, 0), HeaderCount, "two")), Retry, 30 * time.Second, "", queue, 2},
		"count as nothing":  {rejected(queue, with(ours(queue, 0), HeaderCount, nil)), Retry, 30 * time.Second, "", queue, 2},
		"count beyond":      {rejected(queue, with(ours(queue, 0), HeaderCount, "99999999999999999999")), Fail, 0, "exhausted", queue, math.MaxInt64},
		"count, no history": {rejected(queue, without(with(ours(queue, 0), HeaderCount, "two"), HeaderHistory)), Fail, 0, "unreadable_header", queue, 1},
		"no count":          {rejected(queue, without(ours(queue, 0), HeaderCount)), Retry, 5 * time.Second, "", queue, 1},
		"age, no history":   {rejected(queue, without(with(ours(queue, 1), HeaderFirstFailedAt, "soon"), HeaderHistory)), Retry, 30 * time.Second, "", queue, 2},
		"count as int32":    {rejected(queue, with(ours(queue, 0), HeaderCount, int32(2))), Retry, 30 * time.Second, "", queue, 3},
		"no pipeline":       {rejected(queue, without(without(ours(queue, 3), HeaderPipeline), HeaderQueue)), Retry, 5 * time.Second, "", queue, 1},
		"moved here":        {rejected(queue, with(ours(queue, 1), HeaderPipeline, "x")), Retry, 30 * time.Second, "", queue, 2},
		"other pipeline":    {rejected(queue, without(with(ours(queue, 3), HeaderPipeline, "x"), HeaderQueue)), Retry, 5 * time.Second, "", queue, 1},
		"other queue":       {rejected("orders.paid", ours(queue, 3)), Retry, 5 * time.Second, "", "orders.paid", 1},

		"expired":            {deadLettered(deathIn(queue, "expired"), nil), Fail, 0, "expired", queue, 1},
		"maxlen":             {deadLettered(deathIn(queue, "maxlen"), nil), Fail, 0, "maxlen", queue, 1},
		"delivery limit":     {deadLettered(deathIn(queue, "delivery_limit"), nil), Fail, 0, "delivery_limit", queue, 1},
		"new reason":         {deadLettered(deathIn(queue, "bored"), nil), Fail, 0, "malformed", queue, 1},
		"reason of any type": {deadLettered(with(deathIn(queue, ""), "reason", 1), nil), Fail, 0, "malformed", queue, 1},

		"reason too long to be one": {deadLettered(deathIn(queue, strings.Repeat("x", 256)), nil), Fail, 0, "malformed", queue, 1},

		"by a consumer":                                    {byConsumer(amqp.Table{HeaderQueue: queue}), Retry, 5 * time.Second, "", queue, 1},
		"by a consumer, no queue":                          {byConsumer(nil), Fail, 0, "unknown_queue", "", 1},
		"by a consumer, unknown":                           {byConsumer(amqp.Table{HeaderQueue: "x"}), Fail, 0, "unknown_queue", "", 1},
		"by a consumer, own queue":                         {byConsumer(amqp.Table{HeaderQueue: "orders.inbox"}), Fail, 0, "unknown_queue", "", 1},
		"by a consumer, copied":                            {deadLettered(deathIn("orders.retry.5s", "expired"), ours(queue, 1)), Retry, 30 * time.Second, "", queue, 2},
		"by a consumer, copied from elsewhere":             {copied("app.delay", ours(queue, 1)), Retry, 30 * time.Second, "", queue, 2},
		"by a consumer, copied from elsewhere, first time": {copied("app.delay", amqp.Table{HeaderQueue: queue}), Retry, 5 * time.Second, "", queue, 1},
		"of another pipeline, by the broker":               {rejected("new", with(ours(queue, 2), HeaderPipeline, "x")), Retry, 5 * time.Second, "", "new", 1},
		"unknown to both configuration and headers":        {rejected("new", ours("newer", 2)), Retry, 5 * time.Second, "", "new", 1},
		"unknown, failed there before":                     {rejected("new", ours("new", 1)), Retry, 30 * time.Second, "", "new", 2},

		"from the inbox":            {deadLettered(deathIn("orders.inbox", "delivery_limit"), nil), Fail, 0, "unknown_queue", "", 1},
		"never":                     {byConsumer(amqp.Table{HeaderQueue: queue, HeaderHint: "never"}), Fail, 0, "unrecoverable", queue, 1},
		"never, as bytes":           {byConsumer(amqp.Table{HeaderQueue: queue, HeaderHint: []byte("never")}), Fail, 0, "unrecoverable", queue, 1},
		"never, in another case":    {byConsumer(amqp.Table{HeaderQueue: queue, HeaderHint: "Never"}), Fail, 0, "unrecoverable", queue, 1},
		"never, and more":           {byConsumer(amqp.Table{HeaderQueue: queue, HeaderHint: "never mind"}), Retry, 5 * time.Second, "", queue, 1},
		"not a word":                {byConsumer(amqp.Table{HeaderQueue: queue, HeaderHint: false}), Retry, 5 * time.Second, "", queue, 1},
		"never, from the broker":    {rejected(queue, amqp.Table{HeaderHint: "never"}), Fail, 0, "unrecoverable", queue, 1},
		"never, but not retried":    {deadLettered(deathIn(queue, "expired"), amqp.Table{HeaderHint: "never"}), Fail, 0, "expired", queue, 1},
		"never, copied":             {rejected("orders.paid", with(ours(queue, 1), HeaderHint, "never")), Fail, 0, "unrecoverable", "orders.paid", 1},
		"queue of another type":     {rejected(queue, with(ours(queue, 2), HeaderQueue, amqp.Table{})), Retry, 30 * time.Second, "", queue, 3},
		"pipeline of another type":  {rejected(queue, with(ours(queue, 2), HeaderPipeline, []any{"orders"})), Retry, 30 * time.Second, "", queue, 3},
		"queue as bytes":            {rejected(queue, with(ours(queue, 2), HeaderQueue, []byte(queue))), Retry, 30 * time.Second, "", queue, 3},
		"names the queue alone":     {byConsumer(without(ours(queue, 2), HeaderPipeline)), Retry, 30 * time.Second, "", queue, 3},
		"a publisher's own headers": {rejected(queue, without(ours(queue, 2), HeaderPipeline)), Retry, 5 * time.Second, "", queue, 1},
		"a pipeline of no type":     {rejected(queue, with(ours(queue, 2), HeaderPipeline, nil)), Retry, 30 * time.Second, "", queue, 3},
		"count as a double":         {rejected(queue, with(ours(queue, 0), HeaderCount, 3.0)), Fail, 0, "exhausted", queue, 4},
		"count as a fraction":       {rejected(queue, with(ours(queue, 0), HeaderCount, 3.5)), Retry, 30 * time.Second, "", queue, 2},
		"count as a decimal":        {rejected(queue, with(ours(queue, 0), HeaderCount, amqp.Decimal{Scale: 1, Value: 30})), Fail, 0, "exhausted", queue, 4},
		"after the least":           {rejected(queue, amqp.Table{HeaderAfter: int64(math.MinInt64)}), Retry, 5 * time.Second, "", queue, 1},
		"another hint":              {byConsumer(amqp.Table{HeaderQueue: queue, HeaderHint: "always"}), Retry, 5 * time.Second, "", queue, 1},
		"after 0":                   {rejected(queue, with(ours(queue, 1), HeaderAfter, int8(0))), Retry, 5 * time.Second, "", queue, 2},
		"after 5001":                {rejected(queue, amqp.Table{HeaderAfter: uint16(5001)}), Retry, 30 * time.Second, "", queue, 1},
		"after the longest":         {rejected(queue, amqp.Table{HeaderAfter: 30_000}), Retry, 30 * time.Second, "", queue, 1},
		"after several":             {rejected(queue, with(ours(queue, 1), HeaderAfter, 90_000)), Retry, 30 * time.Second, "", queue, 2},
		"after 1,000 waits":         {rejected(queue, amqp.Table{HeaderAfter: 30_000_000}), Retry, 30 * time.Second, "", queue, 1},
		"after 1,001 waits":         {rejected(queue, amqp.Table{HeaderAfter: 30_000_001}), Fail, 0, "retry_after_too_long", queue, 1},
		"after ages":                {rejected(queue, amqp.Table{HeaderAfter: int64(math.MaxInt64)}), Fail, 0, "retry_after_too_long", queue, 1},
		"after ages, exhausted":     {rejected(queue, with(ours(queue, 3), HeaderAfter, int64(math.MaxInt64))), Fail, 0, "exhausted", queue, 4},
		"after a negative time":     {rejected(queue, amqp.Table{HeaderAfter: int64(-1)}), Retry, 5 * time.Second, "", queue, 1},
		"after a text":              {rejected(queue, amqp.Table{HeaderAfter: "30000"}), Retry, 30 * time.Second, "", queue, 1},
		"after a double":            {rejected(queue, amqp.Table{HeaderAfter: 5001.0}), Retry, 30 * time.Second, "", queue, 1},
		"after a float":             {rejected(queue, amqp.Table{HeaderAfter: float32(30_000)}), Retry, 30 * time.Second, "", queue, 1},
		"after an infinite time":    {rejected(queue, amqp.Table{HeaderAfter: math.Inf(1)}), Fail, 0, "retry_after_too_long", queue, 1},
		"after a decimal":           {rejected(queue, amqp.Table{HeaderAfter: amqp.Decimal{Value: 30_000}}), Retry, 30 * time.Second, "", queue, 1},
		"after a date":              {rejected(queue, amqp.Table{HeaderAfter: time.Unix(30, 0)}), Retry, 5 * time.Second, "", queue, 1},
		"after words":               {rejected(queue, amqp.Table{HeaderAfter: "soon"}), Retry, 5 * time.Second, "", queue, 1},
		"retry-after":               {byConsumer(amqp.Table{HeaderQueue: queue, HeaderRetryAfter: "29.5"}), Retry, 30 * time.Second, "", queue, 1},
		"retry-after as bytes":      {byConsumer(amqp.Table{HeaderQueue: queue, HeaderRetryAfter: []byte("30")}), Retry, 30 * time.Second, "", queue, 1},
		"retry-after a date":        {byConsumer(amqp.Table{HeaderQueue: queue, HeaderRetryAfter: now.Add(20 * time.Second).UTC().Format(http.TimeFormat)}), Retry, 30 * time.Second, "", queue, 1},
		"retry-after a date before": {byConsumer(with(ours(queue, 1), HeaderRetryAfter, "Sun, 06 Nov 1994 08:49:37 GMT")), Retry, 5 * time.Second, "", queue, 2},
		"retry-after both":          {byConsumer(amqp.Table{HeaderQueue: queue, HeaderAfter: 1, HeaderRetryAfter: 30}), Retry, 5 * time.Second, "", queue, 1},
		"retry-after, one readable": {byConsumer(amqp.Table{HeaderQueue: queue, HeaderAfter: "soon", HeaderRetryAfter: 30}), Retry, 30 * time.Second, "", queue, 1},
		"retry-after of ages":       {byConsumer(amqp.Table{HeaderQueue: queue, HeaderRetryAfter: "Fri, 31 Dec 9999 23:59:59 GMT"}), Fail, 0, "retry_after_too_long", queue, 1},
		"retry-after, by a nack":    {rejected(queue, amqp.Table{HeaderRetryAfter: 30}), Retry, 5 * time.Second, "", queue, 1},
		"answered":                  {answer(nil), Fail, 0, "unknown_queue", "", 1},
		"answered, with its queue":  {answer(amqp.Table{HeaderQueue: queue}), Retry, 5 * time.Second, "", queue, 1},
		"answered, another's queue": {answer(amqp.Table{HeaderQueue: "x"}), Fail, 0, "unknown_queue", "", 1},
		"answered, headers copied":  {answer(ours(queue, 2)), Retry, 30 * time.Second, "", queue, 3},
		"after, copied":             {rejected("orders.paid", with(ours(queue, 1), HeaderAfter, 30_000)), Retry, 5 * time.Second, "", "orders.paid", 1},
		"after, but exhausted":      {rejected(queue, with(ours(queue, 3), HeaderAfter, 0)), Fail, 0, "exhausted", queue, 4},
		"waits on":                  {lost(due(ours(queue, 2), time.Minute)), Retry, 30 * time.Second, "", queue, 2},
		"waits on, almost through":  {lost(due(ours(queue, 2), time.Millisecond)), Retry, 5 * time.Second, "", queue, 2},
		"waits on, almost a delay":  {lost(due(ours(queue, 2), 29*time.Second)), Retry, 30 * time.Second, "", queue, 2},
		"is due":                    {lost(due(ours(queue, 2), 0)), Retry, 0, "", queue, 2},
		"was due":                   {lost(due(ours(queue, 2), -time.Hour)), Retry, 0, "", queue, 2},
		"waits on, last attempt":    {lost(due(ours(queue, 9), time.Minute)), Retry, 30 * time.Second, "", queue, 9},
		"waits on, other pipeline":  {lost(due(with(ours(queue, 2), HeaderPipeline, "x"), time.Minute)), Fail, 0, "unknown_queue", "", 2},
		"waits for ages":            {lost(with(ours(queue, 2), HeaderDueAt, int64(math.MaxInt64))), Fail, 0, "retry_after_too_long", queue, 2},
		"due, as text":              {lost(with(ours(queue, 2), HeaderDueAt, "1700000060000")), Retry, 30 * time.Second, "", queue, 2},
		"due at no time":            {lost(with(ours(queue, 2), HeaderDueAt, "tomorrow")), Fail, 0, "unreadable_header", queue, 2},
		"due before the epoch":      {lost(with(ours(queue, 2), HeaderDueAt, int64(-1))), Fail, 0, "unreadable_header", queue, 2},
		"due, but failed":           {rejected(queue, due(ours(queue, 2), time.Minute)), Retry, 30 * time.Second, "", queue, 3},
		"due, but exhausted":        {rejected(queue, due(ours(queue, 3), time.Minute)), Fail, 0, "exhausted", queue, 4},
		"lost its binding":          {lost(ours(queue, 2)), Rescue, 0, "", queue, 2},
		"lost, of no configuration": {lost(ours("old", 2)), Rescue, 0, "", "old", 2},
		"lost, no queue":            {lost(without(ours(queue, 2), HeaderQueue)), Fail, 0, "unknown_queue", "", 2},
		"lost, own queue":           {lost(ours("orders.failed", 2)), Fail, 0, "unknown_queue", "", 2},
		"lost, other pipeline":      {lost(with(ours(queue, 2), HeaderPipeline, "x")), Fail, 0, "unknown_queue", "", 2},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := orders(t)
			v := judge(p, test.delivery)
			if v.Action != test.action || v.Delay != test.delay || v.Reason != test.reason {
				t.Errorf("verdict %d after %s for %q, want %d after %s for %q",
					v.Action, v.Delay, v.Reason, test.action, test.delay, test.reason)
			}
			if v.Letter.Queue != test.queue || v.Letter.Count != test.count {
				t.Errorf("queue %q, count %d, want %q, %d", v.Letter.Queue, v.Letter.Count, test.queue, test.count)
			}
		})
	}
}

// A program that publishes to the exchange of the delivery would have a loop without a wait.
func TestAnswerWithoutHeadersWaits(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		queues map[string]pipeline.WorkerQueue
		key    string
		want   string
	}{
		"the key names it": {nil, "orders.paid", "orders.paid"},
		"the only one":     {map[string]pipeline.WorkerQueue{"celery": {}}, "any", "celery"},
		"neither":          {nil, "any", ""},
	} {
		p := compile(t, pipeline.Worker{Delays: []string{"0s", "5s"}, WorkQueues: test.queues})
		d := answer(amqp.Table{"x-death": []any{deathIn("retries.of.the.application", "expired")}, "tenant": "a"})
		d.RoutingKey = test.key
		v := judge(p, d)
		if v.Letter.Queue != test.want {
			t.Errorf("%s: %+v", name, v)
		}
		if test.want == "" {
			require.Contains(t, v.Error, `"orders.dlx"`)
			continue
		}
		if v.Action != Retry || v.Delay != 5*time.Second || v.Letter.Count != 1 {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

func TestReturnedRetryTriesTheOtherDelays(t *testing.T) {
	t.Parallel()
	p := orders(t, "30s", "5s", "1m", "0s", "30s")
	v := judge(p, rejected("orders.created", nil))
	var tried []time.Duration
	for v.Action == Retry {
		tried = append(tried, v.Delay)
		v, _ = p.Returned(v)
	}
	want := []time.Duration{30 * time.Second, time.Minute, 5 * time.Second, 0}
	if !slices.Equal(tried, want) || v.Action != Fail || v.Reason != ReasonWorkerError {
		t.Errorf("tried %v, want %v, then %+v", tried, want, v)
	}
	v, ok := p.Returned(v)
	if !ok || p.Route(v).Exchange != "orders.failed" || v.Detour != "" {
		t.Errorf("what the alternate exchange has no queue for goes to %+v, %v", p.Route(v), ok)
	}
	_, ok = p.Returned(v)
	require.False(t, ok, "a failed message that was returned has nowhere to go")
}

func TestReturnedRescueFails(t *testing.T) {
	t.Parallel()
	p := orders(t)
	v, ok := p.Returned(judge(p, lost(ours("orders.created", 1))))
	if !ok || v.Action != Fail || v.Reason != ReasonUnknownQueue {
		t.Errorf("%+v, %t", v, ok)
	}
}

func TestNackedRescueWaitsForTheLongestDelay(t *testing.T) {
	t.Parallel()
	p := orders(t, "1m", "5s", "0s")
	rescue := judge(p, lost(ours("orders.created", 1)))
	v, _ := p.Nacked(rescue)
	if v.Action != Retry || v.Delay != time.Minute || v.Letter.Count != 1 {
		t.Fatalf("%+v", v)
	}
	// Without a delay, the message would be back at once.
	if v, _ = p.Returned(v); v.Delay != 5*time.Second {
		t.Errorf("%+v", v)
	}
	if v, _ = p.Returned(v); v.Reason != ReasonWorkerError {
		t.Errorf("%+v", v)
	}
	if v, ok := orders(t, "0s").Nacked(rescue); ok || v.Action != Rescue {
		t.Errorf("%+v: it has to be kept", v)
	}
	if v, ok := p.Nacked(judge(p, rejected("orders.created", nil))); ok || v.Action != Retry || v.Delay != time.Minute {
		t.Errorf("%+v: a retry stays what it is", v)
	}
}

// A full work queue also refuses a message that returns to it at once.
func TestNackedRetryWithoutADelayWaitsForTheLongest(t *testing.T) {
	t.Parallel()
	p := orders(t, "0s", "5s", "1m")
	v, _ := p.Nacked(judge(p, rejected("orders.created", nil)))
	if v.Action != Retry || v.Delay != time.Minute || v.Letter.Count != 1 {
		t.Fatalf("%+v", v)
	}
	var tried []time.Duration
	for v.Action == Retry {
		tried = append(tried, v.Delay)
		v, _ = p.Returned(v)
	}
	if want := []time.Duration{time.Minute, 5 * time.Second}; !slices.Equal(tried, want) {
		t.Errorf("tried %v, want %v: never without a delay", tried, want)
	}
	p = orders(t, "0s")
	if v, ok := p.Nacked(judge(p, rejected("orders.created", nil))); ok || v.Action != Retry || v.Delay != 0 {
		t.Errorf("%+v: it has to be kept", v)
	}
}

// If an application moves a message from a work queue to one that is not configured yet, it goes back, but not indefinitely.
func TestUnknownQueueOfAMovedMessageEnds(t *testing.T) {
	t.Parallel()
	p := orders(t)
	headers := ours("orders.created", 1)
	for range 10 {
		v := judge(p, rejected("new", headers))
		if v.Action == Fail {
			return
		}
		m, err := p.Publishing(v, rejected("new", headers), stamp)
		require.NoError(t, err)
		headers = m.Headers
	}
	t.Error("it goes round indefinitely")
}

// A message comes back up to max_age after its first failure, and not later.
func TestMaxAge(t *testing.T) {
	t.Parallel()
	const queue = "orders.created"
	// aged returns headers of a message that failed first this long ago.
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
		"before the epoch":              {"1m", rejected(queue, with(aged(1, 0), HeaderFirstFailedAt, int64(math.MinInt64))), 0, "too_old"},
		"in 1970":                       {"1m", rejected(queue, with(aged(1, 0), HeaderFirstFailedAt, int64(1))), 0, "too_old"},
		"no time":                       {"1m", rejected(queue, with(aged(1, 0), HeaderFirstFailedAt, "yesterday")), 0, "too_old"},
		"no time, and no history":       {"1m", rejected(queue, without(with(aged(1, 0), HeaderFirstFailedAt, "yesterday"), HeaderHistory)), 0, "unreadable_header"},
		"time as text":                  {"1m", rejected(queue, with(aged(1, 0), HeaderFirstFailedAt, "1600000000000")), 0, "too_old"},
		"time of the publisher's own":   {"1m", rejected(queue, without(aged(1, time.Hour), HeaderPipeline)), 5 * time.Second, ""},
		"time of another pipeline":      {"1m", rejected(queue, without(with(aged(1, time.Hour), HeaderPipeline, "x"), HeaderQueue)), 5 * time.Second, ""},
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

// A message on its way back has had its wait, and has not failed.
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
	require.Equal(t, stamp.Now.UnixMilli(), m.Headers[HeaderFirstFailedAt])
}

// Metrics count by these reasons. A missing one would count as "other".
func TestFailReasonsAreAllThatThereAre(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("headers.go")
	require.NoError(t, err)
	constants := regexp.MustCompile(`(?m)^\tReason\w+ = "(\w+)"$`).FindAllSubmatch(source, -1)
	if len(constants) < 5 {
		t.Fatalf("%d reasons in headers.go", len(constants))
	}
	for _, c := range constants {
		require.Contains(t, FailReasons(), string(c[1]))
	}
}

func TestDiedAt(t *testing.T) {
	t.Parallel()
	at := time.Unix(1_700_000_000, 0)
	for name, test := range map[string]struct {
		deaths any
		want   time.Time
	}{
		"newest first": {[]any{amqp.Table{"time": at}, amqp.Table{"time": at.Add(-time.Hour)}}, at},
		"absent":       {nil, time.Time{}},
		"no list":      {"x", time.Time{}},
		"empty":        {[]any{}, time.Time{}},
		"no table":     {[]any{int64(1)}, time.Time{}},
		"no time":      {[]any{amqp.Table{"queue": "q"}}, time.Time{}},
		"wrong type":   {[]any{amqp.Table{"time": int64(1)}}, time.Time{}},
	} {
		if got := DiedAt(amqp.Table{"x-death": test.deaths}); !got.Equal(test.want) {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}
