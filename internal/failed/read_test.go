package failed_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/content"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
)

var at = time.Date(2026, 11, 22, 1, 12, 4, 0, time.UTC)

// parkedByWorker is a message that failed four times and that a worker parked.
func parkedByWorker(more ...header) failed.Message {
	return message("orders.failed", append([]header{
		{"tenant", "a"},
		{"retry-count", 4},
		{"retry-max-attempts", 4},
		{"retry-pipeline", "orders"},
		{"retry-queue", "orders.created"},
		{"retry-exchange", "shop"},
		{"retry-routing-key", "order.created.eu"},
		{"retry-reason", "rejected"},
		{"retry-first-failed-at", int(at.Add(-time.Hour).UnixMilli())},
		{"retry-last-failed-at", int(at.UnixMilli())},
		{"retry-history", `[{"attempt":4,"at":1795256159986,"reason":"rejected"},{"attempt":3,"at":1795256157880,"reason":"rejected","delay_ms":2000}]`},
		{"retry-publish-id", "X26Q66GCAKXQ-4"},
		{"dead-letter-reason", "exhausted"},
		{"dead-letter-at", int(at.UnixMilli())},
		{"dead-letter-error", "no such article"},
		{"dead-letter-exception", "NoArticle: 7"},
	}, more...)...)
}

func TestReadWhatAWorkerParked(t *testing.T) {
	t.Parallel()
	m := parkedByWorker(header{"x-delivery-count", 3}, header{"replay-count", int32(2)})
	assert.Zero(t, failed.Read(m).DeliveryCount)
	m.Redelivered = true
	e := failed.Read(m)
	assert.Truef(t, e.System == failed.SystemWorker && e.Reason == "exhausted" && e.WorkQueue == "orders.created" && e.Pipeline == "orders",
		"entry %+v", e)
	assert.Truef(t, e.FirstExchange == "shop" && e.FirstRoutingKey == "order.created.eu" && e.MessageID == "order-1003",
		"origin %q, %q, message id %q", e.FirstExchange, e.FirstRoutingKey, e.MessageID)
	assert.Truef(t, e.Attempts == 4 && e.MaxAttempts == 4 && len(e.History) == 2 && e.Replays == 2 && e.DeliveryCount == 3, "entry %+v", e)
	assert.Truef(t, e.FailedAt.Equal(at) && e.FirstFailedAt.Equal(at.Add(-time.Hour)) && e.Error == "no such article" &&
		e.Exception == "NoArticle: 7", "entry %+v", e)
}

// A message that passed through the refused queue reads like one that did not.
func TestReadWhatAQueueRefused(t *testing.T) {
	t.Parallel()
	refused := death("orders.retry.0.refused", "expired", "orders.retry", "order.created.eu", at.Add(time.Minute))
	e := failed.Read(parkedByWorker(header{"x-death", []any{refused}}, header{"CC", []any{"delay:refused"}}))
	assert.Truef(t, e.System == failed.SystemWorker && e.Reason == "exhausted" && e.WorkQueue == "orders.created" &&
		e.FirstExchange == "shop" && e.FailedAt.Equal(at), "entry %+v", e)
}

// A due message that waited in one level and passed the next one keeps the exchange of the second level.
func TestReadWhatADelayedExchangeCannotRoute(t *testing.T) {
	t.Parallel()
	waited := death("events.delay.100ms.1", "expired", "events.delay.100ms.1", "order.paid", at)
	m := message("events.delay.unrouted", header{"x-death", []any{waited}}, header{"x-delay", -200})
	m.Exchange = "events.delay.100ms.0"
	e := failed.Read(m)
	assert.Truef(t, e.System == failed.SystemDelayed && e.Reason == "unroutable" && e.DelayMS == 0 && e.FailedAt.Equal(at), "entry %+v", e)
}

