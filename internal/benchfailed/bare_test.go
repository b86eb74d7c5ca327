//go:build bench

package benchfailed

import (
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
)

const (
	// prefetch is that of a replay.
	prefetch = 2000
	// lane is nearly the largest prefetch there is.
	lane = 65_000

	consumerTag = "bench"
)

func (v *vhost) consume(t *testing.T, prefetch int) (*amqp.Channel, <-chan amqp.Delivery) {
	t.Helper()
	ch, err := v.Dial(t).Channel()
	require.NoError(t, err)
	require.NoError(t, ch.Qos(prefetch, 0, false))
	deliveries, err := ch.Consume(names.FailedQueue(), consumerTag, false, false, false, false, nil)
	require.NoError(t, err)
	return ch, deliveries
}

// bareLook takes all messages and puts them back.
func (v *vhost) bareLook(t *testing.T) result {
	t.Helper()
	began := time.Now()
	var channels []*amqp.Channel
	for left := *messages; left > 0; left -= lane {
		ch, deliveries := v.consume(t, lane)
		channels = append(channels, ch)
		for range min(left, lane) {
			<-deliveries
		}
	}
	for _, ch := range channels {
		require.NoError(t, ch.Cancel(consumerTag, false))
		require.NoError(t, ch.Nack(0, true, true))
		_ = ch.Close()
	}
	v.expect(t, names.FailedQueue())
	return result{rate: float64(*messages) / time.Since(began).Seconds()}
}

// barePipe does the least that loses nothing: it publishes what it consumes, as it is, and acknowledges what is confirmed.
func (v *vhost) barePipe(t *testing.T) result {
	t.Helper()
	began := time.Now()
	in, deliveries := v.consume(t, prefetch)
	out, err := v.Dial(t).Channel()
	require.NoError(t, err)
	require.NoError(t, out.Confirm(false))
	returns := out.NotifyReturn(make(chan amqp.Return, prefetch))
	confirms := out.NotifyPublish(make(chan amqp.Confirmation, prefetch))
	var outstanding []amqp.Delivery
	for done := 0; done < *messages; {
		select {
		case d := <-deliveries:
			outstanding = append(outstanding, d)
			require.NoError(t, republish(out, d))
		case c := <-confirms:
			if len(returns) > 0 || !c.Ack {
				t.Fatal("the broker did not take a message")
			}
			require.NoError(t, outstanding[0].Ack(false))
			outstanding = outstanding[1:]
			done++
		}
	}
	took := time.Since(began)
	_ = in.Close()
	_ = out.Close()
	return result{rate: float64(*messages) / took.Seconds()}
}

func republish(ch *amqp.Channel, d amqp.Delivery) error {
	const mandatory, immediate = true, false
	return ch.Publish(names.ReturnExchange(), pipeline.ReturnKey(workQueue), mandatory, immediate, amqp.Publishing{
		Headers: d.Headers, ContentType: d.ContentType, DeliveryMode: d.DeliveryMode,
		MessageId: d.MessageId, Timestamp: d.Timestamp, Body: d.Body,
	})
}
