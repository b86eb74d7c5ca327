package session

import (
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
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
	if err := s.stalled(time.Now()); err != nil {
		t.Error(err)
	}
}

// answered is a confirmation of which the broker has said whether it keeps the message.
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

// Nothing that may have been returned is taken for kept.
func TestReturnOfNobodyKnowsWhatConcernsAll(t *testing.T) {
	t.Parallel()
	returns := make(chan amqp.Return, 1)
	returns <- amqp.Return{Headers: amqp.Table{"retry-undecodable": "x"}}
	p := &publisher{confirmChannel: confirmChannel{Confirming: amqpconn.Confirming{Returns: returns}}, returned: map[string]bool{}, outstanding: []*message{
		{publishTag: 1, publishID: "a", confirmation: answered(true)}, {publishTag: 2, publishID: "b", confirmation: answered(true)},
	}}
	for tag := range uint64(2) {
		if m := p.confirmed(tag + 1); m == nil || !p.took(m) {
			t.Errorf("message %d is not returned", tag+1)
		}
	}
}

// What waits for a confirm for long counts as kept, unless the broker has just had an alarm.
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
		if got := test.session.unanswered(m, now); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if (&Session{}).unanswered(&message{publishedAt: now.Add(-9 * time.Second)}, now) {
		t.Error("9 s are late")
	}
}

func TestOneMessageTakenEndsTheRefusal(t *testing.T) {
	t.Parallel()
	now := time.Now()
	p := &publisher{outstanding: []*message{{publishTag: 1, confirmation: answered(true)}}}
	p.refused(now.Add(-time.Minute))
	p.refused(now)
	if err := p.stalled(now, alarm{}); err == nil {
		t.Error("it does not count from the first refusal")
	}
	p.took(p.confirmed(1))
	if err := p.stalled(now, alarm{}); err != nil {
		t.Error(err)
	}
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
