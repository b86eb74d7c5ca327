package topology

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// PolicyPriority is the priority of the policies that attach work queues.
const PolicyPriority = 1000

// addPolicies attaches the work queues. Brokers match every policy against every queue at each
// change, so policies are few: the largest group of queues that need the same content shares one,
// and only what differs from it has a policy of its own.
func addPolicies(t Topology, p Pipeline) {
	names := slices.Sorted(maps.Keys(p.WorkQueues))
	shared := sharedContent(p, names)
	var sharing []string
	for _, name := range names {
		definition := p.policyDefinition(name)
		if definition.key() == shared {
			sharing = append(sharing, name)
			continue
		}
		t.Policies[p.Names().QueuePolicy(name)] = attachPolicy(definition, name)
	}
	if len(sharing) > 0 {
		t.Policies[p.Names().SharedPolicy()] = attachPolicy(p.policyDefinition(sharing[0]), sharing...)
	}
}

// sharedContent finds the content that most work queues need; of two, the one that comes first by
// its text, so that the choice is a function of the configuration alone.
func sharedContent(p Pipeline, names []string) string {
	count := map[string]int{}
	for _, name := range names {
		count[p.policyDefinition(name).key()]++
	}
	best := ""
	for _, key := range slices.Sorted(maps.Keys(count)) {
		if count[key] > count[best] || best == "" {
			best = key
		}
	}
	return best
}

// policyDefinition is what a work queue needs. A single key that a queue type does not support
// makes the broker skip the whole policy, so classic queues get the exchange alone.
func (p Pipeline) policyDefinition(workQueue string) Arguments {
	definition := Arguments{"dead-letter-exchange": p.Names().DeadLetterExchange()}
	if p.WorkQueues[workQueue].Type == Quorum {
		definition["dead-letter-strategy"] = "at-least-once"
		definition["overflow"] = "reject-publish"
	}
	return definition
}

func attachPolicy(definition Arguments, workQueues ...string) Policy {
	return Policy{
		Pattern: exactPattern(workQueues),
		// RabbitMQ before 3.12 knows no finer word.
		ApplyTo:    "queues",
		Priority:   PolicyPriority,
		Definition: definition,
	}
}

// exactPattern matches these names and no others.
func exactPattern(names []string) string {
	escaped := make([]string, len(names))
	for i, name := range names {
		escaped[i] = regexp.QuoteMeta(name)
	}
	return "^(" + strings.Join(escaped, "|") + ")$"
}

// key is a text that is equal for equal arguments: encoding/json sorts keys.
func (a Arguments) key() string {
	text, err := json.Marshal(a)
	if err != nil {
		panic("arguments hold JSON values only: " + err.Error())
	}
	return string(text)
}

// Unprotected lists the quorum work queues whose at-least-once dead letters the change from prior
// to next would delete: a queue that holds undelivered dead letters loses them with its policy, or
// when the policy's strategy, overflow or dead-letter exchange is taken away.
func Unprotected(prior, next Pipeline) []string {
	var queues []string
	for name, before := range prior.WorkQueues {
		after, stays := next.WorkQueues[name]
		same := stays && prior.policyDefinition(name).key() == next.policyDefinition(name).key()
		if before.Type == Quorum && (!same || after.Type != Quorum) {
			queues = append(queues, name)
		}
	}
	slices.Sort(queues)
	return queues
}
