package audit

import (
	"fmt"
	"maps"
	"slices"
	"strings"

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

// intendedArgument returns the argument that a misspelt name probably means, or "".
func intendedArgument(argument string) string {
	if key, is := strings.CutPrefix(argument, "x-"); is && slices.Contains(deadLetterKeys, key) {
		return ""
	}
	for _, key := range deadLetterKeys {
		// Short names are too similar to tell mistakes in them.
		similar := strings.HasPrefix(key, "dead-letter-") && editDistance(letters(argument), letters(key)) <= 2
		if similar || letters(argument) == letters(key) {
			return "x-" + key
		}
	}
	return ""
}

// letters returns a name without its prefix and punctuation, in lower case.
func letters(name string) string {
	name = strings.TrimPrefix(strings.ToLower(name), "x-")
	return strings.Map(func(r rune) rune {
		if r < 'a' || r > 'z' {
			return -1
		}
		return r
	}, name)
}

// editDistance returns how many letters must be changed, removed or added to turn one name into the other.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			changed := diagonal
			if a[i] != b[j] {
				changed++
			}
			diagonal = row[j+1]
			row[j+1] = min(changed, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
