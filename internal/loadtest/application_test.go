//go:build load

package loadtest

import (
	"math/rand/v2"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
)

const (
	// rejectedShare of the deliveries is rejected.
	rejectedShare = 0.3
	// slowness is how long a consumer of a queue with a length limit takes for a message, so that the
	// queue gets full.
	slowness = 40 * time.Millisecond
)

// follow starts a consumer of each queue that is in use, and ends those of the others.
func (l *load) follow(t *testing.T) {
	t.Helper()
	for _, queue := range l.modes.atLeast(draining) {
		if l.consumers[queue] == nil {
			l.consumers[queue] = l.consume(t, queue)
		}
	}
	for queue, ch := range l.consumers {
		if ch != nil && l.modes.get(queue) == unused {
			require.NoError(t, ch.Cancel(queue, false))
			l.consumers[queue] = nil
		}
	}
}

// consume processes or rejects what comes, in the way of the queue's mode.
func (l *load) consume(t *testing.T, queue string) *amqp.Channel {
	t.Helper()
	ch := l.Channel(t)
	require.NoError(t, ch.Qos(20, 0, false))
	deliveries, err := ch.Consume(queue, queue, false, false, false, false, nil)
	require.NoError(t, err)
	go func() {
		for d := range deliveries {
			l.handle(t, queue, d)
		}
	}()
	return ch
}

func (l *load) handle(t *testing.T, queue string, d amqp.Delivery) {
	mode := l.modes.get(queue)
	if mode == limited {
		time.Sleep(slowness)
	}
	var err error
	if mode >= limited && rand.Float64() < rejectedShare {
		l.ledger.with(func() { l.ledger.rejections++ })
		err = d.Reject(false)
	} else if err = d.Ack(false); err == nil {
		l.ledger.with(func() { l.ledger.processed[d.MessageId]++ })
	}
	if err != nil && t.Context().Err() == nil { // else the test has failed already
		t.Errorf("%s: %v", queue, err)
	}
}

// collectFailed enters what is parked, and why.
func (l *load) collectFailed(t *testing.T, queue string) {
	t.Helper()
	deliveries, err := l.Channel(t).Consume(queue, "", true, false, false, false, nil)
	require.NoError(t, err)
	go func() {
		for d := range deliveries {
			reason, _ := d.Headers["dead-letter-reason"].(string)
			l.ledger.with(func() { l.ledger.failed[d.MessageId] = append(l.ledger.failed[d.MessageId], reason) })
		}
	}()
}
