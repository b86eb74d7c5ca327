package transfer_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/transfer"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// newLevel is a quorum queue with a TTL, as messages wait in it.
func newLevel(t *testing.T, messages []string) bench {
	t.Helper()
	b := bench{Broker: brokertest.New(t)}
	b.uri = b.URI
	b.DeclareQueue(t, source, "quorum", map[string]any{
		"x-delivery-limit": topology.UnreachableDeliveryLimit, "x-message-ttl": int64(3_600_000), "x-overflow": "reject-publish",
		"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead", "x-dead-letter-strategy": "at-least-once",
	})
	b.Queue = transfer.Queue{Name: source, Open: b.open}
	b.fill(t, messages...)
	return b
}

// front looks at the front, and returns the bodies.
func (b *bench) front(t *testing.T) (seen []string, f transfer.Front) {
	t.Helper()
	seen = []string{}
	f, err := b.Front(t.Context(), "lock", func(m failed.Message) bool { seen = append(seen, string(m.Body)); return false }, nil)
	require.NoError(t, err)
	return seen, f
}

// inOrder takes all messages once no look holds any, and requires their order.
func (b *bench) inOrder(t *testing.T, want []string) {
	t.Helper()
	brokertest.Eventually(t, func() error {
		if count, err := b.Count(t.Context()); err != nil || count.Consumers > 0 || count.Ready < len(want) {
			return fmt.Errorf("counted %+v, error %w", count, err)
		}
		return nil
	})
	_, deliveries := b.Consume(t, source, 0)
	for _, body := range want {
		d := brokertest.Receive(t, deliveries)
		require.Equal(t, body, string(d.Body))
		require.NoError(t, d.Ack(false))
	}
}

// The order stays after looks that end in any way, whether the queue has more messages than a look takes or fewer.
func TestFrontKeepsTheOrder(t *testing.T) {
	t.Parallel()
	for _, n := range []int{30, topology.LookSize + 700} {
		messages := numbered("m", n)
		b := newLevel(t, messages)
		for range 3 {
			seen, f := b.front(t)
			require.Equal(t, messages[:len(seen)], seen)
			require.Equal(t, n, f.Ready)
			require.Len(t, seen, f.Seen)
			stopped, stop := context.WithCancel(t.Context())
			_, err := b.Front(stopped, "lock", func(failed.Message) bool { stop(); return false }, nil)
			require.ErrorIs(t, err, context.Canceled)
		}
		b.inOrder(t, messages)
	}
}

// A look is no failed delivery, which the broker would count in the header that goes with the message, up to a consumer's queue. Before
// RabbitMQ 4.3 it is one, but no queue compares that header with its limit.
func TestFrontIsNoDelivery(t *testing.T) {
	t.Parallel()
	b := newLevel(t, numbered("m", 100))
	cut := int64(0)
	for range 5 {
		if _, f := b.front(t); f.Cut { // on a busy machine
			cut++
		}
	}
	brokertest.Eventually(t, func() error {
		count, err := b.Count(t.Context())
		if err == nil && count != (transfer.Count{Ready: 100}) {
			err = fmt.Errorf("counted %+v", count)
		}
		return err
	})
	d, _ := b.Get(t, source)
	counted, _ := d.Headers["x-delivery-count"].(int64)
	if b.VersionAtLeast("4.3") {
		require.LessOrEqual(t, counted, cut)
	}
}

// A look whose messages are not read ends in time.
func TestFrontEndsInTime(t *testing.T) {
	t.Parallel()
	b := newLevel(t, numbered("m", 3000))
	began := time.Now()
	f, err := b.Front(t.Context(), "lock", func(failed.Message) bool { time.Sleep(time.Millisecond); return false }, nil)
	require.NoError(t, err)
	require.Less(t, f.Seen, 3000)
	require.True(t, f.Cut)
	require.Less(t, time.Since(began), time.Minute)
	b.inOrder(t, numbered("m", 3000))
}

// Messages are taken out between looks, and the others keep their order, even if the next look comes at once.
func TestFrontKeepsTheOrderOfOthers(t *testing.T) {
	t.Parallel()
	for _, n := range []int{30, topology.LookSize + 700} {
		messages := numbered("m", n)
		b := newLevel(t, messages)
		for round := range 3 {
			var chosen map[string]bool
			for f := (transfer.Front{Cut: true}); f.Cut; { // a busy machine can need another look
				chosen = map[string]bool{}
				var err error
				f, err = b.Front(t.Context(), "lock", func(m failed.Message) bool {
					goes := m.Body[len(m.Body)-1] == byte('0'+round)
					if goes {
						chosen[string(m.Body)] = true
					}
					return goes
				}, &transfer.Removal{
					Release: func(context.Context) ([]bool, error) { return slices.Repeat([]bool{true}, len(chosen)), nil },
					Gone:    func() error { return nil },
				})
				require.NoError(t, err)
				require.True(t, f.Cut || f.Taken == len(chosen), "%+v", f)
			}
			require.NotEmpty(t, chosen)
			messages = slices.DeleteFunc(messages, func(m string) bool { return chosen[m] })
			seen, _ := b.front(t)
			require.Equal(t, messages[:len(seen)], seen)
		}
		b.inOrder(t, messages)
	}
}

// A message that cannot go stays, also if nothing else goes.
func TestFrontKeepsWhatIsNotReleased(t *testing.T) {
	t.Parallel()
	b := newLevel(t, numbered("m", 10))
	failure := errors.New("no room on the disk")
	f, err := b.Front(t.Context(), "lock", func(failed.Message) bool { return true }, &transfer.Removal{
		Release: func(context.Context) ([]bool, error) { return nil, failure },
	})
	require.ErrorIs(t, err, failure)
	require.Zero(t, f.Taken+f.Unanswered)
	b.inOrder(t, numbered("m", 10))
}
