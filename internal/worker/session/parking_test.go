package session

import (
	"log/slog"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
)

// What a failed queue refuses goes to the pipeline's after five seconds, but for one message every ten.
func TestFailedQueueThatRefuses(t *testing.T) {
	t.Parallel()
	p, now := NewParking(), time.Now()
	at := func(seconds float64) time.Time { return now.Add(time.Duration(seconds * float64(time.Second))) }
	if p.refused("a", alarm{}, now) || p.refused("a", alarm{}, at(4.9)) || p.detour("a", alarm{}, at(4.9)) != "" {
		t.Error("the detour begins at once")
	}
	for _, c := range []struct {
		queue string
		at    float64
		want  deadletter.Detour
	}{
		{"a", 5, deadletter.DetourRefused},
		{"b", 5, ""},
		{"a", 14, deadletter.DetourRefused},
		{"a", 15.1, ""}, // tries again
		{"a", 15.2, deadletter.DetourRefused},
		{"a", 25.2, ""},
	} {
		if got := p.detour(c.queue, alarm{}, at(c.at)); got != c.want {
			t.Errorf("%s after %g s: %q, want %q", c.queue, c.at, got, c.want)
		}
	}
	if !p.refused("a", alarm{}, at(25.3)) {
		t.Error("the message that tried again waits")
	}
	p.accepted("a", slog.New(slog.DiscardHandler))
	if p.detour("a", alarm{}, at(25.4)) != "" || p.refused("a", alarm{}, at(25.4)) {
		t.Error("the detour goes on after a message was accepted")
	}
}

func TestExchangeOfFailedQueuesIsClosed(t *testing.T) {
	t.Parallel()
	p, now := NewParking(), time.Now()
	p.shut(&amqp.Error{Code: amqp.NotFound}, now)
	p.shut(&amqp.Error{Code: amqp.AccessRefused}, now.Add(time.Second))
	if got := p.detour("a", alarm{}, now.Add(parkingPatience)); got != deadletter.DetourForbidden {
		t.Errorf("detour %q", got)
	}
	// What an alarm has stopped does not count.
	alarmed := NewParking()
	alarmed.shut(&amqp.Error{Code: amqp.NotFound}, now)
	if got := alarmed.detour("a", alarm{clearedAt: now.Add(4 * time.Second)}, now.Add(parkingPatience)); got != "" {
		t.Errorf("detour %q during an alarm", got)
	}
}

// A queue that does not answer keeps back the confirms of others.
func TestFailedQueueThatIsSilent(t *testing.T) {
	t.Parallel()
	now := time.Now()
	silent := &message{
		sent:       deadletter.Verdict{Action: deadletter.Fail, Letter: deadletter.Letter{Queue: "a"}},
		publishTag: 1, publishedAt: now.Add(-detourAfter - time.Second), confirmation: answered(false),
	}
	accepted := &message{publishTag: 2, publishedAt: now, confirmation: answered(true)}
	p := NewParking()
	if err := p.observe([]*message{silent}, alarm{}, now); err != nil {
		t.Errorf("a single message: %v", err)
	}
	if err := p.observe([]*message{silent, accepted}, alarm{}, now); err == nil || p.detour("a", alarm{}, now) != deadletter.DetourRefused {
		t.Errorf("error %v", err)
	}
}

// Whoever makes up names of queues takes no memory.
func TestManyFailedQueuesThatRefuse(t *testing.T) {
	t.Parallel()
	p, now := NewParking(), time.Now()
	for i := range 2 * mostRefusing {
		p.refused(string(rune(i)), alarm{}, now)
	}
	if n := len(p.refusing); n > mostRefusing {
		t.Errorf("%d remembered", n)
	}
}
