package preflight

import (
	"maps"
	"slices"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/stored"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/workerconfig"
)

// CheckDelayedExchange checks a delayed exchange by itself.
func CheckDelayedExchange(e delayed.Exchange) []Problem {
	if problems := workerconfig.ValidateDelayedExchange(e.Worker()); len(problems) > 0 {
		return problems
	}
	if detail, name := longestRefused(e); detail != "" {
		return []Problem{workerconfig.NameTooLong(workerconfig.DelayedExchange, name, detail)}
	}
	if definition := e.Definition().String(); !stored.Fits(definition) {
		return []Problem{problem(Path{"max_delay"}, "Definition too long", "It has %d bytes. Write durations more simply.", len(definition))}
	}
	return nil
}

// longestRefused is the longest name that brokers refuse, and why.
func longestRefused(e delayed.Exchange) (detail, name string) {
	longest := e.Names().UnroutedQueue()
	for _, queue := range slices.Sorted(maps.Keys(delayed.Expand(e).Queues)) {
		if len(queue) > len(longest) {
			longest = queue
		}
	}
	return tooLong(e.Vhost, longest, topology.Quorum), longest
}
