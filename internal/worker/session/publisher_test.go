package session

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
)

func TestStalledPublisher(t *testing.T) {
	t.Parallel()
	now := time.Now()
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	sent := func(d time.Duration) []*message { return []*message{{publishedAt: ago(d)}, {publishedAt: now}} }
	tests := map[string]struct {
		publisher publisher
		unblocked time.Time
		want      string
	}{
		"idle":                        {publisher{}, time.Time{}, ""},
		"waiting":                     {publisher{outstanding: sent(74 * time.Second)}, time.Time{}, ""},
		"unanswered":                  {publisher{outstanding: sent(76 * time.Second)}, time.Time{}, "not confirmed"},
		"unanswered, but was blocked": {publisher{outstanding: sent(time.Hour)}, ago(time.Minute), ""},
		"unanswered since":            {publisher{outstanding: sent(time.Hour)}, ago(2 * time.Minute), "not confirmed"},
		"nacked":                      {publisher{nackedSince: ago(4 * time.Second)}, time.Time{}, ""},
		"nacked for long":             {publisher{nackedSince: ago(6 * time.Second)}, time.Time{}, "refused"},
		"nacked, but was blocked":     {publisher{nackedSince: ago(time.Hour)}, ago(time.Second), ""},
	}
	for name, test := range tests {
		err := test.publisher.stalled(now, alarm{clearedAt: test.unblocked})
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, test.want)
		}
	}
}

func TestBlockedSessionIsNotStalled(t *testing.T) {
	t.Parallel()
	s, _ := detouring(t)
	s.publishers.all["orders.retry"] = &publisher{nackedSince: time.Now().Add(-time.Hour)}
	if err := s.stalled(time.Now()); err == nil {
		t.Error("no error")
	}
	s.alarm.active = true
	require.NoError(t, s.stalled(time.Now()))
}

// answered is a confirmation with the broker's answer.
type answered bool

func (a answered) Acked() bool { return bool(a) }

func TestConfirmOfAnUnknownTagIsIgnored(t *testing.T) {
	t.Parallel()
	p := &publisher{outstanding: []*message{{publishTag: 2, confirmation: answered(true)}}}
	for _, step := range []struct {
		tag  uint64
		want bool
	}{{0, false}, {1, false}, {3, false}, {2, true}, {3, false}} {
		if m := p.confirmed(step.tag); (m != nil) != step.want {
			t.Errorf("tag %d is taken: %t", step.tag, m != nil)
		}
	}
}

// A message that can have been returned does not count as kept.
func TestReturnOfNobodyKnowsWhatConcernsAll(t *testing.T) {
	t.Parallel()
	returns := make(chan amqp.Return, 1)
	returns <- amqp.Return{Headers: amqp.Table{"retry-undecodable": "x"}}
	s, _ := detouring(t)
	channel := confirmChannel{Confirming: amqpconn.Confirming{Returns: returns}}
	p := &publisher{watch: s.watch.Exchange(""), confirmChannel: channel, returned: map[string]bool{}, outstanding: []*message{
		{publishTag: 1, publishID: "a", confirmation: answered(true)}, {publishTag: 2, publishID: "b", confirmation: answered(true)},
	}}
	for tag := range uint64(2) {
		if m := p.confirmed(tag + 1); m == nil || !p.took(m) {
			t.Errorf("message %d is not returned", tag+1)
		}
	}
}

// A message that waits long for a confirm counts as kept, unless the broker has just had an alarm.
func TestUnansweredCountsAsBacklog(t *testing.T) {
	t.Parallel()
	now := time.Now()
	m := &message{publishedAt: now.Add(-11 * time.Second)}
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
	require.False(t, (&Session{}).unanswered(&message{publishedAt: now.Add(-9 * time.Second)}, now), "9 s are late")
}

func TestOneMessageTakenEndsTheRefusal(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s, _ := detouring(t)
	p := &publisher{watch: s.watch.Exchange(""), outstanding: []*message{{publishTag: 1, confirmation: answered(true)}}}
	p.refused(now.Add(-time.Minute))
	p.refused(now)
	if err := p.stalled(now, alarm{}); err == nil {
		t.Error("it does not count from the first refusal")
	}
	p.took(p.confirmed(1))
	require.NoError(t, p.stalled(now, alarm{}))
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
	p := &publisher{}
	if !p.ready(small) || !p.ready(large) {
		t.Error("an idle publisher waits")
	}
	p.outstanding = []*message{small}
	if !p.ready(small) || p.ready(large) {
		t.Error("a large message goes with others")
	}
}

// Each message that the broker refuses makes the others go one at a time for longer.
func TestWariness(t *testing.T) {
	t.Parallel()
	const window = 10
	p := &publisher{outstanding: []*message{{}}}
	for _, want := range []int{10, 20, 40, 80, 160, 320, 640, 640} {
		p.suspects = 3
		if p.slowDown(window); p.suspects != want || p.ready(&message{}) {
			t.Errorf("%d go one at a time, want %d", p.suspects, want)
		}
	}
	p.outstanding = nil
	require.True(t, p.ready(&message{}), "not even one goes")
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
	p := &publisher{returned: map[string]bool{"returned": true}}
	for tag, m := range []*message{
		{publishTag: 1, confirmation: answered(false)},
		{publishTag: 2, confirmation: answered(true)},
		{publishTag: 3, confirmation: answered(true), publishID: "returned"},
		{publishTag: 0, confirmation: answered(true)}, // from the time before
		{publishTag: 4, confirmation: answered(true)},
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
		s.backlog.timer, s.silence.timer = time.NewTimer(time.Hour), time.NewTimer(time.Hour)
		s.inbox.channel, s.inbox.inFlight, s.late, s.drainedBy = &amqp.Channel{}, 2, true, time.Now()
		p := &publisher{}
		for tag, accepted := range []bool{true, false} {
			p.outstanding = append(p.outstanding, &message{
				publishTag: uint64(tag + 1), confirmation: answered(accepted), verdict: f.sentBy(deadletter.Verdict{Action: deadletter.Rescue}),
				delivery: amqp.Delivery{Acknowledger: &acks, DeliveryTag: uint64(tag)},
			})
		}
		s.publishers.all["orders.retry"] = p
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
				s.publishers.all["orders.retry"] = &publisher{outstanding: []*message{{publishTag: 1, confirmation: answered(false)}}}
				c.change(s)
				began := time.Now()
				s.settleLast()
				require.Equal(t, c.want+ackGrace, time.Since(began))
			})
		})
	}
}
