//go:build bench

package benchdelay

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/benchtest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/terraformtest"
)

const (
	// ofStraight and besides are how late messages may be through the sidecar, next to those published straight to the levels.
	ofStraight = 1.3
	besides    = 50 * time.Millisecond
)

// arrivals are the messages of a turn.
type arrivals struct {
	// late is by how much each came after it was due, its delay rounded up to the precision.
	late []time.Duration
	// early is how many came before their delay was over, again how many came twice.
	early, again int
	// last is when the last one came.
	last time.Time
}

// TestRandomDelays measures how late messages with random delays are.
//
//nolint:paralleltest // measures, and needs the processors for itself
func TestRandomDelays(t *testing.T) {
	show := benchtest.NewTable("", "late p50", "p99", "max", "p99/straight's", "early", "twice")
	random := func() time.Duration { return time.Duration(rand.Int64N(lasts.Milliseconds())) * time.Millisecond }
	p99 := map[string]time.Duration{}
	for _, c := range []*contender{newStraight(t), newSidecar(t, terraformtest.BuildSidecar(t))} {
		got := c.wait(t, int(lasts.Seconds()*float64(*rate)), *rate, random)
		p99[c.name] = got.share(0.99)
		show.Line(c.name, benchtest.Milliseconds(got.share(0.5)), benchtest.Milliseconds(got.share(0.99)), benchtest.Milliseconds(got.share(1)),
			fmt.Sprintf("%.2f", float64(p99[c.name])/float64(p99[straight])), fmt.Sprint(got.early), fmt.Sprint(got.again))
	}
	t.Logf("%d messages a second for %s with random delays of up to as long; late in ms after the delay, rounded up to %s\n%s",
		*rate, *lasts, unit, show)
	if most := time.Duration(ofStraight*float64(p99[straight])) + besides; p99[sidecar] > most {
		t.Errorf("through the sidecar, one in a hundred is late by more than %s, want at most %s", p99[sidecar], most)
	}
}

// TestBurst measures how late messages are of which very many are due at once.
//
//nolint:paralleltest // measures, and needs the processors for itself
func TestBurst(t *testing.T) {
	show := benchtest.NewTable("", "late p50", "max", "the last one after the first was due", "of straight's", "early", "twice")
	published := time.Duration(*burst / *burstRate) * time.Second
	var base time.Duration
	for _, c := range []*contender{newStraight(t), newSidecar(t, terraformtest.BuildSidecar(t))} {
		due := time.Now().Add(published + 10*time.Second)
		got := c.wait(t, *burst, *burstRate, func() time.Duration {
			return time.Until(due.Add(time.Duration(rand.Int64N(int64(time.Second))))).Round(time.Millisecond)
		})
		took := got.last.Sub(due)
		if base == 0 {
			base = took
		}
		show.Line(c.name, benchtest.Milliseconds(got.share(0.5)), benchtest.Milliseconds(got.share(1)), benchtest.Milliseconds(took),
			fmt.Sprintf("%.2f", float64(took)/float64(base)), fmt.Sprint(got.early), fmt.Sprint(got.again))
	}
	t.Logf("%d messages due within one second, published at %d a second; in ms\n%s", *burst, *burstRate, show)
}

// wait publishes messages, and takes them when they are due: none may be early.
func (c *contender) wait(t *testing.T, n, perSecond int, delayOf func() time.Duration) arrivals {
	t.Helper()
	defer c.startMover(t)()
	ch, deliveries := c.Consume(t, workQueue, 2000)
	defer func() { _ = ch.Close() }()
	published := make(chan error, 1)
	go func() { published <- c.publish(n, perSecond, delayOf) }()
	a := c.take(t, n, deliveries)
	require.NoError(t, <-published)
	if a.early > 0 {
		t.Errorf("%s: %d messages were early", c.name, a.early)
	}
	return a
}

// take waits until each message has come, and then for none to come twice.
func (c *contender) take(t *testing.T, n int, deliveries <-chan amqp.Delivery) (a arrivals) {
	t.Helper()
	came := make(map[string]bool, n)
	for {
		wait := brokertest.Patience
		if len(came) == n {
			wait = time.Second
		}
		select {
		case d, ok := <-deliveries:
			if !ok {
				t.Fatalf("%s: the consumer has lost its connection", c.name)
			}
			a.add(d, came[d.MessageId])
			came[d.MessageId] = true
			require.NoError(t, d.Ack(false))
		case <-time.After(wait):
			if len(came) < n {
				t.Fatalf("%s: %d of %d messages came", c.name, len(came), n)
			}
			slices.Sort(a.late)
			return a
		}
	}
}

func (a *arrivals) add(d amqp.Delivery, again bool) {
	now := time.Now()
	sent, _ := d.Headers[headerSent].(int64)
	ms, _ := d.Headers[headerDelay].(int64)
	delay := time.Duration(ms) * time.Millisecond
	waited := now.Sub(time.Unix(0, sent))
	if waited < delay {
		a.early++
	}
	if again {
		a.again++
		return
	}
	a.late = append(a.late, waited-time.Duration(delayed.Units(delay, unit))*unit)
	a.last = now
}

// share is by how much so many of the messages were late at most.
func (a *arrivals) share(of float64) time.Duration { return a.late[int(of*float64(len(a.late)-1))] }

var (
	messages  = flag.Int("messages", 20_000, "how many messages of an hour's delay each contender gets in its turn")
	rounds    = flag.Int("rounds", 3, "how often each contender has its turn")
	size      = flag.Int("size", 1024, "size of the bodies, in bytes")
	rate      = flag.Int("rate", 1000, "how many messages with random delays are published a second")
	lasts     = flag.Duration("lasts", time.Minute, "for how long they are, and the longest of their delays")
	burst     = flag.Int("burst", 50_000, "how many messages are due within one second")
	burstRate = flag.Int("burst-rate", 2000, "how many of them are published a second")
)

func TestMain(m *testing.M) { benchtest.Main(m, &benchtest.Pipe{}) }