func TestReadWhatTheBrokerParked(t *testing.T) {
	t.Parallel()
	inbox := death("orders.inbox", "rejected", "orders.dlx", "order.created", at)
	for name, c := range map[string]struct {
		headers []header
		want    failed.Entry
	}{
		"on the first pass": {
			[]header{{"x-death", []any{inbox, death("orders.created", "rejected", "shop", "order.created.eu", at)}}},
			failed.Entry{WorkQueue: "orders.created", FirstExchange: "shop", FirstRoutingKey: "order.created.eu"},
		},
		"after a round": {
			[]header{
				{"x-death", []any{
					inbox, death("orders.created", "rejected", "orders.return", "order.created", at),
					death("orders.retry.5s", "expired", "orders.retry", "order.created", at),
				}},
				{"retry-pipeline", "orders"},
				{"retry-queue", "orders.created"},
				{"retry-exchange", "shop"},
				{"retry-routing-key", "order.created.eu"},
				{"retry-count", 2},
			},
			failed.Entry{WorkQueue: "orders.created", FirstExchange: "shop", FirstRoutingKey: "order.created.eu", Attempts: 2},
		},
		"with headers of another queue": {
			[]header{
				{"x-death", []any{inbox, death("orders.created", "rejected", "shop", "key", at)}},
				{"retry-pipeline", "orders"},
				{"retry-queue", "orders.shipped"},
				{"retry-count", 2},
			},
			failed.Entry{WorkQueue: "orders.created", FirstExchange: "shop", FirstRoutingKey: "key"},
		},
		"on the way back": {
			[]header{
				{"x-death", []any{inbox, death("orders.retry.5s", "expired", "orders.retry", "order.created", at)}},
				{"retry-pipeline", "orders"},
				{"retry-queue", "orders.created"},
				{"retry-count", 1},
			},
			failed.Entry{WorkQueue: "orders.created", FirstRoutingKey: "order.created", Attempts: 1},
		},
		"and was rejected in the failed queue": {
			[]header{{"x-death", []any{
				death("orders.failed", "rejected", "orders.failed", "k", at), inbox, death("orders.created", "rejected", "shop", "k", at),
			}}},
			failed.Entry{WorkQueue: "orders.created", FirstExchange: "shop", FirstRoutingKey: "k"},
		},
		"and nobody knows the queue": {
			[]header{{"x-death", []any{inbox}}, {"retry-queue", "orders.retry.5s"}}, failed.Entry{FirstRoutingKey: "order.created"},
		},
	} {
		e := failed.Read(message("orders.failed", c.headers...))
		assert.Truef(t, e.System == failed.SystemInbox && e.Reason == "malformed" && e.FailedAt.Equal(at), "%s: %+v", name, e)
		assert.Truef(t, e.WorkQueue == c.want.WorkQueue && e.FirstExchange == c.want.FirstExchange &&
			e.FirstRoutingKey == c.want.FirstRoutingKey && e.Attempts == c.want.Attempts, "%s: %+v", name, e)
	}
	e := failed.Read(message("orders.failed", header{"x-death", []any{death("orders.created", "rejected", "shop", "key", at)}}))
	assert.Truef(t, e.System == failed.SystemBroker && e.Reason == "rejected" && e.WorkQueue == "orders.created",
		"past an unbound dead-letter exchange: %+v", e)
}

// wolverine are the headers of each message that Wolverine moves.
var wolverine = []header{
	{"exception-type", "System.Exception"},
	{"exception-message", "boom"},
	{"exception-stack", "at Sales"},
	{"failed-at", "1795309924000"},
	{"attempts", "3"},
	{"message-type", "Order"},
	{"wolverine-protocol-version", "1.0"},
}

// wrapping is a message that EasyNetQ published to its error queue.
func wrapping(kind, body string) failed.Message {
	var p content.Properties
	p.SetText(content.Type, kind)
	p.SetNumber(content.DeliveryMode, 2)
	return failed.Message{Queue: "EasyNetQ_Default_Error_Queue", Exchange: "ErrorExchange_k", RoutingKey: "k", Properties: p.Encode(), Body: []byte(body)}
}

