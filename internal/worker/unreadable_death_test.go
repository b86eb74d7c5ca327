//go:build interop

package worker_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
)

// Before RabbitMQ 3.13, the broker cannot dead-letter a message with an unreadable x-death. One such message ends the
// at-least-once dead-lettering of all queues of the node for good. So this test has a node of its own.
func TestUnreadableDeathsStopNoDeadLettering(t *testing.T) {
	t.Parallel()
	e := newExchange(t, "1m", "100ms", "work")
	p := newPipeline(t, "orders", []string{"100ms"}, 3, "orders.created")
	e.work(t)
	p.work(t)
	for name, c := range map[string]struct {
		headers amqp.Table
		kept    bool
	}{
		"undecodable":       {amqp.Table{"more": nested()}, false},
		"too large":         {amqp.Table{"more": strings.Repeat("x", 130_800)}, false},
		"too large to wait": {amqp.Table{"more": strings.Repeat("x", 130_000)}, true},
	} {
		for death, headers := range unreadableDeaths(e.names.Inbox(), p.names.Inbox()) {
			m := amqp.Publishing{MessageId: name + ", " + death, Headers: headers}
			maps.Copy(headers, c.headers)
			headers["retry-queue"] = "orders.created"
			p.Publish(t, p.names.DeadLetterExchange(), "", m)
			e.publish(t, "work", int32(500), m)
			for _, d := range []amqp.Delivery{e.await(t, e.names.UnroutedQueue()), p.await(t, p.names.FailedQueue())} {
				_, dead := d.Headers["x-death"]
				if d.MessageId != m.MessageId || d.Headers["dead-letter-reason"] != "malformed" || dead || (d.Headers["more"] != nil) != c.kept {
					delete(d.Headers, "more")
					t.Errorf("%q with %v, want %q", d.MessageId, d.Headers, m.MessageId)
				}
			}
		}
	}

	other := newPipeline(t, "orders", []string{"100ms"}, 2, "orders.created")
	other.work(t)
	other.consume(t, "orders.created", nil)
	other.Publish(t, "", "orders.created", amqp.Publishing{MessageId: "good"})
	require.Equal(t, "good", other.awaitFailed(t, "exhausted").MessageId)
	e.publish(t, "work", int32(500), amqp.Publishing{MessageId: "good"})
	require.Equal(t, "good", e.await(t, "work").MessageId)
}

// unreadableDeaths returns headers with an x-death that the broker fails on.
func unreadableDeaths(inboxes ...string) map[string]amqp.Table {
	deaths := map[string]amqp.Table{
		"number":  {"x-death": []any{int32(1)}},
		"numbers": {"x-death": []any{amqp.Table{}, int32(1)}},
	}
	for i, inbox := range inboxes {
		deaths[fmt.Sprint("count ", i)] = amqp.Table{"x-death": []any{amqp.Table{
			"queue": inbox, "reason": "rejected", "count": "1", "routing-keys": []any{"k"},
		}}}
	}
	return deaths
}
