// Package audit finds the ways in which a vhost loses dead letters.
//
// It is pure: the listing of a vhost goes in, and every message that would be dropped, go round in
// circles or be stuck when it dies comes out as a finding, with what to do about it. It follows every
// way from every queue that dead-letters, whoever created it, and claims nothing that the broker does
// not report: where a routing key cannot be known, any way that it may take counts as one.
package audit

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Vhost returns every fault in the dead-letter graph of a vhost, the errors first.
func Vhost(vhost topology.Vhost) []Finding { return newGraph(vhost).findings() }

func (g graph) findings() []Finding {
	var findings []Finding
	for _, r := range rules {
		r.find(g, func(f Finding) {
			f.Rule, f.Severity = r.id, r.severity
			if f.queues == nil && f.Object.Kind == "queue" {
				f.queues = []string{f.Object.Name}
			}
			findings = append(findings, f)
		})
	}
	return sorted(findings)
}

// Pipeline returns the faults that concern a pipeline: those on any way that a message of one of its
// work queues, of its own queues or of its exchanges may take. The vhost contains the pipeline; a
// caller that plans one merges what it is going to create.
func Pipeline(vhost topology.Vhost, name pipeline.Names, workQueues []string) []Finding {
	g := newGraph(vhost)
	reachable := g.reachable(name, workQueues)
	return slices.DeleteFunc(g.findings(), func(f Finding) bool {
		if f.Object.Kind == "pipeline" {
			return f.Object.Name != string(name)
		}
		return !slices.ContainsFunc(f.queues, func(queue string) bool { return reachable[queue] })
	})
}

// DelayedExchange returns the faults that concern a delayed exchange: those of its own objects, and of others where they hold up
// or pass by its messages. The vhost contains it, as for [Pipeline].
func DelayedExchange(vhost topology.Vhost, name delayed.Names) []Finding {
	return slices.DeleteFunc(newGraph(vhost).findings(), func(f Finding) bool {
		if f.Object.Kind == "delayed_exchange" {
			return f.Object.Name != string(name)
		}
		return !slices.ContainsFunc(f.queues, name.OwnsQueue)
	})
}

// reachable collects the queues that a message of the pipeline can come to.
func (g graph) reachable(n pipeline.Names, workQueues []string) map[string]bool {
	var next []string
	for name := range g.vhost.Queues {
		if n.OwnsQueue(name) {
			next = append(next, name)
		}
	}
	next = append(next, workQueues...)
	for _, exchange := range n.Exchanges() {
		to := g.route(exchange, unknown)
		next = slices.AppendSeq(next, maps.Keys(to.sure))
		next = slices.AppendSeq(next, maps.Keys(to.possible))
	}
	reached := map[string]bool{}
	for ; len(next) > 0; next = next[1:] {
		if !reached[next[0]] {
			reached[next[0]] = true
			next = append(next, g.targets(next[0])...)
		}
	}
	return reached
}

// rule finds one kind of fault, and reports each.
type rule struct {
	id       string
	severity Severity
	find     func(g graph, report func(Finding))
}

// rules has every rule, in the order of the guide. Users write the ids: they are never changed or reused.
var rules = []rule{
	{"dead-letter-exchange-missing", Error, missingExchanges},
	{"dead-letter-exchange-unset", Warning, unsetExchanges},
	{"dead-letter-unroutable", Error, unroutableExchanges},
	{"dead-letter-key-unbound", Warning, unboundKeys},

	{"dead-letter-cycle", Error, cycles},
	{"dead-letter-loop", Error, loops},
	{"dead-letter-fan-out", Warning, fanOuts},
	{"delivery-limit-cycle", Warning, deliveryLimitCycles},

	{"delivery-limit-drops", Warning, droppedAtLimit},
	{"delivery-limit-default", Warning, droppedAtDefaultLimit},
	{"delivery-limit-negative", Warning, negativeLimits},

	{"parking-queue-expires", Error, emptiedAfter("expires", parkingExpires, parkingExpiresRemedy)},
	{"parking-queue-ttl", Warning, emptiedAfter("message-ttl", parkingTTL, parkingTTLRemedy)},
	{"parking-queue-length", Warning, limitedParking},
	{"parking-queue-delivery-limit", Warning, parkingWithDeliveryLimit},
	{"retry-queue-expires", Warning, expiringRetryQueues},

	{"full-target-freezes", Warning, freezingTargets},
	{"full-target-loses", Warning, losingTargets},
	{"stream-target-freezes", Warning, streamTargets},
	{"at-least-once-ineffective", Warning, ineffectiveAtLeastOnce},

	{"policy-shadows-dead-letter", Warning, shadowingPolicies},
	{"policy-tie", Warning, tiedPolicies},
	{"policy-not-applicable", Error, inapplicablePolicies},
	{"policy-pattern-unreadable", Warning, unreadablePolicies},

	{"ignored-argument", Error, ignoredArguments},
	{"native-retry-ignored", Warning, ignoredDelayedRetries},

	{"pipeline-inbox-unbound", Error, unboundInboxes},
	{"work-queue-failed-unbound", Error, unboundFailedQueues},
	{"pipeline-failed-queue-unbound", Warning, unboundFailedQueuesOfWorkQueues},
	{"pipeline-delay-unbound", Warning, unboundDelays},
	{"pipeline-return-unbound", Warning, unboundReturns},
	{"pipeline-return-nowhere", Error, lostReturns},
	{"pipeline-retry-ineffective", Warning, ineffectiveRetries},
	{"pipeline-definition-unreadable", Warning, unreadableDefinitions},

	{"delayed-exchange-bypassed", Error, onEach(bypassedDelays)},
	{"delayed-inbox-unbound", Error, onEach(unboundDelayedInboxes)},
	{"delayed-unrouted-unbound", Error, onEach(unboundUnrouted)},
	{"delayed-level-unbound", Error, onEach(unboundLevels)},
	{"delayed-level-entered", Error, onEach(enteredLevels)},
	{"delayed-queue-altered", Error, alteredDelayedQueues},
	{"delayed-target-freezes", Warning, freezingDeliveries},
	{"delayed-delivery-dead-end", Warning, onEach(deadEnds)},
	{"delayed-delivery-loop", Error, onEach(deliveryLoops)},
	{"delayed-definition-unreadable", Warning, onEach(unreadableDelayDefinitions)},
}

// Rules lists the ids of all rules.
func Rules() []string {
	ids := make([]string, len(rules))
	for i, r := range rules {
		ids[i] = r.id
	}
	return ids
}

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
		groups = append(groups, group{object, topology.Distinct(queues)})
	}
	topology.Sort(groups, func(a, b *group) int {
		return cmp.Or(strings.Compare(a.object.Kind, b.object.Kind), strings.Compare(a.object.Name, b.object.Name))
	})
	return groups
}

// queuesBy collects queues by exchange, or by whatever else a message has to name.
type queuesBy map[string][]string

func (q queuesBy) keys() []string { return slices.Sorted(maps.Keys(q)) }
