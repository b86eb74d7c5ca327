//go:build bench

package benchdelay

import (
	"testing"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/benchtest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/terraformtest"
)

const (
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
	taken := benchtest.Results[float64]{}
	for i := range *rounds {
		for k := range turns {
			turn := turns[(i+k)%len(turns)]
			rate := turn.turn(turn.contender, t)
			taken.Add(turn.name+", "+turn.from, rate)
			t.Logf("%s, %s: %.0f/s", turn.name, turn.from, rate)
		}
	}
	perSecond := func(rate float64) float64 { return rate }
	show := benchtest.NewTable("", "msg/s", "of the bare pipe")
	for _, turn := range turns {
		who := turn.name + ", " + turn.from
		show.Line(who, benchtest.Number(taken.Median(who, perSecond), 0), benchtest.Number(taken.Ratio(who, bare+", "+turn.from, perSecond), 2))
	}
	t.Logf("%d messages of %d bytes with a delay of one hour, medians of %d rounds\n%s", *messages, *size, *rounds, show)
	for from, least := range map[string]float64{fromPublisher: ofPipe, fromInbox: ofPipesBacklog} {
		if got := taken.Ratio(sidecar+", "+from, bare+", "+from, perSecond); got < least {
			t.Errorf("%s, the sidecar is %.2f times as fast as the bare pipe, want %.2f", from, got, least)
		}
	}
}

// emptyInbox has the mover meet a backlog.
func (c *contender) emptyInbox(t *testing.T) (perSecond float64) {
	t.Helper()
	c.publishHours(t)
	c.AwaitMessages(t, c.inbox, *messages)
	stop := c.move(t)
	perSecond = c.Watch(t, c.hours, *messages)
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
	c.Watch(t, c.hours, *messages)
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

// clear checks that each message arrived once, and removes all.
func (c *contender) clear(t *testing.T) {
	t.Helper()
	if c.move != nil {
		c.Purge(t, c.inbox)
	}
	if purged := c.Purge(t, c.hours); purged != *messages {
		t.Errorf("%s: %d messages arrived, want %d", c.name, purged, *messages)
	}
	c.AwaitMessages(t, c.hours, 0)
}
