package worker_test

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest/amqp10"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/sidecartest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// longestPause is how long an undeliverable message can keep the others waiting.
var longestPause = brokertest.Slow(8 * time.Second)

// newPipelineForAMQP10 skips brokers that do not speak AMQP 1.0 by themselves.
func newPipelineForAMQP10(t *testing.T, queueType string) (*testPipeline, *amqp10.Client) {
	t.Helper()
	p := newPipelineOf(t, newSpec(queueType, []string{"100ms"}, 3, "orders.created"))
	p.Needs(t, brokertest.Release(">= 4.0"))
	return p, amqp10.Dial(t, p.Broker)
}

// forEachQueueType runs a test on quorum and classic queues.
func forEachQueueType(t *testing.T, test func(*testing.T, *testPipeline, *amqp10.Client)) {
	t.Helper()
	brokertest.QueueTypes(t, func(t *testing.T, queueType string) {
		p, client := newPipelineForAMQP10(t, queueType)
		test(t, p, client)
	})
}

// withID returns a message with a message-id, which names its purpose.
func withID(id string) amqp10.Message {
	return amqp10.Message{Properties: amqp10.List(amqp10.Text(id)), Data: []byte("body of " + id)}
}

// withUUID returns a message that cannot be delivered.
func withUUID(id string) amqp10.Message {
	m := withID(id)
	m.ApplicationProperties = amqp10.Map(amqp10.Text("order"), amqp10.UUID(), amqp10.Text("tenant"), amqp10.Text("a"))
	return m
}

// undeliverable returns messages that a broker cannot deliver over AMQP 0-9-1, by their dead-letter-error.
func (p *testPipeline) undeliverable() map[string]amqp10.Message {
	long := strings.Repeat("x", 300)
	messages := map[string]amqp10.Message{}
	add := func(change string, build func(*amqp10.Message)) {
		m := withID(fmt.Sprint("bad-", len(messages)))
		build(&m)
		messages[change] = m
	}
	values := map[string]amqp10.Value{
		"a UUID, written as text":                      amqp10.UUID(),
		"a char, written as text":                      amqp10.Fixed(0x73, 0, 0, 0, 'x'),
		"an array in another value, written as a list": amqp10.List(amqp10.Array(0xa1, amqp10.Value("\x01a"))),
		"a key of 300 bytes, left out":                 amqp10.Map(amqp10.Symbol(long), amqp10.Text("v")),
		"a key that is not text, written as text":      amqp10.Map(amqp10.Fixed(0x54, 1), amqp10.Text("v")),
		`"x-k": a UUID, written as text; `:             amqp10.List(amqp10.UUID(), amqp10.Fixed(0x73, 0, 0, 0, 'x')),
		`"x-k": nested deeper than 32 levels, cut off`: amqp10.Nested(40, amqp10.UUID()),
	}
	for change, value := range values {
		add(change, func(m *amqp10.Message) { m.Annotations = amqp10.Map(amqp10.Symbol("x-k"), value) })
	}
	if !p.VersionAtLeast("4.1") {
		// In an annotation, this value could not be delivered over AMQP 1.0, either.
		for change, value := range map[string]amqp10.Value{
			"a decimal number, its bytes written as text": amqp10.Fixed(0x74, 0, 0, 0, 1),
			"NaN, written as text":                        amqp10.Fixed(0x72, 0x7f, 0xc0, 0, 0),
		} {
			add(change, func(m *amqp10.Message) { m.ApplicationProperties = amqp10.Map(amqp10.Text("k"), value) })
		}
	}
	add(`application property "order": a UUID, written as text`, func(m *amqp10.Message) { *m = withUUID("bad-property") })
	add(`property "content-type": 300 bytes, left out: "xxx`, func(m *amqp10.Message) {
		m.Properties, m.Data = amqp10.List(amqp10.Text("bad-type"), amqp10.Null, amqp10.Null, amqp10.Null, amqp10.Null, amqp10.Null, amqp10.Symbol(long)), []byte("body of bad-type")
	})
	add(`property "content-encoding": 300 bytes, left out: "xxx`, func(m *amqp10.Message) {
		m.Properties, m.Data = amqp10.List(amqp10.Text("bad-encoding"), amqp10.Null, amqp10.Null, amqp10.Null, amqp10.Null, amqp10.Null, amqp10.Null, amqp10.Symbol(long)), []byte("body of bad-encoding")
	})
	add(`property "correlation-id": not text, a UUID, a ulong or binary, left out`, func(m *amqp10.Message) {
		m.Properties, m.Data = amqp10.List(amqp10.Text("bad-id"), amqp10.Null, amqp10.Null, amqp10.Null, amqp10.Null, amqp10.Symbol("id")), []byte("body of bad-id")
	})
	add(`footer "f": a key that does not begin with x-, left out`, func(m *amqp10.Message) {
		m.Body = append(amqp10.Section(0x75, amqp10.Binary(m.Data)), amqp10.Section(0x78, amqp10.Map(amqp10.Symbol("f"), amqp10.Text("v")))...)
	})
	return messages
}

