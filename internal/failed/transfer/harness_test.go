package transfer_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/transfer"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

// quiet is how long a queue delivers no message before it counts as empty.
const quiet = 300 * time.Millisecond

// noProperties are the encoded properties of a message without properties.
var noProperties = []byte{0, 0}

// bench is a queue to go over, and a queue to publish to.
type bench struct {
	*brokertest.Broker
	transfer.Queue
	uri string
}

const (
	source = "failed"
	target = "work"
)

// types runs the test on every type of queue, since a run must act the same on all of them.
func types(t *testing.T, do func(*testing.T, bench)) {
	t.Helper()
	brokertest.QueueTypes(t, func(t *testing.T, queueType string) {
		do(t, newBench(t, queueType))
	})
}

func newBench(t *testing.T, queueType string) bench {
	t.Helper()
	b := bench{Broker: brokertest.New(t)}
	b.uri = b.URI
	limit := map[string]any{} // as pipelines declare it
	if queueType == "quorum" {
		limit["x-delivery-limit"] = 1_000_000
	}
	b.DeclareQueue(t, source, queueType, limit)
	b.DeclareQueue(t, target, queueType, nil)
	b.Queue = transfer.Queue{Name: source, Open: b.open}
	return b
}

func (b *bench) open(ctx context.Context, purpose string) (amqpconn.Raw, error) {
	uri, err := amqpconn.ParseURI(b.uri)
	if err != nil {
		return amqpconn.Raw{}, err
	}
	return amqpconn.ConnectRaw(ctx, uri, b.Vhost, amqpconn.Client{Name: purpose})
}

// kind asks for the type of the queue.
func (b *bench) kind(t *testing.T) (string, error) {
	t.Helper()
	conn, err := b.open(t.Context(), "kind")
	require.NoError(t, err)
	defer amqpconn.HangUp(conn.Connection)
	return b.KindOver(t.Context(), conn)
}

// fill publishes messages with these bodies to the queue.
func (b *bench) fill(t *testing.T, bodies ...string) {
	t.Helper()
	ch := b.Channel(t)
	require.NoError(t, ch.Confirm(false))
	var last *amqp.DeferredConfirmation
	for i, body := range bodies {
		confirm, err := ch.PublishWithDeferredConfirm("", source, true, false, amqp.Publishing{DeliveryMode: 2, Body: []byte(body)})
		require.NoError(t, err)
		if last = confirm; i%1000 == 999 {
			wait(t, last)
		}
	}
	wait(t, last)
	_ = ch.Close()
}

func wait(t *testing.T, confirm *amqp.DeferredConfirmation) {
	t.Helper()
	ok, err := confirm.WaitContext(t.Context())
	require.Truef(t, ok && err == nil, "not confirmed: %v", err)
}

// numbered returns n distinct bodies.
func numbered(prefix string, n int) []string {
	bodies := make([]string, n)
	for i := range bodies {
		bodies[i] = fmt.Sprintf("%s-%05d", prefix, i)
	}
	return bodies
}

// move publishes a message to the target.
func move(e *failed.Entry) transfer.Choice { return moveTo("", target, e) }

func moveTo(exchange, key string, e *failed.Entry) transfer.Choice {
	return transfer.Choice{Publish: &failed.Publishing{Exchange: exchange, RoutingKey: key, Properties: noProperties, Body: e.Body}}
}

// only publishes messages whose bodies contain this part.
func only(part string) func(*failed.Entry) transfer.Choice {
	return func(e *failed.Entry) transfer.Choice {
		if !strings.Contains(string(e.Body), part) {
			return transfer.Choice{}
		}
		return move(e)
	}
}

// look goes over the queue without any change.
func (b *bench) look(ctx context.Context, t *testing.T) transfer.Result {
	t.Helper()
	result, err := transfer.Run(ctx, b.Queue, transfer.Job{Decide: func(*failed.Entry) transfer.Choice { return transfer.Choice{} }})
	require.NoError(t, err)
	return result
}

// replay looks, and then runs the job.
func (b *bench) replay(ctx context.Context, t *testing.T, job transfer.Job) (transfer.Result, error) {
	t.Helper()
	b.look(ctx, t)
	job.Publishes = true
	return transfer.Run(ctx, b.Queue, job)
}

// drain takes all messages of a queue, and returns their bodies, sorted.
func (b *bench) drain(t *testing.T, queue string) []string {
	t.Helper()
	ch := b.Channel(t)
	defer func() { _ = ch.Close() }()
	require.NoError(t, ch.Qos(2000, 0, false))
	deliveries, err := ch.Consume(queue, "drain", true, false, false, false, nil)
	require.NoError(t, err)
	var bodies []string
	for {
		if d, came := brokertest.Within(deliveries, quiet); came {
			bodies = append(bodies, string(d.Body))
		} else {
			if q, err := ch.QueueDeclarePassive(queue, true, false, false, false, nil); err != nil {
				t.Fatal(err)
			} else if q.Messages > 0 {
				continue
			}
			require.NoError(t, ch.Cancel("drain", false))
			for d := range deliveries { // delivered, but not handed over yet
				bodies = append(bodies, string(d.Body))
			}
			slices.Sort(bodies)
			return bodies
		}
	}
}

// expect fails unless the queue has exactly these messages.
func (b *bench) expect(t *testing.T, queue string, want []string) {
	t.Helper()
	got, missing, extra := map[string]int{}, 0, 0
	for _, body := range b.drain(t, queue) {
		got[body]++
	}
	for _, body := range want {
		got[body]--
	}
	for n := range maps.Values(got) {
		missing, extra = missing+max(0, -n), extra+max(0, n)
	}
	assert.Zerof(t, missing+extra, "%s: %d messages are missing, %d are too many", queue, missing, extra)
}
