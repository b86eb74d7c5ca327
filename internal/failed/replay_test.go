package failed_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/content"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
)

var now = at.Add(24 * time.Hour)

func replayed(t *testing.T, r failed.Replay, m failed.Message) failed.Publishing {
	t.Helper()
	e := failed.Read(m)
	r.ID = "18ea3d6d"
	p, err := r.Publishing(&e, now)
	require.NoError(t, err)
	return p
}

func names(t content.Table) (names []string) {
	for name := range t.All() {
		names = append(names, string(name))
	}
	return names
}

func TestReplayThroughThePipeline(t *testing.T) {
	t.Parallel()
	m := parkedByWorker(header{"retry", "never"}, header{"retry-after-ms", 5}, header{"retry-due-at", 5}, header{"retry-own", "x"}, header{"replay-count", 1},
		header{"x-delivery-count", 3}, header{"x-first-death-queue", "q"}, header{"x-last-death-reason", "r"}, header{"CC", []any{"other"}},
		header{"BCC", []any{"other"}}, header{"x-death", []any{death("orders.failed", "rejected", "orders.failed", "k", at)}})
	original := parsed(t, m.Properties)
	original.SetText(content.UserID, "shop")
	original.SetText(content.ReplyTo, "amq.rabbitmq.reply-to")
	original.SetText(content.Expiration, "60000")
	original.SetNumber(content.Priority, 0)
	original.SetNumber(content.DeliveryMode, 1)
	m.Properties = original.Encode()

	p := replayed(t, failed.Replay{Pipeline: "orders"}, m)
	got := parsed(t, p.Properties)
	assert.Truef(t, p.Exchange == "orders.return" && p.RoutingKey == "order.created.eu" && string(p.Body) == "{}",
		"published to %q, %q", p.Exchange, p.RoutingKey)
	want := []string{
		"tenant", "retry-own", "retry-user-id", "retry-pipeline", "retry-queue", "retry-exchange", "retry-routing-key", "retry-delivery-mode",
		"replay-count", "replayed-at", "replay-id", "CC", "retry-reply-to",
	}
	assert.Equal(t, want, names(got.Headers()))
	h := decoded(got.Headers())
	assert.Truef(t, h["replay-count"] == int64(2) && h["replayed-at"] == now.UnixMilli() && h["replay-id"] == "18ea3d6d" &&
		h["retry-user-id"] == "shop" && h["retry-delivery-mode"] == int64(1) && slices.Equal(h["CC"].([]any), []any{"return:orders.created"}),
		"headers %v", h)
	assert.Truef(t, !got.Has(content.UserID) && !got.Has(content.Expiration) && got.Has(content.Priority) &&
		got.Number(content.DeliveryMode) == 2 && !got.Has(content.ReplyTo) && got.Text(content.MessageID) == "order-1003",
		"properties %q", p.Properties)
}

// A replay escapes a routing key that could be one of the return exchange's addresses.
func TestReplayEscapesTheKey(t *testing.T) {
	t.Parallel()
	m := message("orders.failed", header{"dead-letter-reason", "expired"}, header{"retry-queue", "q"}, header{"retry-routing-key", "return:x"})
	assert.Equal(t, pipeline.EscapedKey, replayed(t, failed.Replay{Pipeline: "orders"}, m).RoutingKey)
}

// failsAgain returns the letters that a worker reads after a replayed message was rejected again, and after its queue's
// binding was missing.
func failsAgain(t *testing.T, name string, p failed.Publishing, queue string) (again, lost deadletter.Letter) {
	t.Helper()
	w := deadletter.NewPipeline(pipeline.Worker{
		Version: 1, Name: name, Vhost: "/", Delays: []string{"5s"}, MaxAttempts: 4, WorkQueues: map[string]pipeline.WorkerQueue{queue: {}},
	})
	headers := decoded(parsed(t, p.Properties).Headers())
	lost = w.Read(&amqp.Delivery{Exchange: name + ".return", RoutingKey: p.RoutingKey, Headers: headers})
	headers["x-death"] = []any{amqp.Table{
		"queue": queue, "reason": "rejected", "exchange": p.Exchange, "routing-keys": []any{p.RoutingKey}, "count": int64(1),
	}}
	return w.Read(&amqp.Delivery{Exchange: name + ".dlx", RoutingKey: p.RoutingKey, Headers: headers}), lost
}

