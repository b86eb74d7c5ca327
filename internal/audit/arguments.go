package audit

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/similar"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// ignoredArguments finds misspelt arguments. Brokers accept, store and ignore any name.
func ignoredArguments(g graph, report func(Finding)) {
	for _, name := range g.classicOrQuorum {
		for _, argument := range slices.Sorted(maps.Keys(g.settings[name].Arguments)) {
			// The mistake does no harm if an argument or policy makes the setting correctly.
			if meant := intendedArgument(argument); meant != "" && !g.settings[name].Has(strings.TrimPrefix(meant, "x-")) {
				f := about("queue", name).says(fmt.Sprintf(argumentIgnored, name, argument, meant),
					fmt.Sprintf(argumentIgnoredRemedy, meant, strings.TrimPrefix(meant, "x-")))
				report(f.warningUnless(meant == "x-dead-letter-exchange"))
			}
		}
	}
}

// ignoredDelayedRetries finds queues that should delay returned messages but do not.
func ignoredDelayedRetries(g graph, report func(Finding)) {
	for _, name := range g.classicOrQuorum {
		if why := g.whyNotDelayed(name); why != "" {
			report(about("queue", name).says(fmt.Sprintf(delayedRetryIgnored, name, why), delayedRetryIgnoredRemedy))
		}
	}
}

// whyNotDelayed returns why the broker ignores a queue's delayed retry. If it works or is not set, it returns "".
func (g graph) whyNotDelayed(name string) string {
	s := g.settings[name]
	kind, has := s.Arguments["x-delayed-retry-type"]
	if !has || kind == "disabled" {
		return ""
	}
	least, hasLeast := s.Number("delayed-retry-min")
	switch {
	case g.vhost.Version.Before(4, 3):
		return delayedRetryTooOld
	case s.Type != topology.Quorum:
		return delayedRetryQueueType
	case kind != "all" && kind != "failed" && kind != "returned":
		return fmt.Sprintf(delayedRetryUnknownType, kind)
	case !hasLeast || least <= 0:
		return delayedRetryNoMinimum
	}
	return ""
}

// intendedArgument returns the argument that a misspelt name probably means, if it affects dead letters, or "".
func intendedArgument(argument string) string {
	meant := similar.To(argument, slices.Values(topology.KnownArguments))
	if key, is := strings.CutPrefix(meant, "x-"); is && slices.Contains(deadLetterKeys, key) {
		return meant
	}
	return ""
}
