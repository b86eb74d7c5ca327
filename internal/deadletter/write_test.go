package deadletter

import (
	"errors"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
)

func publish(t *testing.T, p *Pipeline, d *amqp.Delivery) amqp.Publishing {
	t.Helper()
	m, err := p.Publishing(judge(p, d), d, stamp)
	require.NoError(t, err)
	return m
}

func TestRetriedMessage(t *testing.T) {
	t.Parallel()
	d := rejected("orders.created", amqp.Table{
		"tenant": "a", "x-custom": int8(1), "retry": "later", "retry-after-ms": int64(1), "dead-letter-reason": "exhausted",
		"dead-letter-at": int64(1), "dead-letter-error": "e", "CC": []any{"x"}, "BCC": []any{"y"}, "x-delivery-count": int64(3),
		"x-acquired-count": int64(3), "x-first-death-queue": "q", "x-first-death-reason": "r", "x-last-death-exchange": "e",
	})
	d.Expiration, d.UserId, d.DeliveryMode, d.Priority, d.ContentType, d.Body = "1", "shop", 1, 9, "text/plain", []byte("b")
	d.Timestamp, d.MessageId, d.ReplyTo = now, "m", "r"

	want := amqp.Publishing{
		Headers: amqp.Table{
			"tenant": "a", "x-custom": int8(1), "retry": "later",
			"CC":          []any{"delay:5s", "return:orders.created"},
			"retry-count": int64(1), "retry-max-attempts": int64(4), "retry-pipeline": "orders", "retry-queue": "orders.created",
			"retry-exchange": "shop", "retry-routing-key": "eu.created", "retry-publish-id": "s-1", "retry-reason": "rejected",
			"retry-first-failed-at": int64(1_700_000_000_123), "retry-last-failed-at": int64(1_700_000_000_123),
			"retry-delay-ms": int64(5000), "retry-user-id": "shop", "retry-delivery-mode": int64(1),
			"retry-history": `[{"attempt":1,"at":1700000000123,"reason":"rejected","delay_ms":5000}]`,
		},
		ContentType: "text/plain", DeliveryMode: 2, Priority: 9, Timestamp: now, MessageId: "m", ReplyTo: "r", Body: []byte("b"),
	}
	require.Empty(t, cmp.Diff(want, publish(t, orders(t), d)))
}

// A publisher's own header retry means nothing to the worker, which leaves it alone.
func TestOnlyTheHintIsRemoved(t *testing.T) {
	t.Parallel()
	for _, value := range []any{"always", "", "never again", int64(3), true, false, nil, []byte("later"), amqp.Table{"limit": int32(3)}} {
		for name, d := range map[string]*amqp.Delivery{
			"rejected":  rejected("orders.created", amqp.Table{"retry": value}),
			"published": byConsumer(amqp.Table{HeaderQueue: "orders.created", "retry": value}),
			"exhausted": rejected("orders.created", with(ours("orders.created", 3), "retry", value)),
		} {
			got, has := publish(t, orders(t), d).Headers["retry"]
			if !has || !cmp.Equal(got, value) {
				t.Errorf("%s: %v has become %v", name, value, got)
			}
		}
	}
	for _, d := range []*amqp.Delivery{rejected("orders.created", amqp.Table{"retry": "Never"}), byConsumer(amqp.Table{HeaderQueue: "orders.created", "retry": []byte("never")})} {
		if h := publish(t, orders(t), d).Headers; h["retry"] != nil || h[HeaderDeadLetterReason] != ReasonUnrecoverable {
			t.Errorf("%v", h)
		}
	}
}

func TestMessageThatFailedBefore(t *testing.T) {
	t.Parallel()
	d := rejected("orders.created", with(ours("orders.created", 3), HeaderDeliveryMode, int64(1)))
	h := publish(t, orders(t), d).Headers
	want := amqp.Table{
		"CC":          []any{"failed:orders.created"},
		"retry-count": int64(4), "retry-max-attempts": int64(4), "retry-pipeline": "orders", "retry-queue": "orders.created",
		"retry-exchange": "first", "retry-routing-key": "first.key", "retry-publish-id": "s-1", "retry-reason": "rejected",
		"retry-first-failed-at": int64(1_600_000_000_000), "retry-last-failed-at": int64(1_700_000_000_123),
		"retry-delivery-mode": int64(1), "dead-letter-reason": "exhausted", "dead-letter-at": int64(1_700_000_000_123),
		"retry-history": `[{"attempt":4,"at":1700000000123,"reason":"rejected"},` +
			`{"attempt":1,"at":1600000000000,"reason":"rejected","delay_ms":5000}]`,
	}
	require.Empty(t, cmp.Diff(want, h))
}