// Each message has the headers that its system writes on a real failed message.
var foreign = map[string]struct {
	message failed.Message
	want    failed.Entry
}{
	"NServiceBus": {
		message("error", header{"NServiceBus.FailedQ", "sales"}, header{"NServiceBus.TimeOfFailure", "2026-11-22 01:12:04:123456 Z"},
			header{"NServiceBus.ExceptionInfo.ExceptionType", "System.Exception"}, header{"NServiceBus.ExceptionInfo.Message", "boom"},
			header{"NServiceBus.ExceptionInfo.StackTrace", "at Sales"}, header{"NServiceBus.EnclosedMessageTypes", "Order"}),
		failed.Entry{
			System: failed.SystemNServiceBus, Reason: "failed", WorkQueue: "sales", Error: "boom",
			Exception: "System.Exception\nat Sales", FailedAt: at,
		},
	},
	"MassTransit": {
		message("sales_error", header{"MT-Reason", "fault"}, header{"MT-Fault-InputAddress", "rabbitmq://localhost/v/sales%2Feu?bind=true"},
			header{"MT-Fault-Message", "boom"}, header{"MT-Fault-ExceptionType", "System.Exception"},
			header{"MT-Fault-StackTrace", "System.Exception at"}, header{"MT-Fault-Timestamp", "2026-11-22T01:12:04.0000000Z"},
			header{"MT-Fault-RetryCount", "x"}, header{"MT-Host-MachineName", "m"}),
		failed.Entry{
			System: failed.SystemMassTransit, Reason: "fault", WorkQueue: "sales/eu", Error: "boom", Exception: "System.Exception at",
			FailedAt: at, Attempts: 1,
		},
	},
	"MassTransit, skipped": {
		message("sales_skipped", header{"MT-Reason", "dead-letter"}),
		failed.Entry{System: failed.SystemMassTransit, Reason: "dead-letter", WorkQueue: "sales"},
	},
	"Spring, by name": {
		message("errors", header{"x-original-exchange", ""}, header{"x-original-routingKey", "sales"},
			header{"x-exception-message", "boom"}, header{"x-exception-stacktrace", "java.lang.Exception"}),
		failed.Entry{System: failed.SystemSpring, Reason: "failed", WorkQueue: "sales", Error: "boom", Exception: "java.lang.Exception"},
	},
	"Spring Cloud Stream": {
		message("sales.group.dlq", header{"x-original-exchange", "sales"}, header{"x-original-routingKey", "k"}),
		failed.Entry{System: failed.SystemSpring, Reason: "failed", WorkQueue: "sales.group"},
	},
	"Celery": {
		message("dead", header{"task", "orders.ship"}, header{"id", "7"}, header{"retries", int32(3)},
			header{"x-death", []any{death("celery", "rejected", "", "celery", at)}}),
		failed.Entry{System: failed.SystemCelery, Reason: "rejected", WorkQueue: "celery", Attempts: 4, FailedAt: at},
	},
	"BabelQueue": {
		failed.Message{
			Queue: "sales.failed", Properties: properties(header{"x-attempts", int32(3)}),
			Body: []byte(`{"job":"x", "attempts" : 3, "dead_letter":{"reason":"unknown_urn","error":"boom","exception":"E","failed_at":1795309924000,` +
				`"original_queue":"sales","attempts":3,"lang":"go"},"meta":{"id":1.0}}`),
		},
		failed.Entry{
			System: failed.SystemBabelQueue, Reason: "unknown_urn", WorkQueue: "sales", Error: "boom", Exception: "E", Attempts: 3,
			FailedAt: time.UnixMilli(1795309924000),
		},
	},
	"Rebus": {
		message("error", header{"rbs2-msg-id", "7"}, header{"rbs2-source-queue", "sales"}, header{"rbs2-delivery-count", "5"},
			header{"rbs2-error-details", "boom: System.Exception: boom\n   at Sales"}),
		failed.Entry{System: failed.SystemRebus, Reason: "failed", WorkQueue: "sales", Exception: "boom: System.Exception: boom\n   at Sales"},
	},
	"Wolverine": {
		message("wolverine-dead-letter-queue", append([]header{{"original-destination", "rabbitmq://queue/sales/eu?consumer=1"}}, wolverine...)...),
		failed.Entry{
			System: failed.SystemWolverine, Reason: "failed", WorkQueue: "sales/eu", Error: "boom", Exception: "System.Exception\nat Sales",
			FailedAt: time.UnixMilli(1795309924000), Attempts: 3,
		},
	},
	"Wolverine before 6.21": {
		message("wolverine-dead-letter-queue", wolverine...),
		failed.Entry{
			System: failed.SystemWolverine, Reason: "failed", Error: "boom", Exception: "System.Exception\nat Sales",
			FailedAt: time.UnixMilli(1795309924000), Attempts: 3,
		},
	},
	"EasyNetQ": {
		wrapping("EasyNetQ.SystemMessages.Error, EasyNetQ", `{"RoutingKey":"k","Exchange":"shop","Queue":"sales","Exception":"System.Exception: boom",`+
			`"Message":"{\"order\":7}","DateTime":"2026-11-22T01:12:04.0000000Z","BasicProperties":{"MessageId":"order-1003"}}`),
		failed.Entry{System: failed.SystemEasyNetQ, Reason: "failed", WorkQueue: "sales", Exception: "System.Exception: boom", FailedAt: at},
	},
	"EasyNetQ before 3": {
		wrapping("EasyNetQ.SystemMessages.Error:EasyNetQ", `{"RoutingKey":"k","Exchange":"shop","Message":"{}","BasicProperties":{}}`),
		failed.Entry{System: failed.SystemEasyNetQ, Reason: "failed"},
	},
	"a broker": {
		message("dead", header{"x-death", []any{death("sales", "rejected", "shop", "k", at), death("other", "rejected", "", "", at)}}),
		failed.Entry{System: failed.SystemBroker, Reason: "rejected", WorkQueue: "sales", FailedAt: at, Attempts: 1},
	},
	"nobody": {message("any"), failed.Entry{}},
}

