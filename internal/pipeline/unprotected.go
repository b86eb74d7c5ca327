package pipeline

import (
	"slices"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Unprotected lists the quorum queues whose undelivered dead letters are deleted, or have nowhere to go
// any more, once an owner has wanted in place of live: a queue that holds some loses them with its
// policy, or when the policy's strategy, overflow or dead-letter exchange is taken away. What the broker
// has tells, and not what a configuration says: a change that failed half-way left other policies than
// either. Queues that are the pipeline's own do not count when they go as a whole.
func Unprotected(n Names, live, wanted topology.Topology, vhost topology.Vhost) []string {
	names := touched(live, wanted, vhost)
	vhost.Policies, vhost.OperatorPolicies = matchingAny(vhost.Policies, names), matchingAny(vhost.OperatorPolicies, names)
	after := vhost
	after.Topology = topology.Merge(vhost.Without(live), wanted)
	before, then := topology.NewLookup(vhost), topology.NewLookup(after)
	var queues []string
	for _, name := range names {
		now, next := before.Queue(name), then.Queue(name)
		_, stays := after.Queues[name]
		if !now.AtLeastOnce() || !stays && n.OwnsQueue(name) {
			continue
		}
		if !stays || !next.AtLeastOnce() || leadsToNothing(next, live, after.Topology) {
			queues = append(queues, name)
		}
	}
	return queues
}

// leadsToNothing tells whether a queue dead-letters to an exchange that goes.
func leadsToNothing(s topology.Settings, live, after topology.Topology) bool {
	exchange, _ := s.Text("dead-letter-exchange")
	_, is := live.Exchanges[exchange]
	_, stays := after.Exchanges[exchange]
	return is && !stays
}

// matchingAny are the policies that match any of the names: to read a pattern takes longer than all else.
func matchingAny(policies map[string]topology.Policy, names []string) map[string]topology.Policy {
	found := map[string]topology.Policy{}
	compiled := topology.CompilePolicies(policies)
	for _, name := range names {
		for _, p := range topology.MatchingCompiled(compiled, name, always) {
			found[p.Name] = p.Policy
		}
	}
	return found
}

func always(topology.Policy) bool { return true }

// touched lists the quorum queues that a change can matter to: a whole vhost is a large number of queues
// times a large number of policies.
func touched(live, wanted topology.Topology, vhost topology.Vhost) []string {
	changes := topology.Diff(wanted, live)
	replaced := changes.Delete.Policies
	for name := range changes.Update.Policies {
		replaced[name] = live.Policies[name]
	}
	policies := slices.Concat(topology.CompilePolicies(changes.Create.Policies), topology.CompilePolicies(changes.Update.Policies), topology.CompilePolicies(replaced))
	var queues []string
	for name, queue := range vhost.Queues {
		if queue.Type != topology.Quorum {
			continue
		}
		exchange, _ := queue.Arguments["x-dead-letter-exchange"].(string)
		_, goes := changes.Delete.Exchanges[exchange]
		_, owned := live.Queues[name]
		if goes || owned || len(topology.MatchingCompiled(policies, name, always)) > 0 {
			queues = append(queues, name)
		}
	}
	slices.Sort(queues)
	return queues
}
