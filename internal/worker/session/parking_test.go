package session

import (
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
)

func TestExchangeOfFailedQueuesIsClosed(t *testing.T) {
	t.Parallel()
	now := time.Now()
	var o, alarmed obstacle
	o.shut(&amqp.Error{Code: amqp.NotFound}, now)
	o.shut(&amqp.Error{Code: amqp.AccessRefused}, now.Add(time.Second))
	for _, step := range []struct {
		after time.Duration
		want  deadletter.Detour
	}{
		{ParkingPatience - 1, ""},
		{ParkingPatience, deadletter.DetourForbidden},
		{ParkingPatience + parkingProbe, deadletter.DetourForbidden},
		{ParkingPatience + parkingProbe + 1, ""}, // tries again
		{ParkingPatience + parkingProbe + 2, deadletter.DetourForbidden},
	} {
		if got := o.detour(alarm{}, now.Add(step.after)); got != step.want {
			t.Errorf("after %s: %q, want %q", step.after, got, step.want)
		}
	}
	// What an alarm has stopped does not count.
	alarmed.shut(&amqp.Error{Code: amqp.NotFound}, now)
	if got := alarmed.detour(alarm{clearedAt: now.Add(4 * time.Second)}, now.Add(ParkingPatience)); got != "" {
		t.Errorf("detour %q during an alarm", got)
	}
}

// What a queue refuses has got to it: the exchange is there, and open to this user.
func TestRefusalEndsADetour(t *testing.T) {
	t.Parallel()
	s, p := silent(t)
	f, _ := s.Flow.(*Retrying)
	f.parking = obstacle{why: deadletter.DetourMissing, since: time.Now().Add(-time.Minute), nextProbe: time.Now()}
	v := deadletter.Verdict{Action: deadletter.Fail, Letter: deadletter.Letter{Queue: "orders.created"}}
	refused := f.config.Route(v.SetAside())
	s.publishers.all[refused.Channel()] = newPublisher(refused.Exchange, deadletter.HeaderPublishID)
	s.publishers.all[refused.Channel()].shut = true
	if err := f.nacked(p, &message{verdict: v, sent: v, confirmation: answered(false)}); err != nil || f.parking != (obstacle{}) {
		t.Errorf("%+v, error %v", f.parking, err)
	}
}