// A consumer that counts attempts parked the message, in the pipeline's failed queue or in its team's.
func TestReadWhatAConsumerParked(t *testing.T) {
	t.Parallel()
	waited, rejected := death("orders.retry.5s", "expired", "orders.retry", "return:created", at), death("created", "rejected", "shop", "order.created", at)
	for _, queue := range []string{"orders.failed", "team.failures"} {
		e := failed.Read(message(queue, header{"x-death", []any{waited, rejected}}))
		assert.Truef(t, e.WorkQueue == "created" && e.FirstExchange == "shop" && e.FirstRoutingKey == "order.created" && e.Reason == "rejected",
			"%s: %+v", queue, e)
	}
}

// The queue is where a consumer, or the queue itself, gave the message up, and not where it waited afterwards.
func TestReadWhereAMessageFailed(t *testing.T) {
	t.Parallel()
	rejected, waited := counted("work", "rejected", 3), counted("work.wait", "expired", 3)
	newer := header{"x-last-death-queue", "any"} // 4.0 and 4.3 write it, and list deaths by age
	for name, c := range map[string]struct {
		deaths   []any
		more     []header
		queue    string
		reason   string
		attempts int64
	}{
		"rejected, and moved by the broker":    {[]any{rejected, waited}, nil, "work", "rejected", 3},
		"after a wait":                         {[]any{waited, rejected}, nil, "work", "rejected", 3},
		"after two waits":                      {[]any{counted("work.wait2", "expired", 1), waited, rejected}, []header{newer}, "work", "rejected", 3},
		"after two waits, as 3.10 lists them":  {[]any{counted("work.wait2", "expired", 1), rejected, waited}, nil, "work", "rejected", 3},
		"pushed out of the waiting queue":      {[]any{counted("work.wait", "maxlen", 1), rejected}, nil, "work", "rejected", 3},
		"after too many deliveries":            {[]any{waited, counted("work", "delivery_limit", 2)}, nil, "work", "delivery_limit", 2},
		"after both":                           {[]any{waited, counted("work", "delivery_limit", 1), rejected}, nil, "work", "delivery_limit", 4},
		"expired in its work queue":            {[]any{counted("work", "expired", 1)}, nil, "work", "expired", 0},
		"pushed out of its work queue":         {[]any{counted("work", "maxlen", 1)}, nil, "work", "maxlen", 0},
		"expired in its work queue after all":  {[]any{counted("work", "expired", 1), waited, rejected}, nil, "work", "expired", 3},
		"only waited, or expired":              {[]any{waited}, nil, "work.wait", "expired", 0},
		"rejected by two queues":               {[]any{waited, rejected, counted("other", "rejected", 1)}, []header{newer}, "work", "rejected", 3},
		"rejected by two queues, in any order": {[]any{waited, rejected, counted("other", "rejected", 1)}, nil, "", "rejected", 0},
		"counted as text":                      {[]any{waited, replaced(rejected, "count", "3")}, nil, "work", "rejected", 3},
		"counted below 0":                      {[]any{waited, replaced(rejected, "count", -3)}, nil, "work", "rejected", 0},
	} {
		e := failed.Read(message("parking", append(c.more, header{"x-death", c.deaths})...))
		assert.Truef(t, e.System == failed.SystemBroker && e.WorkQueue == c.queue && e.Reason == c.reason && e.Attempts == c.attempts,
			"%s: %q, %q, %d", name, e.WorkQueue, e.Reason, e.Attempts)
	}
}