func TestHeadersOfSomebodyElseAreDropped(t *testing.T) {
	t.Parallel()
	h := publish(t, orders(t), rejected("orders.paid", with(ours("orders.created", 3), HeaderReplyTo, "x"))).Headers
	if h[HeaderReplyTo] != nil || h[HeaderCount] != int64(1) || h[HeaderQueue] != "orders.paid" ||
		h[HeaderFirstFailedAt] != now.UnixMilli() || strings.Contains(h[HeaderHistory].(string), "1600000000000") {
		t.Errorf("%v", h)
	}
}

func TestRescuedMessageIsNotCounted(t *testing.T) {
	t.Parallel()
	headers := ours("orders.created", 2)
	d := lost(with(headers, "CC", []any{"delay:5s"}))
	h := publish(t, orders(t), d).Headers
	delete(headers, "CC")
	headers[HeaderPublishID] = "s-1"
	require.Empty(t, cmp.Diff(headers, h))
}

// Headers that a worker set aside for another pipeline have the publisher's values. A property that is still there is
// newer.
func TestPropertiesThatWereSetAsideStay(t *testing.T) {
	t.Parallel()
	aside := amqp.Table{HeaderUserID: "shop", HeaderReplyTo: DirectReplyTo, HeaderDeliveryMode: int64(1)}
	byWorker := with(maps.Clone(aside), HeaderPublishID, "e-1")
	elsewhere := with(ours("elsewhere", 2), HeaderPipeline, "other")
	maps.Copy(elsewhere, byWorker)
	for name, c := range map[string]struct {
		headers, want amqp.Table
		change        func(*amqp.Delivery)
	}{
		"another pipeline":             {elsewhere, aside, nil},
		"no worker":                    {aside, amqp.Table{}, nil},
		"a publish-id that is no text": {with(maps.Clone(aside), HeaderPublishID, int64(1)), amqp.Table{}, nil},
		"a property that is still there": {
			byWorker,
			amqp.Table{HeaderUserID: "guest", HeaderReplyTo: DirectReplyTo, HeaderDeliveryMode: int64(0)},
			func(d *amqp.Delivery) { d.UserId, d.DeliveryMode = "guest", 0 },
		},
	} {
		d := rejected("orders.created", c.headers)
		if c.change != nil {
			c.change(d)
		}
		for failure := range 5 {
			m := publish(t, orders(t), d)
			got := amqp.Table{}
			for key := range aside {
				if value, has := m.Headers[key]; has {
					got[key] = value
				}
			}
			require.Emptyf(t, cmp.Diff(c.want, got), "%s, failure %d: %v", name, failure+1, m.Headers)
			d = rejected("orders.created", m.Headers)
		}
	}
}

func TestFailedMessageOfUnknownQueueKeepsWhatTheConsumerWrote(t *testing.T) {
	t.Parallel()
	h := publish(t, orders(t), byConsumer(amqp.Table{HeaderQueue: "typo"})).Headers
	if h[HeaderQueue] != "typo" || h[HeaderDeadLetterReason] != ReasonUnknownQueue {
		t.Errorf("%v", h)
	}
}

// The name is a publisher's, too, so it is removed only where it was obeyed.
func TestRetryAfterIsRemovedOnce(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		delivery *amqp.Delivery
		want     any
	}{
		"obeyed":         {byConsumer(amqp.Table{HeaderQueue: "orders.created", HeaderRetryAfter: "20"}), nil},
		"a date":         {byConsumer(amqp.Table{HeaderQueue: "orders.created", HeaderRetryAfter: "Sun, 06 Nov 1994 08:49:37 GMT"}), nil},
		"not readable":   {byConsumer(amqp.Table{HeaderQueue: "orders.created", HeaderRetryAfter: "soon"}), "soon"},
		"not needed":     {byConsumer(amqp.Table{HeaderQueue: "orders.created", HeaderRetryAfter: "20", HeaderAfter: 5}), "20"},
		"of a publisher": {rejected("orders.created", amqp.Table{HeaderRetryAfter: "20"}), "20"},
		"copied":         {byConsumer(with(with(ours("orders.created", 1), HeaderPipeline, "x"), HeaderRetryAfter, "20")), nil},
	} {
		require.Equal(t, test.want, publish(t, orders(t), test.delivery).Headers[HeaderRetryAfter], name)
	}
}

