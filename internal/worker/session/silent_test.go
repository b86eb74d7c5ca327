package session

import (
	"slices"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
)

// silent returns a session with a lane to the failed queue.
func silent(t *testing.T) (*Session, *lane) {
	t.Helper()
	s, f := detouring(t)
	s.backlog.timer = time.NewTimer(time.Hour)
	ended := make(chan struct{})
	close(ended) // no channel is opened
	s.ended, s.lanes.open = ended, func() (confirmChannel, error) { return confirmChannel{}, amqp.ErrClosed }
	l := s.assign(&lane{channelState: open}, address{exchange: f.config.Names.FailedExchange()})
	l.confirmChannel = noted()
	return s, l
}

// A message counts as refused once the broker has accepted a message that was published long after it.
func TestSilentMessage(t *testing.T) {
	t.Parallel()
	now := time.Now()
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	for name, c := range map[string]struct {
		published, heard, gaveUp, unblocked, answered time.Duration
		oldest, want                                  bool
	}{
		"just now":                      {published: time.Second, gaveUp: time.Hour},
		"as late as all others":         {published: time.Minute, heard: time.Minute - time.Second, gaveUp: time.Hour},
		"later ones are accepted":       {published: 6 * time.Second, heard: 500 * time.Millisecond, gaveUp: time.Hour, want: true},
		"while others are not answered": {published: time.Second, gaveUp: time.Second, want: true},
		"hardly later, then":            {published: time.Second, heard: 900 * time.Millisecond, gaveUp: time.Second},
		"after an alarm":                {published: time.Minute, gaveUp: time.Hour, unblocked: 4 * time.Second},
		"nothing else is published":     {published: 6 * time.Second, heard: time.Hour, gaveUp: time.Hour, oldest: true, want: true},
		"nothing else, not the oldest":  {published: 6 * time.Second, heard: time.Hour, gaveUp: time.Hour},
		"the oldest, but it just began": {published: 4 * time.Second, heard: time.Hour, gaveUp: time.Hour, oldest: true},
		"the oldest, while others wait": {published: time.Second, heard: time.Hour, gaveUp: time.Second, oldest: true, want: true},
		"one of them tries at a time":   {published: time.Second, heard: time.Hour, gaveUp: 100 * time.Millisecond, oldest: true},
		"its target answers":            {published: time.Second, gaveUp: time.Second, answered: 2 * time.Second},
		"its target answered before":    {published: time.Second, gaveUp: time.Second, answered: 2 * time.Minute, want: true},
	} {
		s, l := silent(t)
		s.lanes.heardOf, s.Patience.gaveUpAt = ago(c.heard), ago(c.gaveUp)
		if c.answered > 0 {
			l.silence = silence{heardAt: ago(c.answered), gaveUpAt: ago(time.Minute)}
		}
		if c.unblocked > 0 {
			s.alarm.clearedAt = ago(c.unblocked)
		}
		require.Equal(t, c.want, s.isSilent(l, &message{sent: publish{at: ago(c.published)}}, c.oldest, now), name)
	}
}

// A silent target holds up no other. Its lane gets another channel.
func TestSilentTarget(t *testing.T) {
	t.Parallel()
	s, l := silent(t)
	now := time.Now()
	failing := func() verdict { return s.Flow.(*Retrying).decided(deadletter.Verdict{Action: deadletter.Fail}) }
	m := &message{sent: publish{tag: 1, at: now.Add(-time.Minute), confirmation: answered(false)}, verdict: failing()}
	fresh := &message{sent: publish{tag: 2, at: now, confirmation: answered(false)}, verdict: failing()}
	l.outstanding = []*message{m, fresh}
	s.lanes.heardOf = now
	require.NoError(t, s.settleSilent(l, s.isSilent, now))
	require.True(t, m.verdict.(*retried).Refused)
	require.Equal(t, []*message{fresh}, l.outstanding)
	require.Equal(t, stale, l.channelState, "no other channel is asked for")
	require.Equal(t, silentAgain, l.silence.patience(s.Patience.At(now)))
	require.NotSame(t, l, s.lane(m.route), "the refused queue has the same lane")
}

