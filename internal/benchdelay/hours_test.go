//go:build bench

package benchdelay

import (
	"fmt"
	"testing"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/terraformtest"
)

const (
	patience = 2 * time.Minute
	// ofPipe is how much of the bare pipe's rate the sidecar has to reach while messages are published, and ofPipesBacklog from a
	// backlog: it adds a header for each level, by which the broker then routes.
	ofPipe, ofPipesBacklog = 0.8, 0.6
)

// What is measured of a contender: how fast messages get from its inbox to where they wait an hour once it is started, or from
// a publisher to there.
const (
	fromInbox     = "from a backlog"
	fromPublisher = "from a publisher"
)

// TestHours measures how fast messages with a delay of an hour are put where they wait. The contenders take turns, in another
// order each time: what else the machine does meets all of them.
//
//nolint:paralleltest // measures, and needs the processors for itself
func TestHours(t *testing.T) {
	pipe, through := newPipe(t), newSidecar(t, terraformtest.BuildSidecar(t))
	turns := []struct {
		*contender

		from string
		turn func(*contender, *testing.T) float64
	}{
		{pipe, fromInbox, (*contender).emptyInbox},
		{through, fromInbox, (*contender).emptyInbox},
		{pipe, fromPublisher, (*contender).putAway},
		{through, fromPublisher, (*contender).putAway},
		{newStraight(t), fromPublisher, (*contender).putAway},
		{newTopic(t), fromPublisher, (*contender).putAway},
		{newFixed(t), fromPublisher, (*contender).putAway},
	}
	taken := make([][]float64, len(turns))
	for i := range *rounds {
		for k := range turns {
			at := (i + k) % len(turns)
			rate := turns[at].turn(turns[at].contender, t)
			taken[at] = append(taken[at], rate)
			t.Logf("%s, %s: %.0f/s", turns[at].name, turns[at].from, rate)
		}
	}
	show := newTable("", "", "msg/s", "of the bare pipe")
	for i, turn := range turns {
		base := taken[0]
		if turn.from == fromPublisher {
			base = taken[2]
		}
		show.line(turn.name, turn.from, fmt.Sprintf("%.0f", median(taken[i])), fmt.Sprintf("%.2f", median(ratios(taken[i], base))))
	}
	t.Logf("%d messages of %d bytes with a delay of one hour, medians of %d rounds\n%s", *messages, *size, *rounds, show)
	if got := median(ratios(taken[3], taken[2])); got < ofPipe {
		t.Errorf("%s, the sidecar is %.2f times as fast as the bare pipe, want %.2f", fromPublisher, got, ofPipe)
	}
	if got := median(ratios(taken[1], taken[0])); got < ofPipesBacklog {
		t.Errorf("%s, the sidecar is %.2f times as fast as the bare pipe, want %.2f", fromInbox, got, ofPipesBacklog)
	}
}

// emptyInbox has the mover meet a backlog.
func (c *contender) emptyInbox(t *testing.T) (perSecond float64) {
	t.Helper()
	c.publishHours(t)
	c.await(t, c.mover.inbox)
	stop := c.mover.start(t)
	perSecond = c.watch(t)
	stop()
	c.clear(t)
	return perSecond
}

// putAway publishes all messages, and waits until they are where they wait.
func (c *contender) putAway(t *testing.T) (perSecond float64) {
	t.Helper()
	stop := c.startMover(t)
	began := time.Now()
	c.publishHours(t)
	c.await(t, c.hours)
	perSecond = float64(*messages) / time.Since(began).Seconds()
	stop()
	c.clear(t)
	return perSecond
}

func (c *contender) publishHours(t *testing.T) {
	t.Helper()
	if err := c.publish(*messages, 0, func() time.Duration { return hour }); err != nil {
		t.Fatalf("%s: %v", c.name, err)
	}
}

// await waits until all messages are in a queue.
func (c *contender) await(t *testing.T, queue string) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		have := c.look(t, queue).Messages
		if have == *messages {
			return
		}
		if have > *messages || time.Now().After(deadline) {
			t.Fatalf("%s: %d of %d messages are in %s", c.name, have, *messages, queue)
		}
	}
}

// watch measures how fast messages arrive. The first ones do not count, since a process has to start.
func (c *contender) watch(t *testing.T) (perSecond float64) {
	t.Helper()
	var first time.Time
	var before int
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		have, now := c.look(t, c.hours).Messages, time.Now()
		switch {
		case have >= *messages:
			return float64(have-before) / now.Sub(first).Seconds()
		case first.IsZero() && have >= *messages/20:
			first, before = now, have
		case now.After(deadline):
			t.Fatalf("%s: %d of %d messages arrived", c.name, have, *messages)
		}
	}
}

// clear checks that each message arrived once, and removes all. The inbox may have some again: a broker can drop the last
// acknowledgements of a connection that closes.
func (c *contender) clear(t *testing.T) {
	t.Helper()
	if c.mover != nil {
		c.awaitConsumers(t, 0)
		c.purge(t, c.mover.inbox)
	}
	if purged := c.purge(t, c.hours); purged != *messages {
		t.Errorf("%s: %d messages arrived, want %d", c.name, purged, *messages)
	}
	brokertest.Eventually(t, patience, func() error {
		if left := c.look(t, c.hours).Messages; left > 0 {
			return fmt.Errorf("%d messages", left)
		}
		return nil
	})
}

func (c *contender) purge(t *testing.T, queue string) int {
	t.Helper()
	purged, err := c.control.QueuePurge(queue, false)
	if err != nil {
		t.Fatal(err)
	}
	return purged
}
