package delayedexchange_test

import (
	"slices"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
)

// Levels that are not needed any more are removed, a sidecar that does not know yet publishes to the highest one, and the
// provider is killed. What the level took stays there, with the way on, until it is gone; what it did not take is known to the
// sidecar.
func TestAcc_RemovalOfLevelsKilledAtAnyWriteLosesNothing(t *testing.T) {
	t.Parallel()
	var want acctest.Listing
	acctest.AtEachWrite(t, func(t *testing.T, write int) int {
		t.Helper()
		b := brokertest.New(t)
		c := eventsCore(b, map[string]any{"max_delay": "15h", "precision": "1h"})
		c.MustApply(t)
		c.Config["max_delay"] = "3h"
		c.MustApply(t)
		levelsAreReported(t, b, 0)
		before := acctest.List(t, b)
		accepted := false
		writes := c.Killed(t, b, acctest.At(write, func() { accepted = offer(t, b, 8*time.Hour, time.Hour, "last") }), acctest.Change(t))
		if write == 0 {
			want = acctest.List(t, b)
			if now := levelsOf(t, b); len(now) != 4 {
				t.Errorf("left: %q", now)
			}
			return writes
		}
		c.Settled(t)
		if accepted {
			settled(t, b, &c, before)
			if kept := arrived(t, b, "events.delay.1h.3"); !slices.Equal(kept, []string{"last"}) {
				t.Errorf("kept: %q", kept)
			}
			levelsAreReported(t, b, 0)
			c.Settled(t)
		}
		brokertest.Eventually(t, func() error {
			c.Settled(t)
			return want.RequireSame(acctest.List(t, b))
		})
		return writes
	})
}

// levelsAreReported waits until the management API says of the two highest levels that they have this many messages.
func levelsAreReported(t *testing.T, b *brokertest.Broker, want int) {
	t.Helper()
	for _, bit := range []int{2, 3} {
		eventuallyReported(t, b, delayed.Names("events").Level(delayed.Level{Unit: time.Hour, Bit: bit}), want)
	}
}

// offer publishes a message to the level that it enters at, as the sidecar does, and reports whether a queue took it.
func offer(t *testing.T, b *brokertest.Broker, wait, unit time.Duration, body string) (accepted bool) {
	t.Helper()
	ch := b.Channel(t)
	if err := ch.Confirm(false); err != nil {
		t.Error(err)
		return false
	}
	returns := ch.NotifyReturn(make(chan amqp.Return, 1))
	level, m := entering("events", wait, unit, body)
	confirm, err := ch.PublishWithDeferredConfirm(level, "mail", true, false, m)
	if err != nil {
		t.Error(err)
		return false
	}
	return confirm.Wait() && len(returns) == 0 // a return comes before its confirm
}
