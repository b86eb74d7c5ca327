//go:build load

package loadtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
)

// perSecond is how many messages are published.
const perSecond = 200

type sentMessage struct {
	id      string
	confirm *amqp.DeferredConfirmation
}

// publishingChannel is on a connection of its own, so that a broker that slows publishers down does not
// slow consumers.
func (l *load) publishingChannel(t *testing.T) *amqp.Channel {
	t.Helper()
	ch, err := l.Dial(t).Channel()
	if err == nil {
		err = ch.Confirm(false)
	}
	require.NoError(t, err)
	return ch
}

// publish publishes to the queues in use until the context ends, and then waits for the confirms.
func (l *load) publish(ctx context.Context, t *testing.T, ch *amqp.Channel) {
	const outstanding = 10_000
	returns := ch.NotifyReturn(make(chan amqp.Return, outstanding))
	sent := make(chan sentMessage, outstanding)
	done := make(chan struct{})
	go func() { defer close(done); l.settle(sent, returns) }()
	ticker := time.NewTicker(time.Second / perSecond)
	defer ticker.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			close(sent)
			<-done
			return
		case <-ticker.C:
		}
		queues := l.modes.atLeast(acked)
		slices.Sort(queues)
		queue := queues[rand.IntN(len(queues))]
		id := fmt.Sprintf("%06d %s", n, queue)
		// Not the context: what was begun is finished.
		confirm, err := ch.PublishWithDeferredConfirmWithContext(context.WithoutCancel(ctx), "", queue, true, false,
			amqp.Publishing{MessageId: id, DeliveryMode: amqp.Persistent, Body: []byte(id)})
		if err != nil {
			if ctx.Err() == nil {
				t.Errorf("publish: %v", err)
			}
			close(sent)
			<-done
			return
		}
		sent <- sentMessage{id, confirm}
	}
}

// settle enters what the broker has taken. A return comes before its confirm.
func (l *load) settle(sent <-chan sentMessage, returns <-chan amqp.Return) {
	returned := map[string]bool{}
	for m := range sent {
		taken := m.confirm.Wait()
		for drained := false; !drained; {
			select {
			case r := <-returns:
				returned[r.MessageId] = true
			default:
				drained = true
			}
		}
		l.ledger.with(func() {
			switch {
			case returned[m.id]:
				l.ledger.returned++
			case !taken:
				l.ledger.refused++
			default:
				l.ledger.published[m.id] = true
			}
		})
	}
}
