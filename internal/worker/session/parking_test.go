package session

import (
	"log/slog"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
)

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
	if err := p.observe([]*message{silent, accepted}, alarm{}, now); err == nil {
		t.Error("no error")
	}
	at := func(after time.Duration) time.Time { return now.Add(after) }
	for _, c := range []struct {
		queue string
		at    time.Duration
		want  deadletter.Detour
	}{
		{"a", 0, deadletter.DetourRefused},
		{"b", 0, ""},
		{"a", probePeriod, deadletter.DetourRefused},
		{"a", probePeriod + time.Second, ""}, // tries again
		{"a", probePeriod + 2*time.Second, deadletter.DetourRefused},
	} {
		if got := p.detour(c.queue, alarm{}, at(c.at)); got != c.want {
			t.Errorf("%s after %s: %q, want %q", c.queue, c.at, got, c.want)
		}
	}
	p.accepted("a", slog.New(slog.DiscardHandler))
	if p.detour("a", alarm{}, at(2*probePeriod)) != "" {
		t.Error("the detour goes on after a message was accepted")
	}
}
