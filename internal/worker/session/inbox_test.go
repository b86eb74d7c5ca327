package session

import (
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn/frame"
)

func TestWindowIsWidenedWhenItIsTime(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		inbox inbox
		due   bool
	}{
		"at first":             {inbox{window: window{messages: 10}, ramp: rampAfter}, false},
		"after some messages":  {inbox{window: window{messages: 10, sampled: rampAfter - 1}, ramp: rampAfter}, false},
		"after enough of them": {inbox{window: window{messages: 10, sampled: rampAfter}, ramp: rampAfter}, true},
		"one takes long":       {inbox{window: window{messages: 10}, slow: true}, true},
		"once only":            {inbox{window: window{messages: 10, rest: 9}, slow: true}, false},
		"nothing to widen":     {inbox{window: window{messages: 1}, slow: true}, false},
	} {
		require.Equal(t, c.due, c.inbox.due(), name)
	}
}

// lost is a closed connection.
type lost struct{ acknowledged }

func (*lost) Ack(uint64, bool) error    { return amqp.ErrClosed }
func (*lost) Reject(uint64, bool) error { return amqp.ErrClosed }

func TestWhatCannotBeSettledIsInFlight(t *testing.T) {
	t.Parallel()
	i, d := inbox{inflow: &frame.Gate{}}, amqp.Delivery{Acknowledger: &lost{}}
	i.received(d, time.Now())
	if i.acknowledge(d) == nil || i.reject(d) == nil || i.inFlight != 1 {
		t.Errorf("%d in flight", i.inFlight)
	}
}

// The broker had read the earlier acknowledgements before it delivered another message.
func TestAcknowledgementsSinceTheLatestDelivery(t *testing.T) {
	t.Parallel()
	var acks acknowledged
	i, d := inbox{inflow: &frame.Gate{}}, amqp.Delivery{Acknowledger: &acks}
	for _, want := range []int{1, 2, 2} {
		for range want {
			i.received(d, time.Now())
		}
		for range want {
			require.NoError(t, i.acknowledge(d))
		}
		require.Equal(t, want, i.unheard)
	}
}

func TestMessageThatTakesLongIsSlow(t *testing.T) {
	t.Parallel()
	var acks acknowledged
	i, now := inbox{inflow: &frame.Gate{}}, time.Now()
	i.observe(now.Add(time.Hour)) // nothing is in flight
	i.received(amqp.Delivery{}, now)
	i.observe(now.Add(rampSlow))
	require.False(t, i.slow, "slow too soon")
	if err := i.acknowledge(amqp.Delivery{Acknowledger: &acks}); err != nil || i.inFlight != 0 || i.finished != 1 {
		t.Errorf("%v, %d in flight, %d finished", err, i.inFlight, i.finished)
	}
	i.observe(now.Add(time.Hour))
	require.False(t, i.slow, "slow with nothing in flight")
	i.received(amqp.Delivery{}, now)
	i.observe(now.Add(rampSlow + time.Millisecond))
	require.True(t, i.slow, "not slow")
}

func TestSecondConsumerHasAsManyMessagesAsFit(t *testing.T) {
	t.Parallel()
	const kib, mib = 1 << 10, 1 << 20
	for name, c := range map[string]struct {
		messages, size int
		want           int
	}{
		"small":                   {256, kib, 255},
		"no body":                 {256, 0, 255},
		"just as large":           {256, bytesPerMessage, 255},
		"larger":                  {256, 64 * kib, 127},
		"large":                   {256, mib, 7},
		"larger than all of them": {256, 16 * mib, 1},
		"a small window":          {2, 16 * mib, 1},
	} {
		w := window{messages: c.messages}
		for range rampAfter {
			d := amqp.Delivery{Body: make([]byte, c.size)}
			w.received(d)
			w.settled(d)
		}
		if got := w.widen(); got != c.want || w.crowded() {
			t.Errorf("%s: a prefetch of %d, want %d", name, got, c.want)
		}
	}
}

func TestWindowIsCrowdedByLargeMessages(t *testing.T) {
	t.Parallel()
	small, large := amqp.Delivery{Body: make([]byte, 1<<10)}, amqp.Delivery{Body: make([]byte, 16<<20)}
	w := window{messages: 256, rest: 255}
	for range 200 {
		w.received(small)
	}
	w.received(large)
	require.False(t, w.crowded(), "crowded by one large message among many")
	w = window{messages: 256, rest: 255}
	w.received(large)
	require.True(t, w.crowded(), "not crowded by large messages")
	w.narrow()
	require.False(t, w.crowded(), "crowded without a second consumer")
}

// Another message that ends the session can be among those that were in flight.
func TestCarefulSessionHandlesTheWholeWindowOneByOne(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		settings Settings
		ramp     int
	}{
		"usually":        {Settings{Prefetch: 256}, rampAfter},
		"careful":        {Settings{Prefetch: 256, Careful: true}, 256},
		"a small window": {Settings{Prefetch: 10, Careful: true}, rampAfter},
	} {
		require.Equal(t, c.ramp, (&Session{Settings: c.settings}).ramp(), name)
	}
}
