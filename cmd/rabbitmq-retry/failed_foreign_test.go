package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

// If a queue deletes messages after too many looks, a look refuses before that happens. RabbitMQ 4.3 does not count looks.
func TestLooksAtAForeignQueue(t *testing.T) {
	t.Parallel()
	o := newOrders(t, "quorum")
	for name, arguments := range map[string]map[string]any{
		"default":    nil,
		"five":       {"x-delivery-limit": 5},
		"one active": {"x-delivery-limit": 5, "x-single-active-consumer": true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			queue := "billing_error " + name
			o.DeclareQueue(t, queue, "quorum", arguments)
			const messages, looks = 10, 30
			for i := range messages {
				o.Publish(t, "", queue, amqp.Publishing{
					MessageId: fmt.Sprint(i), UserId: o.Username, Headers: amqp.Table{"CC": []any{"orders.created"}},
				})
			}
			o.holds(t, queue, messages)
			refused := false
			for i := 0; i < looks && !refused; i++ {
				code, _, errs := execute(t.Context(), o.env, "failed", "list", "--queue", queue, "--vhost", o.Vhost)
				if refused = code != exitOK; refused {
					contains(t, errs, "was put back 3 times already", "leaves 16 looks", "delivery-limit to -1", "write --force")
				}
			}
			assert.Equal(t, !o.VersionAtLeast("4.3"), refused, o.Version)
			o.holds(t, queue, messages)
			o.run(t, exitOK, "failed list --force --queue", queue)
		})
	}
}

// has is an error unless this many messages are ready.
func (o orders) has(t *testing.T, queue string, messages int) error {
	t.Helper()
	count, err := o.queue(queue).Count(t.Context())
	if err == nil && count.Ready != messages {
		err = fmt.Errorf("%d of %d messages are in %s", count.Ready, messages, queue)
	}
	return err
}

// A count of another queue, or a queue that does not count, is no reason to refuse.
func TestLooksThatCostNothing(t *testing.T) {
	t.Parallel()
	o := newOrders(t, "quorum")
	o.DeclareQueue(t, "classic", "classic", nil)
	o.DeclareQueue(t, "dead", "quorum", nil)
	for _, queue := range []string{"classic", "dead"} {
		o.Publish(t, "", queue, amqp.Publishing{Headers: amqp.Table{"x-delivery-count": int64(20)}})
	}
	o = o.as(t, "", ".*")
	o.run(t, exitOK, "failed list --queue dead")
	for range 5 {
		o.run(t, exitOK, "failed list --queue classic")
	}
}

// A stream keeps its messages and delivers them only to consumers that ask for them from an offset.
func TestStreamIsRefused(t *testing.T) {
	t.Parallel()
	o := newOrders(t, "classic")
	o.DeclareQueue(t, "events", "stream", nil)
	o.Publish(t, "", "events", amqp.Publishing{Body: []byte("1")})
	for _, command := range []string{"list", "replay --all", "export"} {
		o.says(t, exitError, "failed "+command+" --queue events", `queue "events" is a stream`)
	}
}

// An error about an exclusive queue or consumer does not mention permissions.
func TestExclusiveUse(t *testing.T) {
	t.Parallel()
	o := newOrders(t, "classic")
	ch := o.Channel(t)
	_, err := ch.QueueDeclare("mine", false, false, true, false, nil)
	require.NoError(t, err)
	require.NoError(t, ch.Qos(1, 0, false))
	_, err = ch.Consume("orders.failed", "", false, true, false, false, nil)
	require.NoError(t, err)
	o.says(t, exitError, "failed list --queue mine", `queue "mine" is exclusive: only the connection that declared it can use it`)
	o.park(t, "exhausted", "held")
	for range 2 {
		o.park(t, "exhausted", "order-1")
	}
	o.says(t, exitError, "failed list --queue orders.failed", `an exclusive consumer uses queue "orders.failed"`)
}

// A queue with a low delivery limit deletes messages after a look, and the look reports that. RabbitMQ 4.3 does not count
// looks.
func TestLookThatLosesSaysSo(t *testing.T) {
	t.Parallel()
	o := newOrders(t, "quorum")
	o.Needs(t, brokertest.Release("< 4.3"))
	o.DeclareQueue(t, "limited", "quorum", map[string]any{"x-delivery-limit": 1})
	o.Publish(t, "", "limited", amqp.Publishing{Body: []byte("1")})
	brokertest.Eventually(t, func() error {
		code, _, errs := execute(t.Context(), o.env, "failed", "list", "--queue", "limited", "--vhost", o.Vhost, "--force")
		if code == exitOK {
			contains(t, errs, "all put back")
			return errors.New("nothing is missing yet")
		}
		contains(t, errs, "1 of them not back", `1 message not back in "limited"`)
		return nil
	})
}

// A replay publishes the message in EasyNetQ's error message. If it is not exact, nothing delivers the error message in its place.
func TestEasyNetQ(t *testing.T) {
	t.Parallel()
	o := newOrders(t, "classic")
	const queue = "EasyNetQ_Default_Error_Queue"
	wrapped := func(body string) amqp.Publishing {
		return amqp.Publishing{Type: "EasyNetQ.SystemMessages.Error, EasyNetQ", DeliveryMode: amqp.Persistent, Body: []byte(
			`{"RoutingKey":"Shop.Order","Exchange":"Shop.Order, Shop","Queue":"sales","Exception":"System.Exception: no such van","Message":"` + body +
				`","DateTime":"2026-11-22T01:12:04.0000000Z","BasicProperties":{"DeliveryMode":2,"Type":"Shop.Order, Shop","CorrelationId":"c",` +
				`"Headers":{"tenant":{"Type":14,"Value":"ZXU="}}}}`,
		)}
	}
	for _, name := range []string{queue, "sales", "inbox"} {
		o.DeclareQueue(t, name, "classic", nil)
	}
	exact, encoded := wrapped(`{\"order\":7}`), wrapped("eyJvcmRlciI6N30=")
	o.Publish(t, "", queue, exact)
	o.Publish(t, "", queue, encoded)
	o.prints(t, exitOK, "failed list --queue "+queue, "2      failed  sales  System.Exception: no such van")

	file := filepath.Join(t.TempDir(), "failed.jsonl")
	o.run(t, exitOK, "failed export --queue "+queue+" --file", file)
	o.says(t, exitError, "failed replay --all --yes --queue "+queue, "replayed 1 of 1 to sales",
		"1 skipped: the original message cannot be taken exactly from EasyNetQ's error message: its body is text or base64")
	o.says(t, exitError, "failed replay --all --yes --to inbox --queue "+queue, "1 skipped: the original message cannot be taken exactly")
	o.holds(t, queue, 1)
	o.holds(t, "inbox", 0)
	d, _ := o.Get(t, "sales")
	assert.Equal(t, `{"order":7}`, string(d.Body))
	assert.Equal(t, []any{"Shop.Order, Shop", "c", "eu", int64(1)}, []any{d.Type, d.CorrelationId, d.Headers["tenant"], d.Headers["replay-count"]})

	_, _ = o.Get(t, queue)
	o.run(t, exitOK, "failed import --yes --queue "+queue, file)
	for _, want := range []amqp.Publishing{exact, encoded} {
		d, _ := o.Get(t, queue)
		assert.Equal(t, string(want.Body), string(d.Body))
		assert.Equal(t, want.Type, d.Type)
	}
}