func TestUndeliverableMessagesAreParked(t *testing.T) {
	t.Parallel()
	forEachQueueType(t, func(t *testing.T, p *testPipeline, client *amqp10.Client) {
		bad := p.undeliverable()
		sender := client.To(t, "/queues/orders.created")
		sent := 0
		honest := func() {
			sender.Send(t, withID(fmt.Sprint("good-", sent)).Encode())
			sent++
		}
		for _, change := range slices.Sorted(maps.Keys(bad)) {
			honest()
			sender.Send(t, bad[change].Encode())
		}
		for sent < goods {
			honest()
		}
		client.Reject(t, "orders.created", goods+len(bad))

		began := time.Now()
		r := p.work(t)
		c := p.consume(t, "orders.created", func(d amqp.Delivery) error { return d.Ack(false) })
		brokertest.Eventually(t, func() error { return c.has(goods) })
		if took := time.Since(began); took > longestPause {
			t.Errorf("all honest messages retried after %s", took)
		}
		brokertest.Eventually(t, func() error { return p.countIs(t, p.names.FailedQueue(), len(bad)) })
		texts := map[string]bool{}
		for range bad {
			d := p.awaitFailed(t, "malformed")
			text, _ := d.Headers["dead-letter-error"].(string)
			texts[text] = true
			if d.Headers["retry-queue"] != "orders.created" || d.Headers["retry-count"] != int64(1) || string(d.Body) != "body of "+d.MessageId {
				t.Errorf("%q: body %q, headers %v", d.MessageId, d.Body, d.Headers)
			}
		}
		for change := range bad {
			if !slices.ContainsFunc(slices.Collect(maps.Keys(texts)), func(text string) bool { return strings.Contains(text, change) }) {
				t.Errorf("no dead-letter-error has %q: %q", change, slices.Collect(maps.Keys(texts)))
			}
		}
		if n := r.Log.Count("message parked in the failed queue"); n != len(bad) {
			t.Errorf("%d log lines about parked messages, want %d:\n%s", n, len(bad), r.Log)
		}
		if strings.Contains(r.Log.String(), "xxx") {
			t.Errorf("the log has a property's value:\n%s", r.Log)
		}
		brokertest.Eventually(t, func() error { return p.countIs(t, p.names.Inbox(), 0) })
	})
}