// On the first failure, the worker drops a publisher's values in its own headers. All other names belong to
// applications, and a delayed exchange's names belong to it.
func TestForgedHeadersAreDropped(t *testing.T) {
	t.Parallel()
	theirs := amqp.Table{
		"retry-limit": int64(1), "retry-after-payment": "yes", "retry-": "x", "retry": "monthly", "delay-user-id": "shop", "delay-0": true, "x-mine": "y",
	}
	forged := without(ours("orders.created", 3), HeaderPipeline)
	forged[HeaderUserID], forged[HeaderDeliveryMode] = "admin", int64(9)
	maps.Copy(forged, theirs)
	d := rejected("orders.created", forged)
	for failure := range int64(2) {
		h := publish(t, orders(t), d).Headers
		if h[HeaderCount] != failure+1 || h[HeaderUserID] != nil || h[HeaderDeliveryMode] != nil ||
			h[HeaderExchange] != "shop" || h[HeaderRoutingKey] != "eu.created" || h[HeaderFirstFailedAt] != now.UnixMilli() {
			t.Errorf("failure %d: %v", failure+1, h)
		}
		for key, value := range theirs {
			if h[key] != value {
				t.Errorf("failure %d: %s is %v", failure+1, key, h[key])
			}
		}
		d = rejected("orders.created", h)
	}
}

// A broker closes the channel over direct reply-to, but not over the address that replaces it.
func TestDirectReplyToBecomesAHeader(t *testing.T) {
	t.Parallel()
	for replyTo, want := range map[string]struct {
		property string
		header   any
	}{
		"":                             {"", nil},
		"replies":                      {"replies", nil},
		DirectReplyTo:                  {"", DirectReplyTo},
		DirectReplyTo + ".g1h2AA5yZXB": {DirectReplyTo + ".g1h2AA5yZXB", nil},
		"AMQ.rabbitmq.reply-to":        {"AMQ.rabbitmq.reply-to", nil},
	} {
		d := rejected("orders.created", nil)
		d.ReplyTo = replyTo
		m := publish(t, orders(t), d)
		if m.ReplyTo != want.property || m.Headers[HeaderReplyTo] != want.header {
			t.Errorf("%q: reply-to %q, headers %v", replyTo, m.ReplyTo, m.Headers)
		}
		if h := publish(t, orders(t), rejected("orders.created", m.Headers)).Headers; h[HeaderReplyTo] != want.header {
			t.Errorf("%q: the second retry has the headers %v", replyTo, h)
		}
		if m, _ := Copy(d, "a UUID", 0, AsideOfPipelines()); m.ReplyTo != want.property || m.Headers[HeaderReplyTo] != want.header {
			t.Errorf("%q: reply-to %q of the copy, headers %v", replyTo, m.ReplyTo, m.Headers)
		}
	}
}

// A consumer's text about one failure does not describe the next one.
func TestWhatIsAboutAnEarlierFailureIsDropped(t *testing.T) {
	t.Parallel()
	p := orders(t)
	said := byConsumer(amqp.Table{HeaderQueue: "orders.created", HeaderDeadLetterError: "e", HeaderDeadLetterException: "x"})
	h := publish(t, p, said).Headers
	if h[HeaderDeadLetterError] != "e" || h[HeaderDeadLetterException] != "x" {
		t.Errorf("%v", h)
	}
	if h := publish(t, p, lost(maps.Clone(h))).Headers; h[HeaderDeadLetterError] != "e" || h[HeaderDelay] != int64(5000) {
		t.Errorf("a message that was lost has not failed again: %v", h)
	}
	h = publish(t, p, rejected("orders.created", h)).Headers
	if h[HeaderDeadLetterError] != nil || h[HeaderDeadLetterException] != nil || h[HeaderDelay] != int64(30_000) {
		t.Errorf("%v", h)
	}
	h[HeaderCount] = int64(3)
	if h = publish(t, p, rejected("orders.created", h)).Headers; h[HeaderDeadLetterReason] != ReasonExhausted || h[HeaderDelay] != nil {
		t.Errorf("%v", h)
	}
}

