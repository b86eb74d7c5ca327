// Package audit finds faults that make a vhost lose dead letters.
//
// It is pure. From the listing of a vhost it finds dead letters that would be dropped, run in a circle or get stuck.
// For each fault it says what to do. It follows every route from every queue with a dead-letter exchange, regardless of
// its owner. It relies only on the broker's listing: if a routing key is unknown, every possible route counts. Of
// keys, it knows the sets that the patterns of bindings describe.
package audit

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/nearby"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Known is what an audit knows beside the listing of a vhost.
type Known struct {
	// Users are the users whose permissions are known.
	Users []User
	// Unserved has the inboxes with messages and without a consumer, with the number of messages. Other queues do not matter.
	Unserved map[string]int64
}

// Inboxes is the suffix of the names of all inboxes, those of delayed exchanges included.
var Inboxes = pipeline.Names("").Inbox()

// Vhost returns every fault in a vhost's dead-letter graph, errors first.
func Vhost(vhost topology.Vhost, known Known) []Finding {
	g := newGraph(vhost)
	g.known = known
	return g.findings()
}

func (g graph) findings() []Finding {
	var findings []Finding
	for _, r := range rules {
		r.find(g, func(f Finding) {
			f.Rule, f.Severity = r.id, cmp.Or(f.Severity, r.severity)
			if f.queues == nil && f.Object.Kind == "queue" {
				f.queues = []string{f.Object.Name}
			}
			findings = append(findings, f)
		})
	}
	topology.Sort(findings, func(a, b *Finding) int {
		return cmp.Or(strings.Compare(string(a.Severity), string(b.Severity)), strings.Compare(a.Rule, b.Rule),
			strings.Compare(a.Object.Kind, b.Object.Kind), strings.Compare(a.Object.Name, b.Object.Name), strings.Compare(a.Message, b.Message))
	})
	return findings
}

// Pipeline returns the faults on every route that a pipeline's messages can take. The routes begin at its work queues,
// its own queues and its exchanges. The vhost must contain the pipeline and no other one: to check a plan, a caller first
// adds the planned objects.
func Pipeline(vhost topology.Vhost, name pipeline.Names, workQueues []string) []Finding {
	near := nearby.NewIndex(vhost).Near(nearby.Center{Pipelines: []string{string(name)}, Queues: workQueues})
	return ofPipeline(newGraph(near), name, workQueues)
}

func ofPipeline(g graph, name pipeline.Names, workQueues []string) []Finding {
	reachable := g.reachable(name, workQueues)
	return g.concerning(Object{"pipeline", string(name)}, func(queue string) bool { return reachable[queue] })
}

// DelayedExchange returns the faults of a delayed exchange's objects, and faults of others that hold up its messages or
// let them bypass it. The vhost must contain it, as for [Pipeline].
func DelayedExchange(vhost topology.Vhost, name delayed.Names) []Finding {
	near := nearby.NewIndex(vhost).Near(nearby.Center{DelayedExchanges: []string{string(name)}})
	return newGraph(near).concerning(Object{"delayed_exchange", string(name)}, name.OwnsQueue)
}

// concerning returns the findings about an object, and about queues of its messages.
func (g graph) concerning(object Object, has func(queue string) bool) []Finding {
	return slices.DeleteFunc(g.findings(), func(f Finding) bool {
		return f.Object != object && (f.Object.Kind == object.Kind || !slices.ContainsFunc(f.queues, has))
	})
}

// reachable returns the queues that the pipeline's messages can reach.
func (g graph) reachable(n pipeline.Names, workQueues []string) map[string]bool {
	var next []string
	for name := range g.vhost.Queues {
		if n.OwnsQueue(name) {
			next = append(next, name)
		}
	}
	next = append(next, workQueues...)
	for _, exchange := range n.Exchanges() {
		next = slices.AppendSeq(next, maps.Keys(g.route(exchange, unknown).queues))
	}
	reached, left := map[string]bool{}, map[exit]bool{}
	for ; len(next) > 0; next = next[1:] {
		through := g.exitOf(next[0])
		if !left[through] {
			next = append(next, g.targets(through)...)
		}
		reached[next[0]], left[through] = true, true
	}
	return reached
}

// Severity says how certain a loss is.
type Severity string

// Severities.
const (
	// Error is for faults that lose or trap every message that dies there.
	Error Severity = "error"
	// Warning is for faults that do so only in some cases, such as a full queue, or that cannot be proved.
	Warning Severity = "warning"
)

// Object is the subject of a finding: a queue, a policy, an operator policy, a pipeline, a delayed exchange or the
// vhost.
type Object struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// Finding is one fault.
type Finding struct {
	Severity Severity `json:"severity"`
	// Rule is the id of the rule, which never changes.
	Rule    string `json:"rule"`
	Object  Object `json:"object"`
	Message string `json:"message"`
	Remedy  string `json:"remedy"`

	// queues are the queues whose messages are affected.
	queues []string
}

// warningUnless makes a finding a warning if it is not certain.
func (f Finding) warningUnless(certain bool) Finding {
	if !certain {
		f.Severity = Warning
	}
	return f
}

// Count returns the number of errors and of warnings.
func Count(findings []Finding) (errors, warnings int) {
	for _, f := range findings {
		if f.Severity == Error {
			errors++
		}
	}
	return errors, len(findings) - errors
}

// Without removes the findings of some rules. It reuses the memory of findings.
func Without(findings []Finding, rules []string) []Finding {
	return slices.DeleteFunc(findings, func(f Finding) bool { return slices.Contains(rules, f.Rule) })
}

// about begins a finding about an object. Without queues, it affects the object itself.
func about(kind, name string, queues ...string) Finding {
	return Finding{Object: Object{kind, name}, queues: queues}
}

func (f Finding) says(message, remedy string) Finding {
	f.Message, f.Remedy = message, remedy
	return f
}

// byOrigin begins a finding for each origin of a setting of these queues. A wrong policy is one fault, however many queues
// it applies to.
func (g graph) byOrigin(queues []string, setting string) []Finding {
	members := map[Object][]string{}
	for _, name := range queues {
		origin := Object{"queue", name}
		if policy := g.settings[name].PolicyOf(setting); policy != "" {
			origin = Object{"policy", policy}
		}
		members[origin] = append(members[origin], name)
	}
	return aboutEach(members)
}

func aboutEach(members map[Object][]string) (findings []Finding) {
	for object, queues := range members {
		findings = append(findings, about(object.Kind, object.Name, topology.Distinct(queues)...))
	}
	return findings
}