// AMQP 1.0 shows nothing wrong with a message whose consumer has copied the broker's annotations.
func TestMessagesWithCopiedDeathsAreParked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ spoiled, workers int }{"one": {1, 1}, "several": {5, 1}, "several, three workers": {5, 3}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			forEachQueueType(t, func(t *testing.T, p *testPipeline, client *amqp10.Client) {
				messages := []amqp10.Message{}
				for i := range c.spoiled {
					messages = append(messages, withID(fmt.Sprint("spoiled-", i)))
				}
				client.Spoil(t, "orders.created", p.names.Inbox(), messages...)
				p.fillInbox(t, goods, func(i int) amqp.Publishing {
					return amqp.Publishing{MessageId: fmt.Sprint("good-", i), Headers: amqp.Table{
						"retry-queue": "orders.created", "nested": amqp.Table{"k": []any{int64(i)}},
					}}
				})
				var logs []*sidecartest.Log
				began := time.Now()
				for range c.workers {
					logs = append(logs, p.work(t).Log)
				}
				good := p.consume(t, "orders.created", acknowledge)
				brokertest.Eventually(t, func() error { return good.has(goods) })
				sessions := 0
				for _, log := range logs {
					sessions += log.Count("msg=consuming")
				}
				t.Logf("%s, %d sessions", time.Since(began), sessions)
				if sessions > 20*c.spoiled {
					t.Errorf("%d sessions", sessions)
				}
				for range c.spoiled {
					d := p.awaitFailed(t, "malformed")
					text, _ := d.Headers["dead-letter-error"].(string)
					if d.Headers["retry-queue"] != "orders.created" || string(d.Body) != "body of "+d.MessageId ||
						!strings.HasPrefix(d.MessageId, "spoiled-") || !strings.Contains(text, "annotations, which a client copied") {
						t.Errorf("%q: body %q, headers %v", d.MessageId, d.Body, d.Headers)
					}
				}
				p.expectEmpty(t, p.names.FailedQueue())
				for _, d := range good.deliveries() {
					if _, whole := d.Headers["nested"].(amqp.Table); !whole {
						t.Errorf("%q lacks headers: %v", d.MessageId, d.Headers)
					}
				}
			})
		})
	}
}

// A silent queue behind the failed exchange holds up undeliverable messages no more than others.
func TestUndeliverableMessagesBesideASilentQueue(t *testing.T) {
	t.Parallel()
	const n = 5
	p, client := newPipelineForAMQP10(t, topology.Quorum)
	q := newSilentQueue(p.names.FailedExchange(), p.names.Inbox())
	p.workAs(t, p.throughProxy(t, &proxy{rewrite: q.fromWorker, answers: q.toWorker}), p.spec.Worker())
	good := p.consume(t, "orders.created", acknowledge)
	sender := client.To(t, "/queues/"+p.names.Inbox())
	for i := range n {
		sender.Send(t, withUUID(fmt.Sprint("bad-", i)).Encode())
		p.Publish(t, p.names.DeadLetterExchange(), "orders.created", amqp.Publishing{
			MessageId: fmt.Sprint("good-", i), Headers: amqp.Table{"retry-queue": "orders.created"},
		})
	}
	brokertest.Eventually(t, func() error { return good.has(n) })
	brokertest.Eventually(t, func() error { return p.countIs(t, p.names.Inbox(), 0) })
	// They come from the queue whose answer alone is missing, and from the refused queue.
	brokertest.Eventually(t, func() error { return p.countIs(t, p.names.FailedQueue(), 2*n) })
}

// The messages in front can be for a silent queue.
func TestUndeliverableMessagesBehindUnansweredOnes(t *testing.T) {
	t.Parallel()
	const n = 20
	p := newPipelineOf(t, newSpec(topology.Quorum, []string{"100ms"}, 2, "good", "silent"))
	p.Needs(t, brokertest.Release(">= 4.0"))
	q := newSilentQueue(p.names.FailedRouteExchange(), "silent")
	good := p.consume(t, "good", acknowledge)
	sender := amqp10.Dial(t, p.Broker).To(t, "/queues/"+p.names.Inbox())
	for i := range n {
		p.Publish(t, p.names.DeadLetterExchange(), "silent", amqp.Publishing{Headers: amqp.Table{"retry-queue": "silent", "retry": "never"}})
		p.Publish(t, p.names.DeadLetterExchange(), "good", amqp.Publishing{MessageId: fmt.Sprint("good-", i), Headers: amqp.Table{"retry-queue": "good"}})
		if i%5 == 4 {
			sender.Send(t, withUUID(fmt.Sprint("bad-", i)).Encode())
		}
	}
	p.workAs(t, p.throughProxy(t, &proxy{rewrite: q.fromWorker, answers: q.toWorker}), p.spec.Worker())
	brokertest.Eventually(t, func() error { return good.has(n) })
	brokertest.Eventually(t, func() error { return p.countIs(t, p.names.Inbox(), 0) })
}

