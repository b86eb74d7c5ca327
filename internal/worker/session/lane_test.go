package session

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
)

func TestStalledSession(t *testing.T) {
	t.Parallel()
	now := time.Now()
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	for name, test := range map[string]struct {
		sent, unblocked time.Time
		want            bool
	}{
		"waiting":                     {ago(74 * time.Second), time.Time{}, false},
		"unanswered":                  {ago(76 * time.Second), time.Time{}, true},
		"unanswered, but was blocked": {ago(time.Hour), ago(time.Minute), false},
		"unanswered since":            {ago(time.Hour), ago(2 * time.Minute), true},
	} {
		s, f := detouring(t)
		s.alarm.clearedAt = test.unblocked
		m := &message{sent: publish{at: test.sent}, verdict: f.sentBy(deadletter.Verdict{Action: deadletter.Fail})}
		s.lanes.all[address{exchange: "orders.retry"}] = &lane{channelState: open, outstanding: []*message{m, {sent: publish{at: now}}}}
		require.Equal(t, test.want, s.stalled(now) != nil, name)
		s.alarm.active = true
		require.NoError(t, s.stalled(now), "during an alarm")
	}
}

// answered is a confirmation with the broker's answer.
type answered bool

func (a answered) Acked() bool { return bool(a) }

func TestConfirmOfAnUnknownTagIsIgnored(t *testing.T) {
	t.Parallel()
	p := &lane{confirmChannel: noted(), outstanding: []*message{{sent: publish{tag: 2, confirmation: answered(true)}}}}
	for _, step := range []struct {
		tag  uint64
		want bool
	}{{0, false}, {1, false}, {3, false}, {2, true}, {3, false}} {
		if m := p.confirm(step.tag); (m != nil) != step.want {
			t.Errorf("tag %d is taken: %t", step.tag, m != nil)
		}
	}
}

// noted is a channel whose reader has noted these returns, and has ended.
func noted(ids ...string) confirmChannel {
	r := newReturned(deadletter.HeaderPublishID)
	for _, id := range ids {
		r.note(amqp.Return{Headers: amqp.Table{r.idHeader: id}})
	}
	close(r.noMore)
	return confirmChannel{returned: r}
}

// A look sees each return that came before it, even if the loop takes no answers.
func TestReturnsAreNotedBeforeALook(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, l := silent(t)
		ctx, end := context.WithCancel(t.Context())
		s.ended, s.lanes.answers = ctx.Done(), make(chan answer)
		returns, confirms := make(chan amqp.Return), make(chan amqp.Confirmation, 1)
		l.confirmChannel = confirmChannel{
			Confirming: amqpconn.Confirming{Returns: returns}, confirms: confirms, returned: newReturned(deadletter.HeaderPublishID),
		}
		go s.read(l, l.confirmChannel)
		confirms <- amqp.Confirmation{DeliveryTag: 1}
		synctest.Wait()
		returns <- amqp.Return{Headers: amqp.Table{deadletter.HeaderPublishID: "a"}}
		l.returned.look()
		require.True(t, l.returned.take("a"))
		require.Equal(t, uint64(1), (<-s.lanes.answers).DeliveryTag)
		close(returns)
		close(confirms)
		require.False(t, (<-s.lanes.answers).ok)
		l.returned.look() // the reader has ended
		end()
	})
}

// A message that can have been returned does not count as kept.
func TestReturnOfNobodyKnowsWhatConcernsAll(t *testing.T) {
	t.Parallel()
	s, _ := detouring(t)
	p := &lane{watch: s.watch.Exchange(""), confirmChannel: noted("none"), outstanding: []*message{
		{sent: publish{tag: 1, id: "a", confirmation: answered(true)}}, {sent: publish{tag: 2, id: "b", confirmation: answered(true)}},
	}}
	p.returned.note(amqp.Return{Headers: amqp.Table{"retry-undecodable": "x"}})
	for tag := range uint64(2) {
		if m := p.confirm(tag + 1); m == nil || !p.settled(m) {
			t.Errorf("message %d is not returned", tag+1)
		}
	}
}

// A message that waits long for a confirm counts as kept, unless the broker has just had an alarm.
func TestUnansweredCountsAsBacklog(t *testing.T) {
	t.Parallel()
	now := time.Now()
	m := &message{sent: publish{at: now.Add(-11 * time.Second)}}
	for name, test := range map[string]struct {
		session Session
		want    bool
	}{
		"late":             {Session{}, true},
		"blocked":          {Session{alarm: alarm{active: true}}, false},
		"blocked just now": {Session{alarm: alarm{clearedAt: now.Add(-time.Second)}}, false},
	} {
		require.Equal(t, test.want, test.session.unanswered(m, now), name)
	}
	require.False(t, (&Session{}).unanswered(&message{sent: publish{at: now.Add(-9 * time.Second)}}, now), "9 s are late")
}

// A refusal can be the channel's fault. So a lane gets another channel, but not for each refusal.
func TestRefusalRenewsTheChannel(t *testing.T) {
	t.Parallel()
	s, l := silent(t)
	m := &message{verdict: s.Flow.(*Retrying).sentBy(retry(short))}
	for _, want := range []channelState{stale, open} {
		l.channelState = open
		require.NoError(t, s.proceed(l, m, stepRefused))
		require.Equal(t, want, l.channelState)
	}
	l.renewed = time.Now().Add(-renewEvery - 1)
	require.NoError(t, s.proceed(l, m, stepRefused))
	require.Equal(t, stale, l.channelState)
}