func TestErrorTextsAreTruncatedBetweenCharacters(t *testing.T) {
	t.Parallel()
	d := byConsumer(amqp.Table{
		HeaderQueue: "orders.created", HeaderDeadLetterError: strings.Repeat("ü", 4000), HeaderDeadLetterException: "x" + strings.Repeat("日", 9000),
	})
	h := publish(t, orders(t), d).Headers
	for key, limit := range map[string]int{HeaderDeadLetterError: maxErrorText, HeaderDeadLetterException: maxExceptionText} {
		text := h[key].(string)
		if len(text) > limit || len(text) < limit-3 || !utf8.ValidString(text) {
			t.Errorf("%s has %d bytes, valid: %t", key, len(text), utf8.ValidString(text))
		}
	}
	if d.Headers[HeaderDeadLetterError] != strings.Repeat("ü", 4000) {
		t.Error("the delivery was changed")
	}
}

func TestHeadersThatAreTooLargeAreDroppedInOrder(t *testing.T) {
	t.Parallel()
	p := orders(t)
	headers := ours("orders.created", 1)
	for range 10 {
		headers[HeaderCount] = int64(1)
		headers = publish(t, p, rejected("orders.created", headers)).Headers
	}
	headers[HeaderDeadLetterError], headers[HeaderDeadLetterException] = "error", "exception"
	// kept counts the remaining texts and failures.
	kept := func(h amqp.Table) int {
		n := len(ParseHistory(asText(h[HeaderHistory])))
		for _, key := range []string{HeaderDeadLetterException, HeaderDeadLetterError} {
			if h[key] != nil {
				n++
			} else if n > 0 {
				t.Fatalf("%s is dropped before other things: %v", key, h)
			}
		}
		return n
	}
	last := 12 + 2
	for filler := 128_000; filler < 132_000; filler++ {
		headers["filler"] = strings.Repeat("x", filler)
		d := byConsumer(headers)
		m, err := p.Publishing(judge(p, d), d, stamp)
		if err != nil {
			require.Zero(t, last, "things could be dropped")
			return
		}
		n := kept(m.Headers)
		if n != last && n != last-1 {
			t.Fatalf("%d things are left after %d", n, last)
		}
		last = n
	}
	t.Error("nothing is too large")
}

func TestWhatCannotBeEncodedIsNotRepublished(t *testing.T) {
	t.Parallel()
	p := orders(t)
	for _, value := range []any{uint64(1), struct{}{}, []any{uint64(1)}, amqp.Table{"x": []string{"y"}}, map[string]any{}} {
		d := rejected("orders.created", amqp.Table{"value": value})
		if _, err := p.Publishing(judge(p, d), d, stamp); !errors.Is(err, errNotRepublishable) {
			t.Errorf("%T: error %v", value, err)
		}
	}
}

// A message with more headers than the client library reads could be published, but its return could not be read. The
// message would then count as kept.
func TestWhatCouldNotBeReadInAReturnIsNotRepublished(t *testing.T) {
	t.Parallel()
	p := orders(t)
	for n, refused := range map[int]bool{8000: false, 8190: true} {
		headers := amqp.Table{}
		for i := range n {
			headers[strconv.Itoa(i)] = true
		}
		d := rejected("orders.created", headers)
		if _, err := p.Publishing(judge(p, d), d, stamp); errors.Is(err, errNotRepublishable) != refused {
			t.Errorf("%d headers: error %v", n, err)
		}
	}
}

func TestHistoryIsBounded(t *testing.T) {
	t.Parallel()
	p := orders(t)
	headers := ours("orders.created", 1)
	for range 200 {
		headers[HeaderCount] = int64(1)
		headers = publish(t, p, rejected("orders.created", headers)).Headers
	}
	text := headers[HeaderHistory].(string)
	failures := ParseHistory(text)
	if len(text) > maxHistory || len(text) < maxHistory-200 || failures[0].At != now.UnixMilli() {
		t.Errorf("%d bytes, %d failures", len(text), len(failures))
	}
	for _, value := range []any{nil, 1, "", "x", "{}", "[1]", `[{"attempt":"x"}]`, strings.Repeat("[", 5000)} {
		require.Nil(t, ParseHistory(asText(value)), value)
	}
}

