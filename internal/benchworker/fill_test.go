//go:build bench

package benchworker

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
)

// newBusy is a pipeline whose work queues have consumers.
func newBusy(t *testing.T, queueType string, queues int) *benchPipeline {
	t.Helper()
	p := newPipeline(t, queueType, queues)
	p.rejectAll(t)
	return p
}

// rejectAll rejects whatever comes to the work queues, as their consumers would.
func (p *benchPipeline) rejectAll(t *testing.T) {
	t.Helper()
	ch, err := p.Dial(t).Channel()
	require.NoError(t, err)
	require.NoError(t, ch.Qos(500, 0, false))
	for _, queue := range p.queues {
		deliveries, err := ch.Consume(queue, "", false, false, false, false, nil)
		require.NoError(t, err)
		go func() {
			for d := range deliveries {
				_ = d.Reject(false) // if it fails, fill will not see the message
			}
		}()
	}
}

// fill puts so many dead letters into the inbox, through the work queues in turn.
func (p *benchPipeline) fill(t *testing.T, n, size int) {
	t.Helper()
	body := bytes.Repeat([]byte("x"), size)
	err := p.Fill(n, 0, func(ch *amqp.Channel, i int) error {
		return ch.PublishWithContext(t.Context(), "", p.queues[i%len(p.queues)], true, false, amqp.Publishing{
			ContentType: "application/json", MessageId: fmt.Sprintf("message-%d", i), Timestamp: time.Now(), DeliveryMode: amqp.Persistent,
			Headers: amqp.Table{"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"},
			Body:    body,
		})
	})
	require.NoError(t, err)
	p.AwaitMessages(t, names.Inbox(), n)
}
