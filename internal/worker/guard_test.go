package worker_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/worker"
)

// Messages that the client library cannot decode go to the failed queue, with and without TLS. Other messages are not
// affected.
func TestUndecodableMessages(t *testing.T) {
	t.Parallel()
	server, ca := brokertest.ServerTLS(t)
	for queueType, uri := range map[string]func(*testPipeline) string{
		topology.Quorum:  func(p *testPipeline) string { return p.URI },
		topology.Classic: func(p *testPipeline) string { return p.ThroughTLS(t, server, "cacertfile", ca) },
	} {
		t.Run(queueType, func(t *testing.T) {
			t.Parallel()
			p := newPipelineOf(t, newSpec(queueType, []string{"100ms"}, 3, "orders.created"))
			r := p.workAs(t, uri(p), p.spec.Worker())
			poisons := p.publishPoisons(t)
			// The library could not consume them here, either.
			p.take(t, "orders.created", "reject_requeue_false")
			c := p.consume(t, "orders.created", func(d amqp.Delivery) error { return d.Ack(false) })
			brokertest.Eventually(t, func() error { return p.countIs(t, p.names.FailedQueue(), len(poisons)) })
			brokertest.Eventually(t, func() error { return c.has(goods) })
			require.Equal(t, 1, r.Log.Count("msg=consuming"))
			require.Zero(t, r.Log.Count("level=ERROR"))
			for _, id := range poisons {
				require.Equal(t, 1, r.Log.Count("message_id="+id), id)
			}
			p.expectOriginals(t, poisons)
		})
	}
}

// goods is how many good messages publishPoisons publishes.
const goods = 20

// has returns an error unless this many good messages have come.
func (c *consumer) has(n int) error {
	got := map[string]bool{}
	for _, d := range c.deliveries() {
		if strings.HasPrefix(d.MessageId, "good") && d.Headers["retry-count"] == int64(1) {
			got[d.MessageId] = true
		}
	}
	if len(got) != n {
		return fmt.Errorf("%d of %d good messages retried", len(got), n)
	}
	return nil
}

// publishPoisons publishes messages that the library cannot decode, each between good ones. It returns the ids of the
// messages that the broker passes on unchanged.
func (p *testPipeline) publishPoisons(t *testing.T) (ids []string) {
	t.Helper()
	disguised := p.disguised(t)
	many := amqp.Table{}
	for i := range 9000 {
		many[fmt.Sprintf("k%04d", i)] = nil
	}
	const direct = "direct"
	for id, headers := range map[string]amqp.Table{
		"nested": nested(),
		"many":   many,
		"large":  {"k": strings.Repeat("x", 130_900)},
		direct:   {"Lunknown": int64(1), "retry-queue": "orders.created"},
	} {
		for i := range goods / 4 {
			disguised(t, "", "orders.created", amqp.Publishing{MessageId: fmt.Sprintf("good-%s-%d", id, i)})
		}
		exchange, key := "", "orders.created"
		if id == direct {
			// A dead-lettering queue encodes the message again, with known types only.
			exchange = p.names.DeadLetterExchange()
		}
		disguised(t, exchange, key, amqp.Publishing{MessageId: id, Headers: headers})
		if id != direct || !p.VersionAtLeast("3.13") && p.spec.QueueType == topology.Classic {
			ids = append(ids, id)
		}
	}
	return ids
}

// disguised returns a function that publishes through a proxy, which gives the header "Lunknown" the type L.
func (p testVhost) disguised(t *testing.T) func(*testing.T, string, string, amqp.Publishing) {
	t.Helper()
	uri := p.throughProxy(t, &proxy{rewrite: func(frame []byte) {
		if at := bytes.Index(frame, []byte("\x08Lunknownl")); at >= 0 {
			frame[at+len("\x08Lunknown")] = 'L'
		}
	}})
	conn, err := amqp.DialConfig(uri, amqp.Config{Vhost: p.Vhost})
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	ch, err := conn.Channel()
	require.NoError(t, err)
	require.NoError(t, ch.Confirm(false))
	return func(t *testing.T, exchange, key string, m amqp.Publishing) {
		t.Helper()
		m.DeliveryMode = amqp.Persistent
		confirm, err := ch.PublishWithDeferredConfirm(exchange, key, true, false, m)
		require.NoError(t, err)
		if ack, err := confirm.WaitContext(t.Context()); err != nil || !ack {
			t.Fatalf("publish %q: %v %v", m.MessageId, ack, err)
		}
	}
}

// apiMessage is a message in the management API, which can decode every message.
type apiMessage struct {
	Properties struct {
		ID      string         `json:"message_id"`
		Headers map[string]any `json:"headers"`
	} `json:"properties"`
}

// take takes all messages of a queue through the management API.
func (p testVhost) take(t *testing.T, queue, ackMode string) (messages []apiMessage) {
	t.Helper()
	_, answer := p.Request(t, http.MethodPost, p.Path("queues", queue)+"/get", map[string]any{
		"count": 100, "ackmode": ackMode, "encoding": "auto",
	})
	require.NoError(t, json.Unmarshal(answer, &messages))
	return messages
}

