package delayed

import (
	"maps"
	"regexp"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Expand returns every object that the delayed exchange owns. It is a pure function of the specification.
func (e Exchange) Expand() topology.Topology {
	n, t := e.Names(), e.Identity()
	maps.Copy(t.Policies, e.Guard())
	// What the inbox does not get is kept.
	t.Exchanges[n.Exchange()] = topology.Exchange{Type: "fanout", Arguments: pipeline.Alternate(n.UnroutedExchange())}
	t.Exchanges[n.DeliverExchange()] = topology.Exchange{Type: e.Type, Arguments: pipeline.Alternate(n.UnroutedExchange())}
	t.Queues[n.Inbox()] = ownQueue(n.UnroutedExchange(), pipeline.InboxDeliveryLimit, nil)
	t.Bindings = append(t.Bindings, topology.Binding{Source: n.Exchange(), Destination: n.Inbox()})
	t.Exchanges[n.Refused()] = topology.Exchange{Type: "fanout"}
	t.Queues[n.Refused()] = pipeline.RefusedQueue(n.DeliverExchange())
	t.Exchanges[n.OnlyUnrouted()] = topology.Exchange{Type: "fanout"}
	t.Bindings = append(t.Bindings, topology.Binding{Source: n.Refused(), Destination: n.Refused()},
		topology.Binding{Source: n.OnlyUnrouted(), Destination: n.UnroutedQueue()})
	for _, l := range append(e.Levels(), e.Retired...) {
		addLevel(&t, n, l)
	}
	topology.SortBindings(t.Bindings)
	return t
}

// Identity returns the objects from which the delayed exchange can be read back: as soon as they are there, it can be
// imported. They have the definition.
func (e Exchange) Identity() topology.Topology {
	n, t := e.Names(), topology.New()
	t.Exchanges[n.UnroutedExchange()] = topology.Exchange{Type: "fanout"}
	// What somebody rejects there comes back.
	t.Queues[n.UnroutedQueue()] = ownQueue(n.UnroutedExchange(), topology.UnreachableDeliveryLimit, nil)
	t.Bindings = []topology.Binding{n.definitionPlace().Binding(e.Definition().String())}
	return t
}

// addLevel adds a level. A message says of each level whether it waits there, so that one which a level cannot route is
// held above it: a missing binding makes nothing early. For the same reason there is no alternate exchange.
func addLevel(t *topology.Topology, n Names, l Level) {
	name, next := n.Level(l), n.Below(l)
	t.Exchanges[name] = topology.Exchange{Type: "headers"}
	// Somebody who looks at the queue often would send messages on before their time.
	t.Queues[name] = ownQueue(next, topology.UnreachableDeliveryLimit, topology.Arguments{"x-message-ttl": l.Wait().Milliseconds()})
	t.Bindings = append(t.Bindings,
		topology.Binding{Source: name, Destination: name, Arguments: waits(l, true)},
		topology.Binding{Source: name, Destination: next, ToExchange: true, Arguments: waits(l, false)})
}

// waits are the arguments of the binding of a level for messages that wait there, or for those that do not.
func waits(l Level, there bool) topology.Arguments {
	return topology.Arguments{"x-match": "all", BitKey(l.Bit): there}
}

func ownQueue(deadLetterExchange string, deliveryLimit int64, more topology.Arguments) topology.Queue {
	return pipeline.OwnQueue(topology.Quorum, deadLetterExchange, deliveryLimit, more)
}

// DefaultPolicyPriority is the priority of a delayed exchange's policy unless it is configured.
const DefaultPolicyPriority = pipeline.DefaultPolicyPriority

// Guard returns the policy that keeps those of others off the delayed exchange's queues, by name. It says what these say
// themselves.
func (e Exchange) Guard() map[string]topology.Policy {
	return map[string]topology.Policy{e.Names().QueuesPolicy(): {
		// RabbitMQ before 3.12 knows no finer word.
		Pattern: e.Names().ownPattern(), ApplyTo: "queues", Priority: e.PolicyPriority,
		Definition: topology.Arguments{"dead-letter-strategy": topology.AtLeastOnce, "overflow": "reject-publish"},
	}}
}

// ownPattern matches the inbox, the unrouted queue and the levels of every unit, so that no change leaves one uncovered.
func (n Names) ownPattern() string {
	return "^" + regexp.QuoteMeta(n.delayPrefix()) + `(inbox|unrouted|` + levelPattern + `)$`
}

// levelPattern matches what the names of levels end with.
const levelPattern = `\d[\dhms.]*\.\d+`

// CoversQueue reports whether the policy applies to a queue of this name, whoever made it.
func (n Names) CoversQueue(queue string) bool {
	return regexp.MustCompile(n.ownPattern()).MatchString(queue)
}
