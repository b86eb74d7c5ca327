package audit

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Severity is how sure a loss is.
type Severity string

// Severities.
const (
	// Error is for what loses or traps a message that dies there.
	Error Severity = "error"
	// Warning is for what does so in some circumstances only, such as a full queue, or for what
	// cannot be known.
	Warning Severity = "warning"
)

// Object is what a finding is about: a queue, a policy, an operator policy, a pipeline, a delayed exchange or the vhost.
type Object struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// Finding is one fault.
type Finding struct {
	Severity Severity `json:"severity"`
	// Rule is the id of the rule that found it, which never changes.
	Rule    string `json:"rule"`
	Object  Object `json:"object"`
	Message string `json:"message"`
	Remedy  string `json:"remedy"`

	// queues whose messages are concerned.
	queues []string
}

// Count returns how many findings are errors and how many are warnings.
func Count(findings []Finding) (errors, warnings int) {
	for _, f := range findings {
		if f.Severity == Error {
			errors++
		}
	}
	return errors, len(findings) - errors
}

// Without leaves out the findings of some rules. It reuses the memory of findings.
func Without(findings []Finding, rules []string) []Finding {
	return slices.DeleteFunc(findings, func(f Finding) bool { return slices.Contains(rules, f.Rule) })
}

// sorted puts errors first.
func sorted(findings []Finding) []Finding {
	topology.Sort(findings, func(a, b *Finding) int {
		return cmp.Or(strings.Compare(string(a.Severity), string(b.Severity)), strings.Compare(a.Rule, b.Rule),
			strings.Compare(a.Object.Kind, b.Object.Kind), strings.Compare(a.Object.Name, b.Object.Name), strings.Compare(a.Message, b.Message))
	})
	return findings
}

func onQueue(name, message, remedy string) Finding {
	return Finding{Object: Object{"queue", name}, Message: message, Remedy: remedy}
}

func onPipeline(n pipeline.Names, message, remedy string) Finding {
	return Finding{Object: Object{"pipeline", string(n)}, Message: message, Remedy: remedy}
}

// group is an object and the queues that a fault of it concerns.
type group struct {
	object Object
	queues []string
}

func (gr group) finding(message, remedy string) Finding {
	return Finding{Object: gr.object, Message: message, Remedy: remedy, queues: gr.queues}
}

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

// groupsOf sorts the groups by object, and the queues of each; a queue that is named twice counts once.
func groupsOf(members map[Object][]string) []group {
	var groups []group
	for object, queues := range members {
		slices.Sort(queues)
		groups = append(groups, group{object, slices.Compact(queues)})
	}
	topology.Sort(groups, func(a, b *group) int {
		return cmp.Or(strings.Compare(a.object.Kind, b.object.Kind), strings.Compare(a.object.Name, b.object.Name))
	})
	return groups
}

// queuesBy collects queues by exchange, or by whatever else a message has to name.
type queuesBy map[string][]string

func (q queuesBy) keys() []string { return slices.Sorted(maps.Keys(q)) }
