package deadletter

import (
	"slices"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
)

// Delays are those that a retried message can wait.
func (p *Pipeline) Delays() []time.Duration {
	delays := slices.Clone(p.delays)
	slices.Sort(delays)
	return slices.Compact(delays)
}

// FailReasons are all that can stand in the dead-letter-reason of a failed message.
func FailReasons() []string {
	reasons := []string{
		ReasonExhausted, ReasonUnrecoverable, ReasonUnknownQueue, ReasonMalformed, ReasonTooOld, ReasonRetryAfterTooLong, ReasonWorkerError,
	}
	for _, reason := range pipeline.Reasons() {
		if reason != pipeline.ReasonRejected { // always retried
			reasons = append(reasons, reason)
		}
	}
	return reasons
}

// DiedAt is when the broker dead-lettered the message last, in whole seconds of its clock; zero if
// nobody knows. Whoever may publish to the dead-letter exchange can write what they like there.
func DiedAt(h amqp.Table) time.Time {
	deaths, _ := h[headerDeath].([]any)
	if len(deaths) == 0 {
		return time.Time{}
	}
	last, _ := deaths[0].(amqp.Table)
	at, _ := last["time"].(time.Time)
	return at
}