func TestSizeIsWhatTheLibraryWrites(t *testing.T) {
	t.Parallel()
	nested := amqp.Table{"a": []any{nil, true, int8(1), byte(1), int16(1), uint16(1), int32(1), uint32(1), 1, int64(1)}}
	table := amqp.Table{
		"nested": nested, "f": float32(1), "d": 1.0, "decimal": amqp.Decimal{}, "t": time.Unix(0, 0), "b": []byte("xyz"), "s": "xyz", "": nil,
		"empty": amqp.Table{}, "none": []any(nil),
	}
	tableSize := func(t amqp.Table) int {
		var s sizer
		s.table(t)
		return s.bytes
	}
	got := tableSize(table)
	want := 4 + (1 + 6 + 1 + tableSize(nested)) + (2 + 5) + (2 + 9) + (8 + 6) + (2 + 9) + (2 + 5 + 3) + (2 + 5 + 3) + (1 + 1) +
		(6 + 1 + 4) + (5 + 1 + 4)
	require.Equal(t, want, got)
	require.Equal(t, 4+2+5+1+2+2+2+3+3+5+5+5+9, tableSize(nested))
}

// Its dead-letter-error comes from the worker. The consumer's text is about an earlier failure, as after any rejection.
func TestUndeliverableMessage(t *testing.T) {
	t.Parallel()
	p := orders(t)
	d := rejected("orders.created", amqp.Table{"tenant": "a", "dead-letter-error": "earlier"})
	why := strings.Repeat("ü", maxErrorText)
	m, err := p.Publishing(p.Undeliverable(d, why), d, stamp)
	require.NoError(t, err)
	for key, want := range map[string]any{
		"dead-letter-reason": "malformed", "dead-letter-error": why[:maxErrorText], "retry-queue": "orders.created",
		"retry-count": int64(1), "retry-exchange": "shop", "tenant": "a",
	} {
		if m.Headers[key] != want {
			t.Errorf("%s is %v, want %v", key, m.Headers[key], want)
		}
	}
}

func TestRoute(t *testing.T) {
	t.Parallel()
	p := orders(t)
	letter := Letter{Queue: "a/b c", RoutingKey: "eu.created"}
	keyed := func(key string) Letter { return Letter{Queue: "q", RoutingKey: key} }
	tests := map[string]struct {
		verdict Verdict
		want    Route
	}{
		"retry":       {Verdict{Letter: letter, Delay: 90 * time.Second}, Route{Exchange: "orders.retry", Key: "eu.created", CC: []string{"delay:1m30s", "return:a/b c"}, Target: "delay:1m30s"}},
		"retry now":   {Verdict{Letter: letter}, Route{Exchange: "orders.return", Key: "eu.created", CC: []string{"return:a/b c"}, Target: "a/b c"}},
		"rescue":      {Verdict{Letter: letter, Action: Rescue}, Route{Exchange: "", Key: "a/b c", CC: nil, Target: "a/b c"}},
		"fail":        {fail(letter, "expired"), Route{Exchange: "orders.failed.route", Key: "eu.created", CC: []string{"failed:a/b c"}, Target: "a/b c"}},
		"detour":      {fail(letter, "expired").Detoured(DetourRefused), Route{Exchange: "orders.failed", Key: "eu.created", CC: nil}},
		"refused":     {fail(letter, "expired").SetAside(), Route{Exchange: "orders.retry", Key: "eu.created", CC: []string{"delay:refused"}, Target: "delay:refused"}},
		"unknown":     {fail(Letter{RoutingKey: "eu.created"}, "unknown_queue"), Route{Exchange: "orders.failed", Key: "eu.created", CC: nil}},
		"our failed":  {fail(keyed("failed:a/b c"), "expired"), Route{Exchange: "orders.failed.route", Key: "retry-escaped", CC: []string{"failed:q"}, Target: "q"}},
		"not failed":  {Verdict{Letter: keyed("failed:q"), Delay: time.Second}, Route{Exchange: "orders.retry", Key: "failed:q", CC: []string{"delay:1s", "return:q"}, Target: "delay:1s"}},
		"our delay":   {Verdict{Letter: keyed("delay:5s"), Delay: time.Second}, Route{Exchange: "orders.retry", Key: "retry-escaped", CC: []string{"delay:1s", "return:q"}, Target: "delay:1s"}},
		"our return":  {Verdict{Letter: keyed("return:q")}, Route{Exchange: "orders.return", Key: "retry-escaped", CC: []string{"return:q"}, Target: "q"}},
		"fail, ours":  {fail(keyed("delay:5s"), "expired"), Route{Exchange: "orders.failed.route", Key: "delay:5s", CC: []string{"failed:q"}, Target: "q"}},
		"like a key":  {Verdict{Letter: keyed("delay"), Delay: time.Second}, Route{Exchange: "orders.retry", Key: "delay", CC: []string{"delay:1s", "return:q"}, Target: "delay:1s"}},
		"empty key":   {Verdict{Letter: keyed(""), Delay: time.Second}, Route{Exchange: "orders.retry", Key: "", CC: []string{"delay:1s", "return:q"}, Target: "delay:1s"}},
		"inside only": {Verdict{Letter: keyed("x.delay:5s"), Delay: time.Second}, Route{Exchange: "orders.retry", Key: "x.delay:5s", CC: []string{"delay:1s", "return:q"}, Target: "delay:1s"}},
	}
	for name, test := range tests {
		require.Empty(t, cmp.Diff(test.want, p.Route(test.verdict)), name)
	}
}