// If a given-up message is accepted later, its queue is only slow.
func TestSlowQueueIsNotSilent(t *testing.T) {
	t.Parallel()
	s, l := silent(t)
	now := time.Now()
	l.silence.gaveUp(3, now)
	l.silence.gaveUp(4, now)
	s.Patience.GiveUp(now)
	for _, c := range []struct {
		amqp.Confirmation
		want time.Duration
	}{
		{amqp.Confirmation{DeliveryTag: 3}, silentAgain},
		{amqp.Confirmation{DeliveryTag: 4, Ack: true}, silentAgain},
		{amqp.Confirmation{DeliveryTag: 3, Ack: true}, silentAfter},
	} {
		require.NoError(t, s.confirm(answer{lane: l, Confirmation: c.Confirmation, ok: true}))
		require.Equal(t, c.want, l.silence.patience(s.Patience.At(now)), c)
	}
}

// Each target has a lane while there is room. Then an idle lane serves the next one, and at last the lane of the exchange does.
func TestLanes(t *testing.T) {
	t.Parallel()
	s, _ := silent(t)
	clear(s.lanes.all)
	s.lanes.most = 2
	to := func(exchange, target string) *lane {
		return s.lane(deadletter.Route{Exchange: exchange, Target: target})
	}
	a, b := to("x", "a"), to("x", "b")
	if a == b || to("x", "a") != a {
		t.Error("two targets have one lane, or one has two")
	}
	shared := to("x", "c")
	if shared == a || shared == b || to("x", "d") != shared || to("y", "") == shared {
		t.Error("while no lane is idle, further targets must have the lane of their exchange")
	}
	b.channelState, b.nextProbe = open, time.Now()
	if to("y", "e") != b || s.lanes.all[address{"x", "b"}] != nil || !b.nextProbe.IsZero() {
		t.Error("an idle lane does not serve another target as a new one would")
	}
	for _, busy := range []func(*lane){
		func(l *lane) { l.waiting = []*message{{}} }, func(l *lane) { l.published = 1 },
		func(l *lane) { l.channelState = stale }, func(l *lane) { l.condition = full }, func(l *lane) { l.isolation.left = 1 },
	} {
		l := lane{channelState: open}
		require.True(t, l.free())
		busy(&l)
		require.False(t, l.free(), "%+v", l)
	}
}

func TestLanesWithinTheBrokersChannels(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ exchanges, channels, want int }{{6, 0, mostLanes}, {6, 2047, mostLanes}, {6, 33, 10}, {6, 13, 0}, {6, 12, -1}} {
		most, err := lanesWithin(c.exchanges, c.channels)
		require.Equal(t, c.want < 0, err != nil, c)
		require.Equal(t, max(0, c.want), most, c)
	}
}

// The broker stops reading from a connection if a channel continues to publish to a silent queue.
func TestCrowdedChannel(t *testing.T) {
	t.Parallel()
	now := time.Now()
	outstanding := func(since time.Duration) []*message {
		return []*message{{sent: publish{tag: 10, at: now.Add(-since)}}}
	}
	for name, c := range map[string]struct {
		lane
		want bool
	}{
		"healthy":         {lane{setsAside: true, outstanding: outstanding(100 * time.Millisecond)}, false},
		"slow":            {lane{setsAside: true, outstanding: outstanding(time.Second)}, true},
		"silent":          {lane{setsAside: true, silence: silence{tag: 10}}, true},
		"of another kind": {lane{outstanding: outstanding(time.Second)}, false},
	} {
		c.published = 9 + mostUnheard
		require.False(t, c.crowded(now), name)
		if c.published++; c.crowded(now) != c.want {
			t.Errorf("%s: %t", name, !c.want)
		}
	}
}

// The library holds back the confirms after an unanswered message.
func TestAcceptedBehindASilentMessage(t *testing.T) {
	t.Parallel()
	var acks acknowledged
	s, p := silent(t)
	now := time.Now()
	for tag, accepted := range []bool{false, true, true} {
		p.outstanding = append(p.outstanding, &message{
			sent:     publish{tag: uint64(tag + 1), id: string(rune('a' + tag)), at: now.Add(-time.Second), confirmation: answered(accepted)},
			delivery: amqp.Delivery{Acknowledger: &acks, DeliveryTag: uint64(tag + 1)},
			verdict:  s.Flow.(*Retrying).sentBy(deadletter.Verdict{Action: deadletter.Fail}),
		})
	}
	p.returned.note(amqp.Return{Headers: amqp.Table{deadletter.HeaderPublishID: "b"}})
	require.NoError(t, s.settleSilent(p, s.isSilent, now))
	if !slices.Equal(acks, []uint64{3}) || len(p.outstanding) != 1 || len(s.backlog.messages) != 1 {
		t.Errorf("acknowledged %d, outstanding %d, kept %d", acks, len(p.outstanding), len(s.backlog.messages))
	}
}
