package pipeline

import (
	"maps"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// DeclaredByArgument marks a work queue with the pipeline that created it. Brokers store and ignore unknown arguments.
// The mark stays on a queue that is no longer declared, so DeclaredArgument also marks the return binding of a declared
// queue. A queue is deleted only if it has both. The values are strings, because the management API gives the same
// properties key to a binding with true and with "true".
const (
	DeclaredByArgument = "retry-declared-by"
	DeclaredArgument   = "retry-declared"
)

// InboxDeliveryLimit is the delivery limit of quorum inboxes, in deliveries. It is the same for every RabbitMQ version,
// because queue arguments are immutable.
const InboxDeliveryLimit = int64(1_000)

// Expand returns every object that the pipeline owns. It depends on the specification alone.
func (p Pipeline) Expand() topology.Topology {
	t := p.Identity()
	maps.Copy(t.Exchanges, ExpandExchanges(p))
	p.engine().addQueues(&t, p)
	addWorkQueues(&t, p)
	addFailedQueuesOfWorkQueues(&t, p)
	addPolicies(t, p)
	topology.SortByText(t.Bindings)
	return t
}

// Identity returns the objects that an import needs. They hold the definition, and are the same for every engine.
func (p Pipeline) Identity() topology.Topology {
	n, t := p.Names(), topology.New()
	t.Exchanges[n.FailedExchange()] = topology.Exchange{Type: "fanout"}
	// Rejected messages come back to this queue. Without its own dead-letter exchange, the policy's would apply.
	t.Queues[n.FailedQueue()] = OwnQueue(p.QueueType, n.FailedExchange(), topology.UnreachableDeliveryLimit, nil)
	t.Bindings = []topology.Binding{n.DefinitionPlace().Binding(p.Definition().String())}
	return t
}

// ExpandExchanges returns only the exchanges, which depend on the name and the engine.
func ExpandExchanges(p Pipeline) map[string]topology.Exchange {
	n, exchanges := p.Names(), p.engine().exchanges(p.Names())
	exchanges[n.FailedExchange()] = topology.Exchange{Type: "fanout"}
	// It leads to the failed queues of work queues. Other messages go to the pipeline's failed queue.
	exchanges[n.FailedRouteExchange()] = topology.Exchange{Type: "direct", Arguments: Alternate(n.FailedExchange())}
	return exchanges
}

// Alternate returns the arguments of an exchange that passes unroutable messages on to another exchange.
func Alternate(exchange string) topology.Arguments {
	return topology.Arguments{"alternate-exchange": exchange}
}

// WaitingQueue returns a queue where messages wait before they go to the exchange. Without its delivery limit, frequent
// looks at the queue would send them on before their time.
func WaitingQueue(queueType, exchange string, wait time.Duration) topology.Queue {
	return OwnQueue(queueType, exchange, topology.UnreachableDeliveryLimit,
		topology.Arguments{"x-message-ttl": wait.Milliseconds()})
}

// RefusedWait is how long a refused message waits before the broker offers it to the queues again. A queue that refuses
// only while it elects a leader takes it then. Without this wait, the broker waits for minutes.
const RefusedWait = 5 * time.Second

// RefusedQueue returns a queue for messages that a queue behind the exchange refused. From there the broker publishes
// them to the exchange again. The queue remembers which target queues already have a message, and only a quorum queue
// does that.
func RefusedQueue(exchange string) topology.Queue {
	return WaitingQueue(topology.Quorum, exchange, RefusedWait)
}

// OwnQueue returns one of an owner's own queues. It leaves out the arguments that classic queues refuse.
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