// Two workers meet the same messages, and each gets some of the other's.
func TestUndeliverableMessagesAmongMany(t *testing.T) {
	t.Parallel()
	forEachQueueType(t, func(t *testing.T, p *testPipeline, client *amqp10.Client) {
		const messages, every = 400, 10
		sender := client.To(t, "/queues/orders.created")
		for i := range messages {
			m := withID(strconv.Itoa(i))
			if i%every == 0 {
				m = withUUID(strconv.Itoa(i))
			}
			sender.Send(t, m.Encode())
		}
		client.Reject(t, "orders.created", messages)

		last, pause := time.Now(), time.Duration(0)
		began := last
		var mu sync.Mutex
		seen, copies := map[string]bool{}, 0
		p.consume(t, "orders.created", func(d amqp.Delivery) error {
			mu.Lock()
			defer mu.Unlock()
			now := time.Now()
			pause, last = max(pause, now.Sub(last)), now
			if seen[d.MessageId] {
				copies++
			}
			seen[d.MessageId] = true
			return d.Ack(false)
		})
		first, second := p.work(t), p.work(t)
		const honest = messages - messages/every
		brokertest.Eventually(t, func() error {
			mu.Lock()
			defer mu.Unlock()
			if len(seen) < honest {
				return fmt.Errorf("%d of %d messages retried", len(seen), honest)
			}
			return nil
		})
		brokertest.Eventually(t, func() error { return p.countIs(t, p.names.Inbox(), 0) })
		mu.Lock()
		defer mu.Unlock()
		t.Logf("%s, longest pause %s, %d copies, %d and %d sessions", time.Since(began), pause, copies,
			first.Log.Count("msg=consuming"), second.Log.Count("msg=consuming"))
		if pause > longestPause || len(seen) != honest {
			t.Errorf("a pause of %s, %d messages retried, want %d", pause, len(seen), honest)
		}
		parked := map[string]bool{}
		for range messages / every {
			d := p.awaitFailed(t, "malformed")
			if i, err := strconv.Atoi(d.MessageId); err != nil || i%every != 0 || parked[d.MessageId] || d.Headers["order"] != "00010203-0405-0607-0809-0a0b0c0d0e0f" {
				t.Errorf("parked %q (once more: %t) with headers %v", d.MessageId, parked[d.MessageId], d.Headers)
			}
			parked[d.MessageId] = true
		}
		p.expectEmpty(t, p.names.FailedQueue())
	})
}

// The window is wide when the message comes. The next session handles all messages that were in flight one by one.
func TestUndeliverableMessageInAWideWindow(t *testing.T) {
	t.Parallel()
	forEachQueueType(t, func(t *testing.T, p *testPipeline, client *amqp10.Client) {
		const half = 200
		for part := range 2 {
			p.fillInbox(t, half, func(i int) amqp.Publishing {
				return amqp.Publishing{MessageId: fmt.Sprint(part, "-", i), Headers: amqp.Table{"retry-queue": "orders.created"}}
			})
			if part == 0 {
				client.To(t, "/exchanges/orders.dlx").Send(t, withUUID("bad").Encode())
			}
		}
		a := p.collect(t, "orders.created")
		began := time.Now()
		r := p.work(t)
		a.awaitAtLeast(t, 2*half)
		took := time.Since(began)
		p.awaitFailed(t, "malformed")
		p.expectEmpty(t, p.names.FailedQueue())
		sessions := r.Log.Count("msg=consuming")
		caused := r.series(t)["messages_redelivered_total"]
		t.Logf("%s, %d sessions, %d copies, %.0f redeliveries", took, sessions, a.copies(), caused)
		if a.copies() > 0 && caused == 0 {
			t.Errorf("%d copies, but no redelivery is counted", a.copies())
		}
		if sessions > half/10 { // a busy machine takes more sessions than an idle one
			t.Errorf("%d sessions, want far fewer than there were messages in flight", sessions)
		}
	})
}

