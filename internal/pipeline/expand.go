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
	DeclaredByArgument = "retry-declared-by"
	DeclaredArgument   = "retry-declared"
)

// InboxDeliveryLimit is the delivery limit of inboxes that are quorum queues. It is the same on every version, since
// arguments are immutable.
const InboxDeliveryLimit = int64(1_000)

// Expand returns every object that the pipeline owns. It is a pure function of the specification.
func (p Pipeline) Expand() topology.Topology {
	t := p.Identity()
	maps.Copy(t.Exchanges, ExpandExchanges(p))
	p.engine().addQueues(&t, p)
	addWorkQueues(&t, p)
	addFailedQueuesOfWorkQueues(&t, p)
	addPolicies(t, p)
	topology.SortBindings(t.Bindings)
	return t
}

// Identity returns the objects from which the pipeline can be read back: as soon as they are there, it can be
// imported. They have the definition, and are the same for every engine.
func (p Pipeline) Identity() topology.Topology {
	n, t := p.Names(), topology.New()
	t.Exchanges[n.FailedExchange()] = topology.Exchange{Type: "fanout"}
	// What somebody rejects there comes back. Without a dead-letter exchange of its own, the policy's would count.
	t.Queues[n.FailedQueue()] = OwnQueue(p.QueueType, n.FailedExchange(), topology.UnreachableDeliveryLimit, nil)
	t.Bindings = []topology.Binding{p.definitionBinding()}
	return t
}

// ExpandExchanges returns the exchanges alone, which depend on nothing but the name and the engine.
func ExpandExchanges(p Pipeline) map[string]topology.Exchange {
	n, exchanges := p.Names(), p.engine().exchanges(p.Names())
	exchanges[n.FailedExchange()] = topology.Exchange{Type: "fanout"}
	// It leads to the failed queues of work queues. What has none goes to the pipeline's.
	exchanges[n.FailedRouteExchange()] = topology.Exchange{Type: "direct", Arguments: Alternate(n.FailedExchange())}
	return exchanges
}

// Alternate are the arguments of an exchange whose messages go elsewhere if it leads them nowhere.
func Alternate(exchange string) topology.Arguments {
	return topology.Arguments{"alternate-exchange": exchange}
}

func addRetryQueue(t *topology.Topology, p Pipeline, wait time.Duration) {
	n := p.Names()
	// Somebody who looks at the queue often would send messages back before their time.
	t.Queues[n.RetryQueue(wait)] = OwnQueue(p.QueueType, n.ReturnExchange(), topology.UnreachableDeliveryLimit,
		topology.Arguments{"x-message-ttl": wait.Milliseconds()})
}

// RefusedWait is how long a refused message waits before the broker offers it to the queues again: what refuses for a moment
// only, such as one that elects a leader, takes it then. Otherwise the broker waits for minutes.
const RefusedWait = 5 * time.Second

// RefusedQueue is from where the broker gives a message to all queues behind an exchange, after one of them has refused it. It
// remembers for each of the queues whether that has the message, which only a quorum queue does.
func RefusedQueue(exchange string) topology.Queue {
	return OwnQueue(topology.Quorum, exchange, topology.UnreachableDeliveryLimit,
		topology.Arguments{"x-message-ttl": RefusedWait.Milliseconds()})
}

// OwnQueue builds one of an owner's own queues. What only quorum queues take is left out for
// classic ones, which refuse it.
func OwnQueue(queueType, deadLetterExchange string, deliveryLimit int64, more topology.Arguments) topology.Queue {
	all := topology.Arguments{"x-dead-letter-exchange": deadLetterExchange}
	maps.Copy(all, more)
	if queueType == topology.Quorum {
		all["x-delivery-limit"] = deliveryLimit
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
			maps.Copy(arguments, p.DeadLetterArguments(name))
		}
		t.Queues[name] = topology.Queue{Type: workQueue.Type, Arguments: arguments}
	}
}
