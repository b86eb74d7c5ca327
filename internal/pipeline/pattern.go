package pipeline

import (
	"hash/fnv"
	"regexp"
	"strings"
)

// maxPattern is the longest pattern, in bytes, that RabbitMQ takes from 4.3 on.
const maxPattern = 1024

// ExactPattern matches these names and no others.
func ExactPattern(names []string) string {
	return "^(" + strings.Join(escaped(names), "|") + ")$"
}

// pattern matches these work queues and the pipeline's own queues.
func (n Names) pattern(workQueues []string) string {
	patterns := n.ownPattern()
	if len(workQueues) > 0 {
		patterns = append(patterns, ExactPattern(workQueues))
	}
	return strings.Join(patterns, "|")
}

func escaped(names []string) []string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = regexp.QuoteMeta(name)
	}
	return quoted
}

// spread divides names into numbered groups so that a pattern holds each. A name's group depends on nothing
// but the name and the highest number of groups, which may be 1, 2, 4 and so on: a name that comes or goes
// moves no other. When the number doubles, each group gives some names to one that is new, and when it
// halves, two become one: policies that are created first and deleted last leave no name without one in
// between.
func spread(names []string) map[int][]string {
	for n := uint32(1); ; n *= 2 {
		groups := map[int][]string{}
		for _, name := range names {
			i := int(hash(name) % n)
			groups[i] = append(groups[i], name)
		}
		if fit(groups) {
			return groups
		}
	}
}

func hash(name string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return h.Sum32()
}

func fit(groups map[int][]string) bool {
	for _, names := range groups {
		if len(names) > 1 && len(ExactPattern(names)) > maxPattern {
			return false
		}
	}
	return true
}
