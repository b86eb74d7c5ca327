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
		{parkingPatience - 1, ""},
		{parkingPatience, deadletter.DetourForbidden},
		{parkingPatience + parkingProbe, deadletter.DetourForbidden},
		{parkingPatience + parkingProbe + 1, ""}, // tries again
		{parkingPatience + parkingProbe + 2, deadletter.DetourForbidden},
	} {
		if got := o.detour(alarm{}, now.Add(step.after)); got != step.want {
			t.Errorf("after %s: %q, want %q", step.after, got, step.want)
		}
	}
	// What an alarm has stopped does not count.
	alarmed.shut(&amqp.Error{Code: amqp.NotFound}, now)
	if got := alarmed.detour(alarm{clearedAt: now.Add(4 * time.Second)}, now.Add(parkingPatience)); got != "" {
		t.Errorf("detour %q during an alarm", got)
	}
}