// A replayed message has all of its attempts again, whatever its route.
func TestReplayedMessagesCountFromOne(t *testing.T) {
	t.Parallel()
	inbox := message("orders.failed", header{"x-death", []any{
		death("orders.inbox", "rejected", "orders.dlx", "k", at), death("orders.created", "rejected", "shop", "order.created.eu", at),
	}})
	for name, c := range map[string]struct {
		message         failed.Message
		replay          failed.Replay
		pipeline, queue string
		exchange        string
	}{
		"the same pipeline":            {parkedByWorker(), failed.Replay{Pipeline: "orders"}, "orders", "orders.created", "shop"},
		"parked by the broker":         {inbox, failed.Replay{Pipeline: "orders"}, "orders", "orders.created", "shop"},
		"a pipeline of another name":   {parkedByWorker(), failed.Replay{Pipeline: "orders2"}, "orders2", "orders.created", "shop"},
		"a queue of another pipeline":  {parkedByWorker(), failed.Replay{Pipeline: "orders"}, "shipping", "orders.created", "shop"},
		"to another queue":             {parkedByWorker(), failed.Replay{Pipeline: "orders", To: "orders.eu"}, "orders", "orders.eu", "shop"},
		"to one of another pipeline":   {parkedByWorker(), failed.Replay{Pipeline: "orders", To: "parcels"}, "shipping", "parcels", "shop"},
		"as a queue that is not known": {parkedByWorker(), failed.Replay{}, "orders", "orders.created", "shop"},
	} {
		p := replayed(t, c.replay, c.message)
		again, lost := failsAgain(t, c.pipeline, p, c.queue)
		assert.Truef(t, again.Queue == c.queue && again.Count == 1 && again.FirstFailedAt == 0 && again.History == nil && !again.Never,
			"%s: fails again as %+v", name, again)
		assert.Equal(t, c.exchange, again.Exchange, name)
		if p.Exchange == c.pipeline+".return" {
			assert.Truef(t, lost.Queue == c.queue && lost.Count == 0 && lost.Exchange == c.exchange, "%s: without a binding %+v", name, lost)
		}
	}
}

func TestReplayForeign(t *testing.T) {
	t.Parallel()
	kept := map[string][]string{
		"NServiceBus": {"NServiceBus.EnclosedMessageTypes"}, "MassTransit": {"MT-Host-MachineName"}, "Celery": {"task", "id", "retries"},
		"BabelQueue": {"x-attempts"}, "Rebus": {"rbs2-msg-id"}, "Wolverine": {"attempts", "message-type", "wolverine-protocol-version"},
	}
	for name, c := range foreign {
		if c.want.WorkQueue == "" {
			continue
		}
		p := replayed(t, failed.Replay{}, c.message)
		got := parsed(t, p.Properties)
		assert.Truef(t, p.Exchange == "" && p.RoutingKey == c.want.WorkQueue && !got.Has(content.DeliveryMode),
			"%s: published to %q, %q: %q", name, p.Exchange, p.RoutingKey, p.Properties)
		want := append(slices.Clone(kept[name]), "replay-count", "replayed-at", "replay-id")
		assert.Equal(t, want, names(got.Headers()), name)
		if n, found := got.Headers().Get("attempts"); found {
			assert.Equal(t, content.Text("0"), n, name)
		}
		for _, attempts := range []string{"retries", "x-attempts"} {
			if n, found := got.Headers().Get(attempts); found {
				assert.Equal(t, content.Value{Type: 'I', Bytes: make([]byte, 4)}, n, name)
			}
		}
		body := string(c.message.Body)
		switch name {
		case "BabelQueue":
			body = `{"job":"x", "attempts" : 0, "meta":{"id":1.0}}`
		case "EasyNetQ":
			body = `{"order":7}`
		}
		assert.Equal(t, body, string(p.Body), name)
	}
}

// errorBody is what EasyNetQ's error message has of a message with this body, and with these properties.
func errorBody(message, properties string) string {
	return `{"RoutingKey":"k","Exchange":"shop","Queue":"sales","Exception":"boom","Message":` + message + `,"DateTime":"2026-11-22T01:12:04Z",` +
		`"BasicProperties":` + properties + `}`
}