// The original stays in place until its copy is kept.
func TestUndeliverableMessageStaysWhileItCannotBeParked(t *testing.T) {
	t.Parallel()
	for name, warning := range map[string]string{"unbound": "the failed or unrouted exchange has no queue", "missing": "NOT_FOUND"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			forEachQueueType(t, func(t *testing.T, p *testPipeline, client *amqp10.Client) {
				if name == "unbound" {
					p.unbindFailedQueue(t)
				} else {
					p.deleteFailedExchange(t)
				}
				client.To(t, "/exchanges/orders.dlx").Send(t, withUUID("bad").Encode())
				r := p.work(t)
				r.Log.Await(t, warning, 2)
				brokertest.Eventually(t, func() error { return p.countIs(t, p.names.Inbox(), 1) })
				p.expectEmpty(t, p.names.FailedQueue())
				p.Create(t, p.spec.Expand())
				if d := p.awaitFailed(t, "malformed"); d.MessageId != "bad" || d.Headers["tenant"] != "a" {
					t.Errorf("parked %q with headers %v", d.MessageId, d.Headers)
				}
				brokertest.Eventually(t, func() error { return p.countIs(t, p.names.Inbox(), 0) })
			})
		})
	}
}

// The names need escaping in an address, the connection is secured, and the user has only the needed permissions.
func TestUndeliverableMessageOverTLS(t *testing.T) {
	t.Parallel()
	spec := newSpec(topology.Quorum, []string{"100ms"}, 3, "orders.created")
	spec.Name = "my pipeline.%ü+"
	p := newPipelineOf(t, spec)
	p.Needs(t, brokertest.Release(">= 4.0"))
	amqp10.Dial(t, p.Broker).To(t, "/queues/my%20pipeline.%25%C3%BC%2B.inbox").Send(t, withUUID("bad").Encode())
	user, password := p.User(t, "", "^$", `^my pipeline\.%ü\+\.(retry|return|failed(\.route)?)$|^amq\.default$`, `^my pipeline\.%ü\+\.inbox$`)
	server, ca := brokertest.ServerTLS(t)
	p.workAs(t, withUser(t, p.ThroughTLS(t, server, "cacertfile", ca), user, password), p.spec.Worker())
	require.Equal(t, "bad", p.awaitFailed(t, "malformed").MessageId)
	p.Publish(t, p.names.DeadLetterExchange(), "", amqp.Publishing{Headers: amqp.Table{"retry-queue": "orders.created"}})
	p.await(t, "orders.created")
}

// A body that is no data stays encoded, as the broker keeps it.
func TestUndeliverableMessageWithAValueForABody(t *testing.T) {
	t.Parallel()
	p, client := newPipelineForAMQP10(t, topology.Quorum)
	m := withUUID("bad")
	m.Body = amqp10.Section(0x77, amqp10.Map(amqp10.Symbol("id"), amqp10.UUID()))
	client.To(t, "/exchanges/orders.dlx").Send(t, m.Encode())
	p.work(t)
	if d := p.awaitFailed(t, "malformed"); d.Type != "amqp-1.0" || string(d.Body) != string(m.Body) {
		t.Errorf("type %q, body %x, want %x", d.Type, d.Body, m.Body)
	}
}

// Later brokers leave out numbers that AMQP 0-9-1 lacks. Such a message is like any other, and ends no session.
func TestNumbersThatOnlyAMQP10Has(t *testing.T) {
	t.Parallel()
	p, client := newPipelineForAMQP10(t, topology.Quorum)
	p.Needs(t, brokertest.Release(">= 4.1"))
	sender, sent := client.To(t, "/exchanges/orders.dlx"), 0
	for name, value := range map[string]amqp10.Value{
		"decimal32": amqp10.Fixed(0x74, 0, 0, 0, 1), "decimal64": amqp10.Fixed(0x84, 0, 0, 0, 0, 0, 0, 0, 1),
		"NaN": amqp10.Fixed(0x72, 0x7f, 0xc0, 0, 0), "infinity": amqp10.Fixed(0x82, 0x7f, 0xf0, 0, 0, 0, 0, 0, 0),
	} {
		annotated, property := withID(name), withID(name)
		annotated.Annotations = amqp10.Map(amqp10.Symbol("x-k"), value)
		property.ApplicationProperties = amqp10.Map(amqp10.Text("k"), value)
		sender.Send(t, annotated.Encode())
		sender.Send(t, property.Encode())
		sent += 2
	}
	r := p.work(t)
	for range sent {
		if d := p.awaitFailed(t, "unknown_queue"); d.Headers["x-k"] != nil || d.Headers["k"] != nil {
			t.Errorf("%s arrives as %v", d.MessageId, d.Headers)
		}
	}
	require.Equal(t, 1, r.Log.Count("msg=consuming"))
}

