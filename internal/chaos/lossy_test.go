//go:build chaos

package chaos

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// TestLossIsReported puts a worker beside the real one that acknowledges before it has published
// anything, and then dies.
//
//nolint:paralleltest // the faults of other tests are not for this one
func TestLossIsReported(t *testing.T) {
	c := newChaos(t, "worker")
	ctx, cancel := context.WithCancel(t.Context())
	var forgotten atomic.Int64
	dead := make(chan struct{})
	go func() {
		defer close(dead)
		c.always(ctx, c.consumers, func(ctx context.Context, conn *amqp.Connection) error {
			defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
			ch, err := conn.Channel()
			if err != nil {
				return err
			}
			deliveries, err := ch.Consume("chaos.inbox", "lossy", true, false, false, false, nil)
			if err != nil {
				return err
			}
			for range deliveries {
				forgotten.Add(1)
			}
			return amqp.ErrClosed
		})
	}()
	stopConsumers := c.startConsumers(t)
	stopProducers := c.startProducers(t, perSecond)
	for forgotten.Load() < 20 && pause(t.Context().Done(), 50*time.Millisecond) {
	}
	stopProducers()
	cancel()
	<-dead
	c.drain(t, 15*time.Second, time.Minute)
	stopConsumers()

	b := c.ledger.balance()
	t.Logf("%s", b)
	if forgotten.Load() != int64(len(b.lost)) {
		t.Errorf("%d messages were forgotten, but %d are reported as lost", forgotten.Load(), len(b.lost))
	}
	if b.processed == 0 || b.confirmed != b.processed+len(b.lost)+b.parked["exhausted"] {
		t.Errorf("the balance does not add up: %s", b)
	}
	for _, id := range b.lost {
		if text := c.history(id); !strings.Contains(text, "rejected from") {
			t.Errorf("the history does not say where it was last: %s", text)
		}
	}
}