// A replay publishes the message that EasyNetQ wrapped, with its properties and headers, wherever it goes.
func TestReplayOfWhatEasyNetQWrapped(t *testing.T) {
	t.Parallel()
	// EasyNetQ 7 writes absent properties, too, and x-death, whose types are not known.
	seven := `{"ContentType":null,"ContentEncoding":null,"Headers":{"tenant":"eu 1","n":7,"ok":true,"x-death":[{"time":{"UnixTime":1}}]},"DeliveryMode":2,` +
		`"Priority":0,"CorrelationId":"c","ReplyTo":null,"Expiration":"60000","MessageId":"order-7","Timestamp":5,"Type":"Shop.Order, Shop",` +
		`"UserId":null,"AppId":"","ClusterId":null,"ContentTypePresent":false,"HeadersPresent":true,"DeliveryModePresent":true}`
	// EasyNetQ 8.1 writes present ones, and the types of headers. A text comes as bytes.
	eight := `{"DeliveryMode":2,"CorrelationId":"c","Expiration":"00:01:00","MessageId":"order-7","Timestamp":5,"Type":"Shop.Order, Shop","AppId":"",` +
		`"Headers":{"tenant":{"Type":14,"Value":"ZXUgMQ=="},"n":{"Type":8,"Value":7},"ok":{"Type":2,"Value":true}}}`
	var want content.Properties
	for property, text := range map[content.Property]string{
		content.CorrelationID: "c", content.MessageID: "order-7", content.Type: "Shop.Order, Shop", content.AppID: "",
	} {
		want.SetText(property, text)
	}
	want.SetNumber(content.DeliveryMode, 2)
	want.SetNumber(content.Timestamp, 5)
	yes := content.Value{Type: 't', Bytes: []byte{1}}
	want.SetHeaders(table(header{"n", 7}, header{"ok", yes}, header{"tenant", "eu 1"}, header{"replay-count", 1},
		header{"replayed-at", int(now.UnixMilli())}, header{"replay-id", "18ea3d6d"}))
	for _, properties := range []string{seven, eight} {
		m := wrapping("EasyNetQ.SystemMessages.Error, EasyNetQ", errorBody(`"{\"order\":7}"`, properties))
		for _, to := range []string{"", "inbox"} {
			p := replayed(t, failed.Replay{To: to}, m)
			assert.Equal(t, cmp.Or(to, "sales"), p.RoutingKey)
			assert.Equal(t, `{"order":7}`, string(p.Body))
			assert.Equal(t, string(want.Encode()), string(p.Properties))
		}
		e := failed.Read(m)
		assert.Truef(t, e.MessageID == "order-7" && e.FirstExchange == "shop" && e.FirstRoutingKey == "k", "%+v", e)
	}
	again := wrapping("EasyNetQ.SystemMessages.Error", errorBody(`"[]"`, `{"Headers":{"replay-count":2,"replay-id":"18ea3d6d"}}`))
	e := failed.Read(again)
	assert.Truef(t, e.Replays == 2 && e.ReplayID == "18ea3d6d" && e.Refusal == nil, "%+v", e)
}

// A replay never publishes EasyNetQ's wrapper, also with --to, and from a queue where a worker parked it.
func TestReplayRefusesWhatEasyNetQMayHaveChanged(t *testing.T) {
	t.Parallel()
	const headersUnknown = "Headers has values of unknown types"
	for body, why := range map[string]string{
		`{"order":7}`:                            "it is not JSON of EasyNetQ's",
		`boom`:                                   "it is not JSON of EasyNetQ's",
		`{"Queue":"sales","BasicProperties":{}}`: "it is not JSON of EasyNetQ's",
		`{"Queue":"sales","Message":"{}"}`:       "it is not JSON of EasyNetQ's",
		errorBody(`"{}"`, `{"contentType":"application/json"}`):                 "contentType has values of unknown types",
		errorBody(`"{}"`, `{"DeliveryMode":"2"}`):                               "DeliveryMode has values of unknown types",
		errorBody(`"{}"`, `{"Priority":256}`):                                   "Priority has values of unknown types",
		errorBody(`"{}"`, `{"Type":7}`):                                         "Type has values of unknown types",
		errorBody(`"\ufffd"`, `{}`):                                             "it was not UTF-8",
		errorBody(`"{}"`, `{"Headers":{"h":"a\ufffd"}}`):                        "it was not UTF-8",
		errorBody(`"eyJvcmRlciI6N30="`, `{}`):                                   "its body is text or base64",
		errorBody(`"{}"`, `{"Headers":{"h":"ZXU="}}`):                           headersUnknown, // EasyNetQ 2, and one of 8's serializers
		errorBody(`"{}"`, `{"Headers":{"h":1.5}}`):                              headersUnknown,
		errorBody(`"{}"`, `{"Headers":{"h":{"UnixTime":1}}}`):                   headersUnknown,
		errorBody(`"{}"`, `{"Headers":{"h":null}}`):                             headersUnknown,
		errorBody(`"{}"`, `{"Headers":{"h":{"Type":15,"Value":[]}}}`):           headersUnknown,
		errorBody(`"{}"`, `{"Headers":{"h":{"Type":14,"Value":"?"}}}`):          headersUnknown,
		errorBody(`"{}"`, `{"Headers":{"`+strings.Repeat("h", 256)+`":"a b"}}`): headersUnknown,
	} {
		m := wrapping("EasyNetQ.SystemMessages.Error:EasyNetQ", body)
		parked := m
		properties := parsed(t, m.Properties)
		properties.SetHeaders(table(header{"dead-letter-reason", "unknown_queue"}))
		parked.Queue, parked.Properties = "orders.failed", properties.Encode()
		for _, m := range []failed.Message{m, parked} {
			for _, to := range []string{"", "inbox"} {
				e := failed.Read(m)
				_, err := failed.Replay{To: to}.Publishing(&e, now)
				assert.ErrorContains(t, err, "the original message cannot be taken exactly from EasyNetQ's error message: "+why, body)
			}
		}
	}
}

