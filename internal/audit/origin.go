package audit

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// byOrigin groups queues by where a setting of theirs comes from: a policy that is wrong is one
// fault, however many queues it reaches.
func (g graph) byOrigin(queues []string, setting string) []group {
	members := map[Object][]string{}
	for _, name := range queues {
		origin := Object{"queue", name}
		if policy := g.settings[name].PolicyOf(setting); policy != "" {
			origin = Object{"policy", policy}
		}
		members[origin] = append(members[origin], name)
	}
	return groupsOf(members)
}

// group is an object and the queues that it concerns.
type group struct {
	origin Object
	queues []string
}

func groupsOf(members map[Object][]string) []group {
	var groups []group
	for origin, queues := range members {
		slices.Sort(queues)
		groups = append(groups, group{origin, slices.Compact(queues)})
	}
	slices.SortFunc(groups, func(a, b group) int {
		return cmp.Or(strings.Compare(a.origin.Kind, b.origin.Kind), strings.Compare(a.origin.Name, b.origin.Name))
	})
	return groups
}

func (gr group) finding(message, remedy string) Finding {
	return Finding{Object: gr.origin, Message: message, Remedy: remedy, queues: gr.queues}
}

// set collects queues by exchange, or by whatever else a message has to name.
type set map[string][]string

func (s set) keys() []string { return slices.Sorted(maps.Keys(s)) }

// maxNamed is how many names a message lists.
const maxNamed = 5

// listed writes names down, and counts those that are too many.
func listed(names []string) string {
	quoted := make([]string, 0, maxNamed)
	for _, name := range names[:min(len(names), maxNamed)] {
		quoted = append(quoted, fmt.Sprintf("%q", name))
	}
	text := strings.Join(quoted, ", ")
	if more := len(names) - maxNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// queuesNamed is the subject of a sentence.
func queuesNamed(names []string) string {
	if len(names) == 1 {
		return "queue " + listed(names)
	}
	return "queues " + listed(names)
}