func TestWhereAMessageWasFirstPublished(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 256)
	const queue = "orders.created"
	tests := map[string]struct {
		delivery      *amqp.Delivery
		exchange, key string
	}{
		"first pass":             {rejected(queue, nil), "shop", "eu.created"},
		"later":                  {rejected(queue, ours(queue, 1)), "first", "first.key"},
		"copied":                 {rejected("orders.paid", ours(queue, 1)), "shop", "eu.created"},
		"by a consumer":          {byConsumer(amqp.Table{HeaderQueue: queue}), "", "consumer.key"},
		"by a consumer, later":   {byConsumer(ours(queue, 1)), "first", "first.key"},
		"by a consumer, copied":  {deadLettered(deathIn("orders.retry.5s", "expired"), ours(queue, 1)), "first", "first.key"},
		"publisher's headers":    {rejected(queue, without(ours(queue, 1), HeaderPipeline)), "shop", "eu.created"},
		"names the queue alone":  {byConsumer(without(ours(queue, 1), HeaderPipeline)), "first", "first.key"},
		"copied from elsewhere":  {copied("app.delay", amqp.Table{HeaderQueue: queue}), "", "consumer.key"},
		"lost":                   {lost(ours(queue, 1)), "first", "first.key"},
		"lost, key of any type":  {lost(with(ours(queue, 1), HeaderRoutingKey, 1)), "first", "eu.created"},
		"too long to be a key":   {rejected(queue, with(ours(queue, 1), HeaderRoutingKey, long)), "first", "eu.created"},
		"too long for a queue":   {rejected(long, with(ours(queue, 1), HeaderExchange, long)), "", "first.key"},
		"no keys":                {deadLettered(with(deathIn(queue, "rejected"), "routing-keys", nil), nil), "shop", ""},
		"keys of any type":       {deadLettered(with(deathIn(queue, "rejected"), "routing-keys", []any{1}), nil), "shop", ""},
		"exchange of any type":   {deadLettered(with(deathIn(queue, "rejected"), "exchange", []byte("x")), nil), "x", "eu.created"},
		"x-death of any type":    {byConsumer(amqp.Table{HeaderQueue: queue, "x-death": "x"}), "", "consumer.key"},
		"x-death without tables": {byConsumer(amqp.Table{HeaderQueue: queue, "x-death": []any{nil}}), "", "consumer.key"},
		"x-death is empty":       {byConsumer(amqp.Table{HeaderQueue: queue, "x-death": []any{}}), "", "consumer.key"},
	}
	for name, test := range tests {
		l := orders(t).Read(test.delivery)
		if l.Exchange != test.exchange || l.RoutingKey != test.key {
			t.Errorf("%s: exchange %q, key %q, want %q, %q", name, l.Exchange, l.RoutingKey, test.exchange, test.key)
		}
	}
}