func TestBacklogComesInOrderOfItsTime(t *testing.T) {
	t.Parallel()
	var b backlog
	now := time.Now()
	first, second, third := &message{}, &message{deferrals: 1}, &message{deferrals: 20}
	for _, m := range []*message{third, first, second} {
		b.keep(m, now)
	}
	if b.next(now) != nil {
		t.Error("due at once")
	}
	for _, step := range []struct {
		after time.Duration
		want  *message
	}{{100 * time.Millisecond, first}, {150 * time.Millisecond, nil}, {200 * time.Millisecond, second}, {1999 * time.Millisecond, nil}, {2 * time.Second, third}, {time.Hour, nil}} {
		if got := b.next(now.Add(step.after)); got != step.want {
			t.Errorf("after %s: %+v, want %+v", step.after, got, step.want)
		}
	}
}

// If the broker can refuse a message for its size, no other message is outstanding with it.
func TestLargeMessageGoesAlone(t *testing.T) {
	t.Parallel()
	small, large := &message{}, &message{delivery: amqp.Delivery{Body: make([]byte, alone)}}
	p := &lane{channelState: open, confirmChannel: confirmChannel{}}
	now := time.Now()
	if !p.ready(small, now) || !p.ready(large, now) {
		t.Error("an idle publisher waits")
	}
	p.outstanding = []*message{small}
	if !p.ready(small, now) || p.ready(large, now) {
		t.Error("a large message goes with others")
	}
}

// Each message that the broker refuses makes the others go one at a time for longer.
func TestWariness(t *testing.T) {
	t.Parallel()
	const window = 10
	p := &lane{channelState: open, confirmChannel: confirmChannel{}, outstanding: []*message{{}}}
	for _, want := range []int{10, 20, 40, 80, 160, 320, 640, 640} {
		p.isolation.left = 3
		if p.isolation.found(window); p.isolation.left != want || p.ready(&message{}, time.Now()) {
			t.Errorf("%d go one at a time, want %d", p.isolation.left, want)
		}
	}
	p.outstanding = nil
	require.True(t, p.ready(&message{}, time.Now()), "not even one goes")
}

// acknowledged keeps the delivery tags of acknowledged messages.
type acknowledged []uint64

func (a *acknowledged) Ack(tag uint64, _ bool) error {
	*a = append(*a, tag)
	return nil
}
func (a *acknowledged) Nack(uint64, bool, bool) error { return nil }
func (a *acknowledged) Reject(uint64, bool) error     { return nil }

// The library holds back the confirms after an unanswered message. At the end of a session, the worker still
// acknowledges the messages that the broker keeps. Otherwise they would be published once more.
func TestWhatIsAcceptedIsSettled(t *testing.T) {
	t.Parallel()
	var acks acknowledged
	s, f := detouring(t)
	p := &lane{confirmChannel: noted("returned")}
	for tag, m := range []*message{
		{sent: publish{tag: 1, confirmation: answered(false)}},
		{sent: publish{tag: 2, confirmation: answered(true)}},
		{sent: publish{tag: 3, confirmation: answered(true), id: "returned"}},
		{sent: publish{tag: 0, confirmation: answered(true)}}, // from the time before
		{sent: publish{tag: 4, confirmation: answered(true)}},
	} {
		m.delivery = amqp.Delivery{Acknowledger: &acks, DeliveryTag: uint64(tag)}
		m.verdict = f.sentBy(deadletter.Verdict{Action: deadletter.Rescue})
		p.outstanding = append(p.outstanding, m)
	}
	require.NoError(t, s.settleAccepted(p))
	if want := []uint64{1, 4}; !slices.Equal(acks, want) {
		t.Errorf("acknowledged %d, want %d", acks, want)
	}
	require.Len(t, p.outstanding, 3)
}

// At its deadline, a session acknowledges what the broker has confirmed, or the next one would publish it once more.
func TestAcceptedIsSettledAtTheDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var acks acknowledged
		s, f := detouring(t)
		s.backlog.timer, s.lanes.sweep = time.NewTimer(time.Hour), time.NewTimer(time.Hour)
		s.inbox.channel, s.inbox.inFlight, s.late, s.drainedBy = &amqp.Channel{}, 2, true, time.Now()
		p := &lane{confirmChannel: noted()}
		for tag, accepted := range []bool{true, false} {
			p.outstanding = append(p.outstanding, &message{
				sent: publish{tag: uint64(tag + 1), confirmation: answered(accepted)}, verdict: f.sentBy(deadletter.Verdict{Action: deadletter.Rescue}),
				delivery: amqp.Delivery{Acknowledger: &acks, DeliveryTag: uint64(tag)},
			})
		}
		s.lanes.all[address{exchange: "orders.retry"}] = p
		require.ErrorContains(t, s.Run(t.Context()), "1 message(s) were still in flight")
		require.Equal(t, acknowledged{0}, acks)
	})
}

// A session that must end waits for no confirms.
func TestLastConfirmsAreNotWaitedFor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*Session)
		want   time.Duration
	}{
		"usually":          {func(*Session) {}, lastConfirms},
		"closed":           {func(s *Session) { s.end() }, 0},
		"out of time":      {func(s *Session) { s.drainedBy = time.Now() }, 0},
		"nearly so":        {func(s *Session) { s.drainedBy = time.Now().Add(time.Second) }, time.Second},
		"with time enough": {func(s *Session) { s.drainedBy = time.Now().Add(time.Hour) }, lastConfirms},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, _ := detouring(t)
				ctx, end := context.WithCancel(t.Context())
				s.ended, s.end = ctx.Done(), end
				defer end()
				s.inbox.channel = &amqp.Channel{}
				s.lanes.all[address{exchange: "orders.retry"}] = &lane{confirmChannel: noted(), outstanding: []*message{{sent: publish{tag: 1, confirmation: answered(false)}}}}
				c.change(s)
				began := time.Now()
				s.settleLast()
				require.Equal(t, c.want+ackGrace, time.Since(began))
			})
		})
	}
}
