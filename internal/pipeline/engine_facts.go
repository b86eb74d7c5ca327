package pipeline

import (
	"fmt"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Facts describe an engine for checks and messages.
type Facts struct {
	// Since is the oldest release that supports the engine, and Before says what older releases do.
	Since  topology.Version
	Before string
	// InQueue says that messages wait in their work queue, by its policy. Classic queues cannot do that, and an
	// attachment does not know the delays.
	InQueue bool
	// Misfit says why the engine cannot follow a list of delays, and returns "" if it can.
	Misfit func([]time.Duration) (summary, detail string)
	// Call is how consumers must return a message that they cannot process. Otherwise says what happens if they do not.
	Call, Otherwise string
	// Unbound says what happens to messages that have waited if their work queue is not bound.
	Unbound string
}

func (workerEngine) facts() Facts {
	return Facts{
		Misfit:    func([]time.Duration) (summary, detail string) { return "", "" },
		Call:      "call basic.nack(requeue=false)",
		Otherwise: "With requeue=true, a message comes back at once, without a delay. The guide \"Choosing an engine\" says what each call does.",
		Unbound: "After each delay, its messages go to the sidecar again. " +
			"The sidecar publishes them to the queue by name. Without the permission for that, it parks them.",
	}
}

func (nativeEngine) facts() Facts {
	return Facts{
		Since: topology.Version{Major: 4, Minor: 3, Patch: 1},
		Before: "Quorum queues delay by a policy from 4.3.1 on. " +
			"An older broker refuses the policy, or has the queue return messages at once, thousands of times a second.",
		InQueue:   true,
		Misfit:    notLinear,
		Call:      "call basic.reject(requeue=true)",
		Otherwise: "With requeue=false, a message is parked at its first failure. The guide \"Choosing an engine\" says what each call does.",
		Unbound:   "Replayed messages are parked again.",
	}
}

func (consumerEngine) facts() Facts {
	return Facts{
		Since: topology.Version{Major: 4},
		Before: "Before 4.0, a headers exchange does not see why a message died (x-last-death-reason), so no rejected message " +
			"would be retried.",
		Misfit:    notOne,
		Call:      "count, and call basic.nack(requeue=false)",
		Otherwise: "Without the code in the guide \"Choosing an engine\", a message that always fails comes back indefinitely.",
		Unbound:   "After the delay, its messages are parked.",
	}
}

// Facts returns the facts of the pipeline's engine.
func (p Pipeline) Facts() Facts { return p.engine().facts() }

// EngineByExchanges returns the engine of a pipeline whose definition cannot be read. It looks at the alternate
// exchange of the return exchange, and at the retry exchange if it exists.
func EngineByExchanges(n Names, alternate string, retry topology.Exchange) string {
	switch {
	case alternate != n.FailedExchange():
		return EngineWorker
	case retry.Type == "headers":
		return EngineConsumer
	}
	return EngineNative
}

func notOne(waits []time.Duration) (summary, detail string) {
	if len(waits) == 1 {
		return "", ""
	}
	return "More than one delay without a sidecar", fmt.Sprintf("With engine = %q, all retries wait in one queue, and %d delays are listed. "+
		"List one delay, or write engine = %q.", EngineConsumer, len(waits), EngineWorker)
}

func notLinear(waits []time.Duration) (summary, detail string) {
	if len(waits) == 0 || IsLinear(waits) {
		return "", ""
	}
	return "Schedule that RabbitMQ cannot delay by itself", fmt.Sprintf("With engine = %q, RabbitMQ computes the delays: "+
		"the first delay once, twice, three times and so on, up to the last delay. "+
		"Write such a schedule, as in delays = [\"5s\", \"10s\", \"15s\"], or engine = %q.", EngineNative, EngineWorker)
}
