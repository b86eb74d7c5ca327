package session

import (
	"slices"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
)

// silent returns a session with a publisher to the failed queue.
func silent(t *testing.T) (*Session, *publisher) {
	t.Helper()
	s, f := detouring(t)
	s.silence.Silent, s.backlog.timer = NewSilent(), time.NewTimer(time.Hour)
	p := newPublisher(f.config.Names.FailedExchange(), deadletter.HeaderPublishID)
	p.watch, p.setsAside = s.watch.Exchange(p.exchange), true
	s.publishers.all[p.exchange] = p
	return s, p
}

// A message counts as refused once the broker has accepted a message that was published long after it.
func TestSilentMessage(t *testing.T) {
	t.Parallel()
	now := time.Now()
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	for name, c := range map[string]struct {
		published, heard, gaveUp, unblocked time.Duration
		oldest, want                        bool
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
	} {
		s, _ := silent(t)
		s.silence.heardOf, s.silence.patience.gaveUpAt = ago(c.heard), ago(c.gaveUp)
		if c.unblocked > 0 {
			s.alarm.clearedAt = ago(c.unblocked)
		}
		require.Equal(t, c.want, s.isSilent(&message{publishedAt: ago(c.published)}, c.oldest, now), name)
	}
}

// A silent address has another channel until it answers. A message that only waits behind it is published once more
// before it counts as refused.
func TestSilentAddress(t *testing.T) {
	t.Parallel()
	s, p := silent(t)
	now := time.Now()
	ended := make(chan struct{})
	close(ended) // no channel is opened
	s.ended, s.publishers.open = ended, func() (confirmChannel, error) { return confirmChannel{}, amqp.ErrClosed }
	route := func(key string) deadletter.Route { return deadletter.Route{Exchange: p.exchange, Key: key} }
	failing := func() verdict { return s.Flow.(*Retrying).decided(deadletter.Verdict{Action: deadletter.Fail}) }
	refused := func(m *message) bool { return m.verdict.(*retried).Refused }
	first := &message{publishTag: 1, route: route("first"), confirmation: answered(false), verdict: failing()}
	behind := &message{publishTag: 2, route: route("behind"), confirmation: answered(false), verdict: failing()}
	require.NoError(t, s.giveUp(p, first, now))
	require.NoError(t, s.giveUp(p, behind, now))
	if s.to(route("first")) == p || s.to(route("behind")) == p || s.to(route("another")) != p || !p.stale {
		t.Errorf("silent: %v, another channel %t", s.silence.addresses, p.stale)
	}
	if !refused(first) || refused(behind) {
		t.Errorf("refused: the first %t, the one behind %t", refused(first), refused(behind))
	}
	require.NoError(t, s.giveUp(s.to(route("behind")), behind, now))
	if !refused(behind) {
		t.Error("it is not refused although it has waited twice")
	}
	full := &message{publishTag: 3, route: route("full"), confirmation: answered(false), verdict: failing()}
	s.silence.refused(addressOf(full.route), now)
	require.NoError(t, s.giveUp(p, full, now))
	if !refused(full) {
		t.Error("it is published again although a queue behind its address refuses messages")
	}
	s.silence.heard(&message{route: route("first")})
	if s.to(route("first")) != p {
		t.Error("it is silent although it has answered")
	}
}

// If a given-up message is accepted later, its queue is only slow.
func TestSlowQueueIsNotSilent(t *testing.T) {
	t.Parallel()
	s, p := silent(t)
	now := time.Now()
	v := s.Flow.(*Retrying).decided(deadletter.Verdict{Action: deadletter.Fail, Refused: true})
	m := &message{publishTag: 3, confirmation: answered(false), verdict: v}
	require.NoError(t, s.giveUp(p, m, now))
	confirm := func(c amqp.Confirmation, want time.Duration) {
		t.Helper()
		require.NoError(t, s.confirm(answer{publisher: p, Confirmation: c, ok: true}))
		require.Equal(t, want, s.silence.patience.At(now), c)
	}
	confirm(amqp.Confirmation{DeliveryTag: 3}, silentAgain)
	confirm(amqp.Confirmation{DeliveryTag: 4, Ack: true}, silentAgain)
	s.silence.begin(address{p.exchange, "another"})
	confirm(amqp.Confirmation{DeliveryTag: 3, Ack: true}, silentAgain)
	delete(s.silence.addresses, address{p.exchange, "another"})
	confirm(amqp.Confirmation{DeliveryTag: 3, Ack: true}, silentAfter)
}

// The broker stops reading from a connection if a channel continues to publish to a silent queue.
func TestCrowdedChannel(t *testing.T) {
	t.Parallel()
	now := time.Now()
	outstanding := func(since time.Duration) []*message {
		return []*message{{publishTag: 10, publishedAt: now.Add(-since)}}
	}
	for name, c := range map[string]struct {
		publisher
		want bool
	}{
		"healthy":         {publisher{setsAside: true, outstanding: outstanding(100 * time.Millisecond)}, false},
		"slow":            {publisher{setsAside: true, outstanding: outstanding(time.Second)}, true},
		"silent":          {publisher{setsAside: true, confirmChannel: confirmChannel{unheard: 10}}, true},
		"of another kind": {publisher{outstanding: outstanding(time.Second)}, false},
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
	returns := make(chan amqp.Return, 1)
	p.Returns = returns
	for tag, accepted := range []bool{false, true, true} {
		p.outstanding = append(p.outstanding, &message{
			publishTag: uint64(tag + 1), publishID: string(rune('a' + tag)), publishedAt: now.Add(-time.Second), confirmation: answered(accepted),
			delivery: amqp.Delivery{Acknowledger: &acks, DeliveryTag: uint64(tag + 1)},
			verdict:  s.Flow.(*Retrying).sentBy(deadletter.Verdict{Action: deadletter.Fail}),
		})
	}
	returns <- amqp.Return{Headers: amqp.Table{deadletter.HeaderPublishID: "b"}}
	require.NoError(t, s.settleSilent(p, now))
	if !slices.Equal(acks, []uint64{3}) || len(p.outstanding) != 1 || len(s.backlog.messages) != 1 {
		t.Errorf("acknowledged %d, outstanding %d, kept %d", acks, len(p.outstanding), len(s.backlog.messages))
	}
}
