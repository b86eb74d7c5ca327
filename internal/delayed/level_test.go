package delayed_test

import (
	"testing"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
)

func TestWayWaitsForTheDelayRoundedUp(t *testing.T) {
	t.Parallel()
	const unit = 100 * time.Millisecond
	for _, delay := range []time.Duration{
		1, time.Millisecond, unit, unit + 1, 700 * time.Millisecond, time.Hour, pipeline.MaxDelay - unit, pipeline.MaxDelay,
	} {
		way := delayed.WayOf(delay, unit)
		var waits time.Duration
		for bit := range way.Entry.Bit + 1 {
			if way.Bits[delayed.BitKey(bit)] {
				waits += delayed.Level{Unit: unit, Bit: bit}.Wait()
			}
		}
		if waits < delay || waits-delay >= unit {
			t.Errorf("a delay of %s waits %s", delay, waits)
		}
		if top := way.Entry.Bit; len(way.Bits) != top+1 || !way.Bits[delayed.BitKey(top)] || top >= delayed.LevelCount(delay, unit) {
			t.Errorf("a delay of %s enters at level %d of %d with %v", delay, top, delayed.LevelCount(delay, unit), way.Bits)
		}
	}
}

func TestLevelsOfNames(t *testing.T) {
	t.Parallel()
	n := delayed.Names("events")
	for _, l := range []delayed.Level{{Unit: 100 * time.Millisecond}, {Unit: time.Second, Bit: 21}, {Unit: 1500 * time.Millisecond, Bit: 7}} {
		if read, is := n.LevelOf(n.Level(l)); !is || read != l {
			t.Errorf("%s is read as %v, %t", n.Level(l), read, is)
		}
	}
	for _, name := range []string{
		"events.delay.inbox", "events.delay.unrouted", "events.delay.100ms", "events.delay.100ms.", "events.delay.100ms.01",
		"events.delay.0.1s.1", "events.delay.0s.1", "events.delay.1s.40", "events.delay.1s.-1", "other.delay.1s.1", "events.delay.8760h.39",
	} {
		if l, is := n.LevelOf(name); is {
			t.Errorf("%s is read as %v", name, l)
		}
	}
}