// If a worker is killed after it parked the copy and before it accepted the original, there is one copy too many.
func TestWorkerIsKilledBeforeItAcceptsTheOriginal(t *testing.T) {
	t.Parallel()
	p, client := newPipelineForAMQP10(t, topology.Quorum)
	client.To(t, "/exchanges/orders.dlx").Send(t, withUUID("bad").Encode())
	var once sync.Once
	killed := make(chan struct{})
	var w *sidecartest.Process
	started := make(chan struct{})
	uri := brokertest.Between(t, p.URI, func(worker, broker net.Conn) {
		go func() {
			defer func() { _ = broker.Close() }()
			data := make([]byte, 64<<10)
			for {
				n, err := worker.Read(data)
				if err != nil {
					return
				}
				disposition := []byte{0x00, 0x53, 0x15}
				if bytes.Contains(data[:n], disposition) {
					once.Do(func() {
						<-started
						w.Kill()
						close(killed)
					})
					return
				}
				if _, err := broker.Write(data[:n]); err != nil {
					return
				}
			}
		}()
		_, _ = io.Copy(worker, broker)
	})
	w = sidecartest.Start(t, p.environment(t, uri))
	close(started)
	<-killed
	w.Wait(t)
	brokertest.Eventually(t, func() error { return p.countIs(t, p.names.FailedQueue(), 1) })

	again := p.start(t)
	brokertest.Eventually(t, func() error { return p.countIs(t, p.names.FailedQueue(), 2) })
	brokertest.Eventually(t, func() error { return p.countIs(t, p.names.Inbox(), 0) })
	for range 2 {
		if d := p.awaitFailed(t, "malformed"); d.MessageId != "bad" || string(d.Body) != "body of bad" {
			t.Errorf("parked %q with body %q", d.MessageId, d.Body)
		}
	}
	require.Zero(t, again.End(t, syscall.SIGTERM), again.Log)
}

// undeliverableOfPlugin returns messages that RabbitMQ 3 takes over AMQP 1.0 and cannot deliver over AMQP 0-9-1, by
// their dead-letter-error.
func undeliverableOfPlugin() map[string]amqp10.Message {
	long, number := strings.Repeat("x", 300), amqp10.Fixed(0x80, 0, 0, 0, 0, 0, 0, 0, 7)
	messages := map[string]amqp10.Message{}
	for change, fields := range map[string]map[int]amqp10.Value{
		`property "message-id": not text, written as text`:       {0: number},
		`property "correlation-id": not text, written as text`:   {5: amqp10.Fixed(0x53, 8)},
		`property "message-id": 300 bytes, left out: "xxx`:       {0: amqp10.Text(long)},
		`property "reply-to": 300 bytes, left out: "xxx`:         {4: amqp10.Text(long)},
		`property "content-type": 300 bytes, left out: "xxx`:     {6: amqp10.Symbol(long)},
		`property "content-encoding": not text, written as text`: {7: amqp10.Fixed(0x70, 0, 0, 0, 9)},
		`property "creation-time": not a time, left out`:         {9: amqp10.Text("noon")},
		`property "correlation-id": not text, left out`:          {5: amqp10.Fixed(0x82, 0, 0, 0, 0, 0, 0, 0, 1)},
		`application property "k": a UUID, written as text`:      {},
	} {
		properties := []amqp10.Value{}
		for i := range 10 {
			properties = append(properties, amqp10.Null)
			if value, ok := fields[i]; ok {
				properties[i] = value
			}
		}
		m := amqp10.Message{Properties: amqp10.List(properties...), Data: []byte(change)}
		if len(fields) == 0 {
			m.Properties = amqp10.List(number)
			m.ApplicationProperties = amqp10.Map(amqp10.Text("k"), amqp10.UUID())
		}
		messages[change] = m
	}
	return messages
}

