//go:build bench

package bench

import (
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

var (
	lasts     = flag.Duration("lasts", time.Minute, "for how long messages with random delays are published, and the longest of their delays")
	burst     = flag.Int("burst", 50_000, "how many messages are due within one second")
	burstRate = flag.Int("burst-rate", 2000, "how many of them are published a second")
)

// What is measured of a contender: how fast messages get from its inbox to where they wait an hour once it is started, or from
// a publisher to there.
const (
	fromInbox     = ", from a backlog"
	fromPublisher = ", from a publisher"
)

// The sidecar adds a header for each level, and the broker routes by these headers.
var hoursTargets = []target{
	{throughSidecar + fromPublisher, barePipe + fromPublisher, 0.8},
	{throughSidecar + fromInbox, barePipe + fromInbox, 0.6},
}

// TestDelayHours measures how fast messages with a delay of an hour are put where they wait.
func TestDelayHours(t *testing.T) {
	both := []*delayer{newPipe(t), newThroughSidecar(t)}
	var turns []turn
	against := map[string]string{}
	add := func(d *delayer, from string, measure func() result) {
		who := d.name + from
		against[who] = barePipe + from
		turns = append(turns, turn{who, func() result {
			r := measure()
			t.Logf("%s: %.0f/s", who, r.rate)
			return r
		}})
	}
	for _, d := range both {
		add(d, fromInbox, d.emptyInbox)
	}
	for _, d := range append(both, newStraight(t), newTopic(t), newFixed(t)) {
		add(d, fromPublisher, d.putAway)
	}
	taken := results{}
	for i := range *rounds {
		taken.round(i, turns)
	}
	show := newTable("", "msg/s", "of the bare pipe")
	for _, one := range turns {
		show.line(one.who, measured(taken.median(one.who, rate), 0), measured(taken.ratio(one.who, against[one.who], rate), 2))
	}
	t.Logf("%d messages of %d bytes with a delay of one hour, medians of %d rounds\n%s", delayMessages(), *size, *rounds, show)
	for _, miss := range taken.misses(hoursTargets...) {
		t.Error(miss)
	}
}

// emptyInbox has the mover meet a backlog.
func (d *delayer) emptyInbox() result {
	d.publishHours()
	return d.drain(delayMessages(), d.inbox, d.hours, d.move)
}

// putAway publishes all messages, and waits until they are where they wait.
func (d *delayer) putAway() result {
	stop := d.startMover(d.inbox, d.move)
	began := time.Now()
	d.publishHours()
	d.watch(d.hours, delayMessages())
	r := result{rate: float64(delayMessages()) / time.Since(began).Seconds(), messages: delayMessages()}
	r.usage = stop()
	d.clear(delayMessages(), d.inbox, d.hours)
	return r
}

func (d *delayer) publishHours() {
	require.NoError(d.t, d.publish(delayMessages(), 0, func() time.Duration { return hour }), d.name)
}

const (
	// ofStraight and besides are how late messages may be through the sidecar, next to those published straight to the levels.
	ofStraight = 1.3
	besides    = 50 * time.Millisecond
)

// arrivals are the messages of a turn.
type arrivals struct {
	// late is by how much each came after it was due, its delay rounded up to the precision.
	late durations
	// early is how many came before their delay was over, again how many came twice.
	early, again int
	// last is when the last one came.
	last time.Time
}

// TestDelayRandom measures how late messages with random delays are.
func TestDelayRandom(t *testing.T) {
	show := newTable("", "late p50", "p99", "max", "p99/straight's", "early", "twice")
	random := func() time.Duration { return time.Duration(rand.Int64N(lasts.Milliseconds())) * time.Millisecond }
	perSecond := cmp.Or(*publishRate, 1000)
	p99 := map[string]time.Duration{}
	for _, d := range []*delayer{newStraight(t), newThroughSidecar(t)} {
		got := d.wait(int(lasts.Seconds()*float64(perSecond)), perSecond, random)
		p99[d.name] = got.late.share(0.99)
		show.line(d.name, milliseconds(got.late.share(0.5)), milliseconds(p99[d.name]), milliseconds(got.late.share(1)),
			decimal(float64(p99[d.name])/float64(p99[straight]), 2), fmt.Sprint(got.early), fmt.Sprint(got.again))
	}
	t.Logf("%d messages a second for %s with random delays of up to as long; late in ms after the delay, rounded up to %s\n%s",
		perSecond, *lasts, unit, show)
	if most := time.Duration(ofStraight*float64(p99[straight])) + besides; p99[throughSidecar] > most {
		t.Errorf("through the sidecar, one in a hundred is late by more than %s, want at most %s", p99[throughSidecar], most)
	}
}

// TestDelayBurst measures how late messages are if very many are due at once.
func TestDelayBurst(t *testing.T) {
	show := newTable("", "late p50", "max", "the last one after the first was due", "of straight's", "early", "twice")
	published := time.Duration(*burst / *burstRate) * time.Second
	var base time.Duration
	for _, d := range []*delayer{newStraight(t), newThroughSidecar(t)} {
		due := time.Now().Add(published + 10*time.Second)
		got := d.wait(*burst, *burstRate, func() time.Duration {
			return time.Until(due.Add(time.Duration(rand.Int64N(int64(time.Second))))).Round(time.Millisecond)
		})
		took := got.last.Sub(due)
		base = cmp.Or(base, took)
		show.line(d.name, milliseconds(got.late.share(0.5)), milliseconds(got.late.share(1)), milliseconds(took),
			decimal(float64(took)/float64(base), 2), fmt.Sprint(got.early), fmt.Sprint(got.again))
	}
	t.Logf("%d messages due within one second, published at %d a second; in ms\n%s", *burst, *burstRate, show)
}

// wait publishes messages, and takes them when they are due: none may be early.
func (d *delayer) wait(n, perSecond int, delayOf func() time.Duration) arrivals {
	defer d.startMover(d.inbox, d.move)()
	ch, deliveries := d.Consume(d.t, workQueue, 2000)
	defer func() { _ = ch.Close() }()
	published := make(chan error, 1)
	go func() { published <- d.publish(n, perSecond, delayOf) }()
	a := d.take(n, deliveries)
	require.NoError(d.t, <-published)
	if a.early > 0 {
		d.t.Errorf("%s: %d messages were early", d.name, a.early)
	}
	return a
}

// take waits until each message has come, and then for none to come twice.
func (d *delayer) take(n int, deliveries <-chan amqp.Delivery) (a arrivals) {
	arrived := make(map[string]bool, n)
	for {
		patience := brokertest.Patience
		if len(arrived) == n {
			patience = time.Second
		}
		m, came := brokertest.Within(deliveries, patience)
		switch {
		case !came && len(arrived) < n:
			d.t.Fatalf("%s: %d of %d messages came", d.name, len(arrived), n)
		case !came:
			slices.Sort(a.late)
			return a
		case m.Acknowledger == nil:
			d.t.Fatalf("%s: the consumer has lost its connection", d.name)
		}
		a.add(m, arrived[m.MessageId])
		arrived[m.MessageId] = true
		require.NoError(d.t, m.Ack(false))
	}
}

func (a *arrivals) add(m amqp.Delivery, again bool) {
	now := time.Now()
	sent, _ := m.Headers[headerSent].(int64)
	ms, _ := m.Headers[headerDelay].(int64)
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
