package main

import (
	"errors"
	"fmt"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
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