// The plugin rabbitmq_amqp1_0 accepts messages that make the broker close each AMQP 0-9-1 connection.
func TestUndeliverableMessagesOfThePluginAreParked(t *testing.T) {
	t.Parallel()
	brokertest.QueueTypes(t, func(t *testing.T, queueType string) {
		p := newPipelineOf(t, newSpec(queueType, []string{"100ms"}, 3, "orders.created"))
		p.Needs(t, brokertest.Release("< 4.0"), brokertest.Plugin("rabbitmq_amqp1_0"))
		client := amqp10.Dial(t, p.Broker)
		sender := client.To(t, client.Queue("orders.created"))
		bad := undeliverableOfPlugin()
		for _, m := range bad {
			sender.Send(t, m.Encode())
			// The plugin leaves this value to the reader, since 0-9-1 has bytes for it.
			sender.Send(t, withUUID("good").Encode())
		}
		client.Reject(t, "orders.created", 2*len(bad))
		user, password := p.User(t, "", "^$", `^orders\.(retry|return|failed(\.route)?)$|^amq\.default$`, `^orders\.inbox$`)
		r := p.workAs(t, withUser(t, p.URI, user, password), p.spec.Worker())
		c := p.consume(t, "orders.created", func(d amqp.Delivery) error { return d.Ack(false) })
		brokertest.Eventually(t, func() error {
			if n := len(c.deliveries()); n < len(bad) {
				return fmt.Errorf("%d of %d messages retried", n, len(bad))
			}
			return nil
		})
		for range bad {
			d := p.awaitFailed(t, "malformed")
			if text, _ := d.Headers["dead-letter-error"].(string); !strings.Contains(text, string(d.Body)) {
				t.Errorf("%q is parked with dead-letter-error %q", d.Body, text)
			}
			if change := string(d.Body); strings.Contains(change, "written as text") && d.MessageId+d.CorrelationId+d.ContentEncoding == "" {
				t.Errorf("%q is lost", change)
			}
		}
		p.expectEmpty(t, p.names.FailedQueue())
		brokertest.Eventually(t, func() error { return p.countIs(t, p.names.Inbox(), 0) })
		if n := len(c.deliveries()); n != len(bad) {
			t.Errorf("%d messages retried, want %d", n, len(bad))
		}
		t.Logf("%d sessions", r.Log.Count("msg=consuming"))
	})
}

// A broker closes the channel over a reply-to that it would replace. Outstanding messages must not come twice.
func TestDirectReplyToAmongMany(t *testing.T) {
	t.Parallel()
	forEachQueueType(t, func(t *testing.T, p *testPipeline, client *amqp10.Client) {
		const messages, every = 1000, 50
		addresses := []string{"amq.rabbitmq.reply-to"}
		if p.VersionAtLeast("4.3") {
			addresses = append(addresses, "/queues/amq.rabbitmq.reply-to")
		}
		sender := client.To(t, "/queues/orders.created")
		for i := range messages {
			m := withID(fmt.Sprint("good-", i))
			if i%every == 0 {
				m.Properties = amqp10.List(amqp10.Text(fmt.Sprint("good-", i)), amqp10.Null, amqp10.Null, amqp10.Null,
					amqp10.Text(addresses[i/every%len(addresses)]))
			}
			sender.Send(t, m.Encode())
		}
		client.Reject(t, "orders.created", messages)

		r := p.work(t)
		c := p.consume(t, "orders.created", func(d amqp.Delivery) error { return d.Ack(false) })
		brokertest.Eventually(t, func() error { return c.has(messages) })
		p.expectSettled(t, r)
		p.expectEmpty(t, p.names.FailedQueue())
		seen := map[string]int{}
		for _, d := range c.deliveries() {
			seen[d.MessageId]++
			i, err := strconv.Atoi(strings.TrimPrefix(d.MessageId, "good-"))
			if want := i%every == 0; err != nil || (d.Headers["retry-reply-to"] == "amq.rabbitmq.reply-to") != want || d.ReplyTo != "" {
				t.Errorf("%q has the reply-to %q and the headers %v", d.MessageId, d.ReplyTo, d.Headers)
			}
		}
		if copies := len(c.deliveries()) - messages; copies != 0 || len(seen) != messages {
			t.Errorf("%d messages came, and %d copies", len(seen), copies)
		}
	})
}