// expectOriginals looks for the untouched messages in the failed queue.
func (p *testPipeline) expectOriginals(t *testing.T, ids []string) {
	t.Helper()
	found := map[string]bool{}
	for _, m := range p.take(t, p.names.FailedQueue(), "ack_requeue_false") {
		found[m.Properties.ID] = true
		deaths, err := json.Marshal(m.Properties.Headers["x-death"])
		if err != nil || !bytes.Contains(deaths, []byte(p.names.Inbox())) || m.Properties.Headers["retry-undecodable"] != nil {
			t.Errorf("%s: x-death %s", m.Properties.ID, deaths)
		}
	}
	require.Subset(t, slices.Collect(maps.Keys(found)), ids)
}

// With the worker's headers, these are too many for the library to read. It could publish them, but their return would
// not identify the message.
func TestReturnOfMoreHeadersThanCanBeRead(t *testing.T) {
	t.Parallel()
	p := newPipeline(t, "orders", []string{"100ms"}, 3, "orders.created")
	p.unbindDelays(t, "100ms")
	p.start(t)
	headers := amqp.Table{}
	for i := range 8180 {
		headers[strconv.Itoa(i)] = true
	}
	p.consume(t, "orders.created", nil)
	p.Publish(t, "", "orders.created", amqp.Publishing{MessageId: "many", Headers: headers})
	brokertest.Eventually(t, func() error { return p.countIs(t, p.names.FailedQueue(), 1) })
	p.expectOriginals(t, []string{"many"})
}

// The headers fit a frame, but not with the worker's headers. First the history is dropped, and then the message is
// left to the broker.
func TestLargeHeadersWithHistory(t *testing.T) {
	t.Parallel()
	for size, left := range map[int]bool{100_000: false, 128_800: false, 130_000: true, 130_200: true} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			t.Parallel()
			p := newPipeline(t, "orders", []string{"100ms"}, 40, "orders.created")
			r := p.work(t)
			p.consume(t, "orders.created", nil)
			large, missing := strings.Repeat("x", size), map[string]bool{"large": true}
			p.Publish(t, "", "orders.created", amqp.Publishing{MessageId: "large", Headers: amqp.Table{"k": large}})
			for i := range 10 {
				id := fmt.Sprint("good-", i)
				missing[id] = true
				p.Publish(t, "", "orders.created", amqp.Publishing{MessageId: id})
			}
			brokertest.Eventually(t, func() error { return p.countIs(t, p.names.FailedQueue(), 11) })
			for range 11 {
				d := p.await(t, p.names.FailedQueue())
				delete(missing, d.MessageId)
				if d.MessageId != "large" || !left {
					require.Equal(t, "exhausted", d.Headers["dead-letter-reason"], d.MessageId)
					continue
				}
				// The broker has moved it unchanged.
				expectHeaders(t, d, amqp.Table{"k": large, "retry-count": nil, "dead-letter-reason": nil})
				death := d.Headers["x-death"].([]any)[0].(amqp.Table)
				require.Equal(t, []any{"orders.inbox", "rejected"}, []any{death["queue"], death["reason"]})
			}
			require.Empty(t, missing)
			require.Equal(t, 1, r.Log.Count("msg=consuming"))
		})
	}
}

// A message that makes the worker panic is parked, and other messages are not affected.
func TestPanicOverAMessage(t *testing.T) {
	t.Parallel()
	for appID, reason := range map[string]any{
		worker.PanicDeciding: "worker_error",
		worker.PanicRetrying: "worker_error",
		// The worker can publish nothing, so the broker moves the message.
		worker.PanicPublishing: nil,
	} {
		t.Run(appID, func(t *testing.T) {
			t.Parallel()
			p := newPipeline(t, "orders", []string{"100ms"}, 3, "orders.created")
			r := p.workWith(t, p.URI, p.spec.Worker(), func(_ context.Context, o *worker.Options) { o.WithFaults() })
			p.Publish(t, "", "orders.created", amqp.Publishing{MessageId: "bad", AppId: appID})
			p.rejectOne(t)
			p.Publish(t, "", "orders.created", amqp.Publishing{MessageId: "good"})
			p.rejectOne(t)
			require.Equal(t, "good", p.await(t, "orders.created").MessageId)
			d := p.await(t, p.names.FailedQueue())
			if d.MessageId != "bad" || d.Headers["dead-letter-reason"] != reason {
				t.Errorf("%q: headers %v", d.MessageId, d.Headers)
			}
			log := r.Log
			if n := log.Count("msg=consuming"); n != 1 {
				t.Errorf("%d sessions, want 1", n)
			}
			if n := log.Count("stack="); n != 1 {
				t.Errorf("%d stacks, want 1", n)
			}
		})
	}
}