// If a work queue of a pipeline has EasyNetQ's error messages as its messages, they go back to it.
func TestReplayOfErrorMessagesThatAWorkQueueHad(t *testing.T) {
	t.Parallel()
	m := wrapping("EasyNetQ.SystemMessages.Error, EasyNetQ", errorBody(`"eyJvcmRlciI6N30="`, `{}`))
	properties := parsed(t, m.Properties)
	properties.SetHeaders(table(header{"dead-letter-reason", "exhausted"}, header{"retry-queue", "errors"}))
	m.Queue, m.Properties = "orders.failed", properties.Encode()
	p := replayed(t, failed.Replay{Pipeline: "orders"}, m)
	assert.Equal(t, string(m.Body), string(p.Body))
	assert.Equal(t, "EasyNetQ.SystemMessages.Error, EasyNetQ", parsed(t, p.Properties).Text(content.Type))
}

// A replay removes only the dead_letter object, wherever it is in the body.
func TestBabelQueueBodies(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"dead_letter":{}}`:                                          `{}`,
		`{ "a":"dead_letter" , "dead_letter":{} }`:                    `{ "a":"dead_letter"  }`,
		`{"dead_letter":{"x":[1,{}]},"attempts":12}`:                  `{"attempts":0}`,
		`{"attempts":12,"dead_letter":{} , "b":"\"dead_letter\":{}"}`: `{"attempts":0, "b":"\"dead_letter\":{}"}`,
	} {
		e := failed.Read(failed.Message{Queue: "q.failed", Properties: []byte{0, 0}, Body: []byte(body)})
		p, err := failed.Replay{}.Publishing(&e, now)
		require.NoError(t, err)
		assert.Equal(t, want, string(p.Body), body)
	}
}

func TestReplayRefuses(t *testing.T) {
	t.Parallel()
	large := parkedByWorker(header{"large", strings.Repeat("x", 131_072)})
	for name, c := range map[string]struct {
		message failed.Message
		err     error
	}{
		"a message of no queue":    {message("orders.failed", header{"dead-letter-reason", "unknown_queue"}), failed.ErrNoWorkQueue},
		"headers beyond the frame": {large, failed.ErrTooLarge},
		"what cannot be read":      {failed.Message{Properties: []byte{0x20, 0}}, content.ErrMalformed},
	} {
		e := failed.Read(c.message)
		_, err := (failed.Replay{Pipeline: "orders", FrameMax: 131_072}).Publishing(&e, now)
		require.ErrorIs(t, err, c.err, name)
	}
}

// FuzzReplay shows that every message can be read and replayed, and that a replayed one counts from 1.
func FuzzReplay(f *testing.F) {
	for _, c := range foreign {
		f.Add("orders.failed", c.message.Properties, c.message.Body)
	}
	f.Add("orders.failed", parkedByWorker().Properties, []byte(`{"dead_letter":{},"attempts":1}`))
	f.Fuzz(func(t *testing.T, queue string, encoded, body []byte) {
		e := failed.Read(failed.Message{Queue: queue, Properties: encoded, Body: body})
		p, err := failed.Replay{Pipeline: "orders", ID: "id"}.Publishing(&e, now)
		if err != nil {
			return
		}
		got := parsed(t, p.Properties)
		for name := range got.Headers().All() {
			kept := string(name) == "CC" || !deadletter.IsBrokers(string(name))
			assert.Truef(t, kept && !deadletter.IsForgotten(string(name)), "header %s is kept", name)
		}
		again := failed.Read(failed.Message{Queue: queue, Properties: p.Properties, Body: p.Body})
		assert.Truef(t, again.Attempts == 0 || again.System == failed.SystemCelery || again.System == failed.SystemBabelQueue,
			"%d attempts after a replay", again.Attempts)
	})
}
