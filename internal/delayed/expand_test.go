package delayed_test

import (
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

func TestExpand(t *testing.T) {
	t.Parallel()
	e := exchange(t, "events", "1500ms", "1000ms")
	const own = " x-delivery-limit=1000000 x-overflow=reject-publish"
	want := topology.View{Exchanges: map[string]string{
		"events":                "fanout alternate-exchange=events.delay.unrouted",
		"events.deliver":        "topic alternate-exchange=events.delay.unrouted",
		"events.delay.unrouted": "fanout",
		"events.delay.0s.0":     "fanout",
		"events.delay.0s.1":     "fanout",
		"events.delay.1s.0":     "headers",
		"events.delay.1s.1":     "headers",
	}, Queues: map[string]string{
		"events.delay.inbox": "quorum x-dead-letter-exchange=events.delay.unrouted x-dead-letter-strategy=at-least-once " +
			"x-delivery-limit=1000 x-overflow=reject-publish",
		"events.delay.unrouted": "quorum x-dead-letter-exchange=events.delay.unrouted x-dead-letter-strategy=at-least-once" + own,
		"events.delay.0s.0": "quorum x-dead-letter-exchange=events.deliver x-dead-letter-strategy=at-least-once " +
			"x-delivery-limit=1000000 x-message-ttl=5000 x-overflow=reject-publish",
		"events.delay.1s.0": "quorum x-dead-letter-exchange=events.deliver x-dead-letter-strategy=at-least-once " +
			"x-delivery-limit=1000000 x-message-ttl=1000 x-overflow=reject-publish",
		"events.delay.1s.1": "quorum x-dead-letter-exchange=events.delay.1s.0 x-dead-letter-strategy=at-least-once " +
			"x-delivery-limit=1000000 x-message-ttl=2000 x-overflow=reject-publish",
	}, Policies: map[string]string{
		"delay/events/queues": `queues ^events\.delay\.(inbox|unrouted|\d[\dhms.]*\.\d+)$ priority=1000 ` +
			"dead-letter-strategy=at-least-once overflow=reject-publish",
	}, Bindings: []string{
		"events -> events.delay.inbox",
		"events.delay.0s.0 -> events.delay.0s.0",
		"events.delay.0s.1 -> events.delay.unrouted",
		"events.delay.1s.0 -> events.delay.1s.0 delay-0=true x-match=all",
		"events.delay.1s.0 -> events.deliver (exchange) delay-0=false x-match=all",
		"events.delay.1s.1 -> events.delay.1s.0 (exchange) delay-1=false x-match=all",
		"events.delay.1s.1 -> events.delay.1s.1 delay-1=true x-match=all",
		"events.delay.unrouted -> events.delay.unrouted " +
			`delay-definition='{"version":1,"type":"topic","max_delay":"1500ms","precision":"1000ms"}'`,
	}}
	require.Empty(t, cmp.Diff(want, topology.Render(e.Expand())))
}

// The policy covers exactly the own queues, of every precision.
func TestPolicyCoversOwnQueues(t *testing.T) {
	t.Parallel()
	n := delayed.Names("ev.ents")
	for _, name := range []string{"inbox", "unrouted", "100ms.0", "1.5s.12", "1h0m0.001s.7", "8760h.3"} {
		require.True(t, n.CoversQueue("ev.ents.delay."+name), name)
	}
	for _, name := range []string{
		"ev.ents.delay.inbox.1", "evxents.delay.inbox", "ev.ents.delay.100ms", "ev.ents.delay.100ms.delay.inbox",
		"ev.ents.delay.100ms.delay.1s.1", "a.ev.ents.delay.inbox",
	} {
		require.False(t, n.CoversQueue(name), name)
	}
}

func TestPermissions(t *testing.T) {
	t.Parallel()
	e := exchange(t, "events", "1h", "100ms")
	publisher, worker := delayed.PublisherPermissions(e.Names()), delayed.WorkerPermissions(e.Names())
	if want := (pipeline.Permissions{Configure: "^$", Write: "^(events)$", Read: "^$"}); publisher != want {
		t.Errorf("publisher: %v", publisher)
	}
	writes := regexp.MustCompile(worker.Write)
	e.Retired = []delayed.Level{{Unit: e.Precision.Wait * 3}}
	for name := range e.Expand().Exchanges {
		if writes.MatchString(name) != (name != "events") {
			t.Errorf("the sidecar may write to %s: %t", name, name == "events")
		}
	}
	if worker.Configure != "^$" || worker.Read != `^(events\.delay\.inbox)$` {
		t.Errorf("sidecar: %v", worker)
	}
}

// A level that stays keeps all levels below, but only of its own unit.
func TestRetiredLevels(t *testing.T) {
	t.Parallel()
	e := exchange(t, "events", "7s", "1s")
	second, other := e.Precision.Wait, e.Precision.Wait/2
	got := e.RetiredUpTo([]delayed.Level{{Unit: second, Bit: 4}, {Unit: other, Bit: 1}, {Unit: second, Bit: 1}})
	want := []delayed.Level{{Unit: other}, {Unit: other, Bit: 1}, {Unit: second, Bit: 3}, {Unit: second, Bit: 4}}
	require.Equal(t, want, got)
}

// An upgrade that adds the refused queue changes no policy and no permissions. No level has its name.
func TestRefusedQueueIsCovered(t *testing.T) {
	t.Parallel()
	n := delayed.Names("events")
	refused := n.Refused()
	if !n.CoversQueue(refused) || !n.OwnsQueue(refused) || !n.OwnsExchange(refused) {
		t.Errorf("%s is not covered", refused)
	}
	require.True(t, regexp.MustCompile(delayed.WorkerPermissions(n).Write).MatchString(refused), "the sidecar may not write to it")
	if l, is := n.LevelOf(refused); is {
		t.Errorf("%s is the level %v", refused, l)
	}
}

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