func counted(queue, reason string, count int) []header {
	return replaced(death(queue, reason, "", queue, at), "count", count)
}

// replaced is the table with another value of a header.
func replaced(table []header, name string, value any) []header {
	table = slices.Clone(table)
	table[slices.IndexFunc(table, func(h header) bool { return h.name == name })].value = value
	return table
}

// A library published the message to the dead-letter exchange. A replay removes its error, so that no later failure shows it.
func TestReadTheErrorOfALibrary(t *testing.T) {
	t.Parallel()
	spring := []header{
		{"dead-letter-reason", "unknown_queue"},
		{"retry-pipeline", "orders"},
		{"x-exception-message", "boom"},
		{"x-exception-stacktrace", "java.lang.Exception"},
		{"x-original-exchange", "shop"},
		{"x-original-routingKey", "order.created"},
		{"tenant", "a"},
	}
	e := failed.Read(message("orders.failed", spring...))
	assert.Truef(t, e.System == failed.SystemWorker && e.Reason == "unknown_queue" && e.WorkQueue == "" && e.Error == "boom" &&
		e.Exception == "java.lang.Exception", "%+v", e)
	kept := names(parsed(t, replayed(t, failed.Replay{Pipeline: "orders", To: "work"}, e.Message).Properties).Headers())
	assert.NotContains(t, kept, "x-exception-message")
	assert.Contains(t, kept, "tenant")

	e = failed.Read(message("orders.failed", append(spring, header{"dead-letter-error", "newer"})...))
	assert.Truef(t, e.Error == "newer" && e.Exception == "", "%+v", e)
}

func TestReadForeign(t *testing.T) {
	t.Parallel()
	for name, c := range foreign {
		e := failed.Read(c.message)
		assert.Truef(t, e.System == c.want.System && e.Reason == c.want.Reason && e.WorkQueue == c.want.WorkQueue && e.Error == c.want.Error &&
			e.Exception == c.want.Exception && e.FailedAt.Equal(c.want.FailedAt) && e.Attempts == c.want.Attempts, "%s: %+v", name, e)
	}
}

