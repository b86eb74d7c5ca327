package delayed

import (
	"maps"
	"regexp"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Expand returns every object that the delayed exchange owns. It depends on the specification alone.
func (e Exchange) Expand() topology.Topology {
	n, t := e.Names(), e.Identity()
	maps.Copy(t.Policies, e.Guard())
	// Messages that do not reach the inbox go to the unrouted queue.
	t.Exchanges[n.Exchange()] = topology.Exchange{Type: "fanout", Arguments: pipeline.Alternate(n.UnroutedExchange())}
	t.Exchanges[n.DeliverExchange()] = topology.Exchange{Type: e.Type, Arguments: pipeline.Alternate(n.UnroutedExchange())}
	t.Queues[n.Inbox()] = pipeline.OwnQueue(topology.Quorum, n.UnroutedExchange(), pipeline.InboxDeliveryLimit, nil)
	t.Bindings = append(t.Bindings, topology.Binding{Source: n.Exchange(), Destination: n.Inbox()})
	t.Exchanges[n.Refused()] = topology.Exchange{Type: "fanout"}
	t.Queues[n.Refused()] = pipeline.RefusedQueue(n.DeliverExchange())
	t.Exchanges[n.OnlyUnrouted()] = topology.Exchange{Type: "fanout"}
	t.Bindings = append(t.Bindings, topology.Binding{Source: n.Refused(), Destination: n.Refused()},
		topology.Binding{Source: n.OnlyUnrouted(), Destination: n.UnroutedQueue()})
	for _, l := range append(e.Levels(), e.Retired...) {
		addLevel(&t, n, l)
	}
	topology.SortByText(t.Bindings)
	return t
}

// Identity returns the objects that an import needs. They hold the definition.
func (e Exchange) Identity() topology.Topology {
	n, t := e.Names(), topology.New()
	t.Exchanges[n.UnroutedExchange()] = topology.Exchange{Type: "fanout"}
	// Rejected messages come back to this queue.
	t.Queues[n.UnroutedQueue()] = pipeline.OwnQueue(
		topology.Quorum, n.UnroutedExchange(), topology.UnreachableDeliveryLimit, nil)
	t.Bindings = []topology.Binding{n.DefinitionPlace().Binding(e.Definition().String())}
	return t
}

// addLevel adds a level. For each level a message has a header that says whether it waits there. If a level has no
// binding for a message, the broker keeps the message in the level above, so it never arrives early. An alternate
// exchange would break that.
func addLevel(t *topology.Topology, n Names, l Level) {
	name, next := n.Level(l), n.below(l)
	t.Exchanges[name] = topology.Exchange{Type: "headers"}
	t.Queues[name] = pipeline.WaitingQueue(topology.Quorum, next, l.Wait())
	t.Bindings = append(t.Bindings,
		topology.Binding{Source: name, Destination: name, Arguments: waits(l, true)},
		topology.Binding{Source: name, Destination: next, ToExchange: true, Arguments: waits(l, false)})
}

// waits returns the arguments of a level's binding, for messages that wait there or for messages that pass.
func waits(l Level, there bool) topology.Arguments {
	return topology.Arguments{"x-match": "all", BitKey(l.Bit): there}
}

// DefaultPolicyPriority is the priority of a delayed exchange's policy if none is configured.
const DefaultPolicyPriority = pipeline.DefaultPolicyPriority

// Guard returns the policy, by name, that keeps other policies off the delayed exchange's queues. It sets the same
// values as their arguments.
func (e Exchange) Guard() map[string]topology.Policy {
	return map[string]topology.Policy{e.Names().QueuesPolicy(): {
		// RabbitMQ before 3.12 has no value for one queue type.
		Pattern: e.Names().ownPattern(), ApplyTo: "queues", Priority: e.PolicyPriority,
		Definition: topology.Arguments{"dead-letter-strategy": topology.AtLeastOnce, "overflow": "reject-publish"},
	}}
}

// ownPattern matches the inbox, the unrouted queue and the levels of every precision, so that no change leaves a queue
// uncovered.
func (n Names) ownPattern() string {
	return "^" + regexp.QuoteMeta(n.delayPrefix()) + ownEnd
}

// levelPattern matches the end of a level's name.
const levelPattern = `\d[\dhms.]*\.\d+`

// LevelPattern matches the names of the levels of every precision.
func (n Names) LevelPattern() string {
	return "^" + regexp.QuoteMeta(n.delayPrefix()) + levelPattern + "$"
}

const ownEnd = `(inbox|unrouted|` + levelPattern + `)$`

var atOwnEnd = regexp.MustCompile("^" + ownEnd)

// CoversQueue reports whether the policy applies to a queue of this name, regardless of its owner.
func (n Names) CoversQueue(queue string) bool {
	end, prefixed := strings.CutPrefix(queue, n.delayPrefix())
	return prefixed && atOwnEnd.MatchString(end)
}
