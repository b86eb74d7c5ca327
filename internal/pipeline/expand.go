package pipeline

import (
	"maps"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// DeclaredByArgument marks a work queue as created by the pipeline it names. Brokers store and
// ignore arguments they do not know. The mark cannot be taken off a queue that is no longer declared, so
// DeclaredArgument marks the return binding of one that is, too: a queue without it is never deleted. Both are texts:
// the management API has the same handle for a binding with true and with "true".
const (
	DeclaredByArgument = "x-retry-declared-by"
	DeclaredArgument   = "retry-declared"
)

// Delivery limits of the pipeline's own quorum queues. They are the same on every version, since
// arguments are immutable: -1 means "exceeded at once" on 3.10, and absent means 20 from 4.0 on.
const (
	inboxDeliveryLimit  = int64(1_000)
	failedDeliveryLimit = topology.UnreachableDeliveryLimit
)

func (workerEngine) expand(p Pipeline) topology.Topology {
	t := workerEngine{}.identity(p)
	addExchanges(t, p.Names())
	addFailedQueue(&t, p)
	addRetryQueues(&t, p, p.Waits())
	addRetryQueues(&t, p, p.Retired)
	addWorkQueues(&t, p)
	addPolicies(t, p)
	topology.SortBindings(t.Bindings)
	return t
}

// identity has the definition, and what it takes to store it.
func (workerEngine) identity(p Pipeline) topology.Topology {
	n, t := p.Names(), topology.New()
	t.Exchanges[n.DeadLetterExchange()] = deadLetterExchange(n)
	t.Queues[n.Inbox()] = ownQueue(p.QueueType, n.FailedExchange(), nil, topology.Arguments{"x-delivery-limit": inboxDeliveryLimit})
	t.Bindings = []topology.Binding{{
		Source: n.DeadLetterExchange(), Destination: n.Inbox(),
		Arguments: topology.Arguments{DefinitionArgument: p.Definition().String()},
	}}
	return t
}

// ExpandExchanges returns the exchanges alone, which depend on nothing but the name.
func ExpandExchanges(name Names) map[string]topology.Exchange {
	t := topology.New()
	addExchanges(t, name)
	return t.Exchanges
}

func addExchanges(t topology.Topology, n Names) {
	t.Exchanges[n.DeadLetterExchange()] = deadLetterExchange(n)
	t.Exchanges[n.FailedExchange()] = topology.Exchange{Type: "fanout"}
	// No alternate exchange: only the worker publishes here, mandatory, and must hear of a delay
	// that is not bound.
	t.Exchanges[n.RetryExchange()] = topology.Exchange{Type: "direct"}
	// A message whose work queue lost its binding goes back to the worker, which saves it.
	t.Exchanges[n.ReturnExchange()] = topology.Exchange{
		Type:      "direct",
		Arguments: topology.Arguments{"alternate-exchange": n.DeadLetterExchange()},
	}
}

func deadLetterExchange(n Names) topology.Exchange {
	return topology.Exchange{Type: "fanout", Arguments: topology.Arguments{"alternate-exchange": n.FailedExchange()}}
}

func addFailedQueue(t *topology.Topology, p Pipeline) {
	n := p.Names()
	// What somebody rejects there comes back. Without a dead-letter exchange of its own, the policy's would count.
	t.Queues[n.FailedQueue()] = ownQueue(p.QueueType, n.FailedExchange(), nil, topology.Arguments{"x-delivery-limit": failedDeliveryLimit})
	t.Bindings = append(t.Bindings, topology.Binding{Source: n.FailedExchange(), Destination: n.FailedQueue()})
}

func addRetryQueues(t *topology.Topology, p Pipeline, waits []time.Duration) {
	n := p.Names()
	for _, wait := range waits {
		queue := n.RetryQueue(wait)
		t.Queues[queue] = ownQueue(p.QueueType, n.ReturnExchange(), topology.Arguments{"x-message-ttl": wait.Milliseconds()}, nil)
		t.Bindings = append(t.Bindings, topology.Binding{Source: n.RetryExchange(), Destination: queue, RoutingKey: DelayKey(wait)})
	}
}

// ownQueue builds one of the pipeline's own queues. What only quorum queues take is left out for
// classic ones, which refuse it.
func ownQueue(queueType, deadLetterExchange string, arguments, quorumOnly topology.Arguments) topology.Queue {
	all := topology.Arguments{"x-dead-letter-exchange": deadLetterExchange}
	maps.Copy(all, arguments)
	if queueType == topology.Quorum {
		maps.Copy(all, quorumOnly)
		all["x-dead-letter-strategy"] = topology.AtLeastOnce
		all["x-overflow"] = "reject-publish"
	}
	return topology.Queue{Type: queueType, Arguments: all}
}

func addWorkQueues(t *topology.Topology, p Pipeline) {
	for _, name := range p.Detached {
		t.Bindings = append(t.Bindings, p.Names().detachedBinding(name))
	}
	for name, workQueue := range p.WorkQueues {
		if !workQueue.Declare {
			t.Bindings = append(t.Bindings, workQueue.takeOver(p.Names().ReturnBinding(name)))
			continue
		}
		t.Bindings = append(t.Bindings, p.Names().DeclaredBinding(name))
		arguments := topology.Arguments{DeclaredByArgument: p.Name}
		maps.Copy(arguments, workQueue.Arguments)
		if !workQueue.ByPolicy() {
			maps.Copy(arguments, workQueue.DeadLetterArguments(p.Names()))
		}
		t.Queues[name] = topology.Queue{Type: workQueue.Type, Arguments: arguments}
	}
}