// A header of the wrong type counts as absent.
func TestReadHostile(t *testing.T) {
	t.Parallel()
	void := content.Value{Type: 'V'}
	for name, headers := range map[string][]header{
		"of other types": {
			{"dead-letter-reason", "exhausted"},
			{"dead-letter-at", "soon"},
			{"retry-count", "many"},
			{"retry-queue", 7},
			{"retry-history", "[{]"},
		},
		"beyond all bounds": {
			{"dead-letter-reason", "exhausted"},
			{"dead-letter-at", 1 << 62},
			{"retry-count", -5},
			{"replay-count", -1},
			{"retry-history", strings.Repeat("[", 4000)},
		},
		"x-death of voids": {{"x-death", []any{void, void}}, {"dead-letter-reason", void}},
		"x-death of lists": {{"x-death", []any{[]any{}, []header{{"queue", []any{}}}}}},
	} {
		e := failed.Read(message("orders.failed", headers...))
		assert.Truef(t, e.FailedAt.IsZero() && e.Attempts == 0 && e.WorkQueue == "" && e.Replays == 0 && e.History == nil, "%s: %+v", name, e)
	}
	e := failed.Read(failed.Message{Queue: "q", Properties: []byte{0x20}, Body: []byte(`{"dead_letter":`)})
	assert.Truef(t, e.Unreadable != nil && e.ID != "", "unreadable: %+v", e)
}

// The id depends on the message, and not on its delivery, broker or release.
func TestID(t *testing.T) {
	t.Parallel()
	m := message("orders.failed", header{"b", 1}, header{"a", []header{{"z", 1}, {"y", 2}}}, header{"l", content.Value{Type: 'L', Bytes: make([]byte, 8)}})
	same := m
	same.Queue, same.Redelivered = "elsewhere", true
	same.Properties = properties(header{"a", []header{{"y", 2}, {"z", 1}}}, header{"x-delivery-count", 5}, header{"b", 1},
		header{"x-acquired-count", 6}, header{"l", 0})
	assert.Truef(t, failed.Digest(m) == failed.Digest(same) && len(failed.Digest(m)) == 16,
		"ids %s and %s of one message", failed.Digest(m), failed.Digest(same))
	bare, counted := failed.Message{Properties: []byte{0, 0}}, failed.Message{}
	var p content.Properties
	p.SetHeaders(table(header{"x-delivery-count", 1}))
	counted.Properties = p.Encode()
	assert.Equal(t, failed.Digest(counted), failed.Digest(bare), "a redelivery of a message without headers has another id")
	seen := map[string]string{failed.Digest(m): "the message"}
	for name, change := range map[string]func(m *failed.Message){
		"exchange":             func(m *failed.Message) { m.Exchange = "x" },
		"key":                  func(m *failed.Message) { m.RoutingKey = "x" },
		"exchange and key":     func(m *failed.Message) { m.Exchange, m.RoutingKey = m.Exchange+m.RoutingKey, "" },
		"body":                 func(m *failed.Message) { m.Body = nil },
		"property":             func(m *failed.Message) { m.Properties = properties(header{"b", 1}) },
		"type":                 func(m *failed.Message) { m.Properties = properties(header{"b", int32(1)}) },
		"unreadable":           func(m *failed.Message) { m.Properties = []byte{0x20} },
		"count not at the top": func(m *failed.Message) { m.Properties = properties(header{"a", []header{{"x-delivery-count", 1}}}) },
	} {
		other := m
		change(&other)
		before, found := seen[failed.Digest(other)]
		assert.Falsef(t, found, "%s and %s have one id", name, before)
		seen[failed.Digest(other)] = name
	}
}
