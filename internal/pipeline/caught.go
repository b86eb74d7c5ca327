package pipeline

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// CaughtArgument marks the queue of what was published while a binding of somebody else's was away. Its text says so
// to whoever looks at the queue.
const (
	CaughtArgument = "x-retry-caught"
	caughtText     = "published while an apply kept the binding away that it was for"
)

// CaughtQueue keeps what was published while a binding of somebody else's was away. The pipeline's policy covers its
// name, which is none of a delay, so that no policy of others empties it.
func (n Names) CaughtQueue() string { return n.retryQueuePrefix() + "0.caught" }

// isCaughtQueue reports whether a queue is that one, and not somebody else's of the same name.
func (n Names) isCaughtQueue(name string, queue topology.Queue) bool {
	return name == n.CaughtQueue() && queue.Arguments[CaughtArgument] == caughtText
}

// catchPrefix begins the names of the exchanges that lead to the queue of what was caught. Whoever may make retry queues
// may make them.
func (n Names) catchPrefix() string { return n.CaughtQueue() + "." }

// catchExchange takes what the source could not route.
func (n Names) catchExchange(source string) string {
	sum := sha256.Sum256([]byte(source))
	return n.catchPrefix() + hex.EncodeToString(sum[:8])
}

// isCatchExchange reports whether an exchange has the name of one that catches.
func (n Names) isCatchExchange(exchange string) bool {
	sum, found := strings.CutPrefix(exchange, n.catchPrefix())
	decoded, err := hex.DecodeString(sum)
	return found && err == nil && len(decoded) == 8
}

// Catch returns what catches the messages that only this binding of somebody else's routes, as long as it is away: a
// policy gives its source an alternate exchange of the same type, with the same binding to a queue. It is empty where
// that would catch other messages, too, or override what somebody has set.
func (p Pipeline) Catch(b topology.Binding, vhost topology.Topology) topology.Topology {
	n, t := p.Names(), topology.New()
	source, exists := vhost.Exchanges[b.Source]
	if !exists || !n.catchable(b.Source, source, vhost) {
		return t
	}
	t.Queues[n.CaughtQueue()] = OwnQueue(p.QueueType, n.FailedExchange(), topology.UnreachableDeliveryLimit,
		topology.Arguments{CaughtArgument: caughtText})
	t.Exchanges[n.catchExchange(b.Source)] = topology.Exchange{Type: source.Type}
	t.Bindings = []topology.Binding{{
		Source: n.catchExchange(b.Source), Destination: n.CaughtQueue(), RoutingKey: b.RoutingKey, Arguments: b.Arguments, Exact: b.Exact,
	}}
	t.Policies[n.catchPolicy(b.Source)] = topology.Policy{
		Pattern: ExactPattern([]string{b.Source}), ApplyTo: "exchanges", Priority: p.PolicyPriority,
		Definition: topology.Arguments{"alternate-exchange": n.catchExchange(b.Source)},
	}
	return t
}

// catchable reports whether an alternate exchange takes no more than what would be lost, and overrides nothing. Of two
// policies only one applies. What another exchange leads to the source may have other ways from there.
func (n Names) catchable(name string, source topology.Exchange, vhost topology.Topology) bool {
	_, alternate := source.Arguments["alternate-exchange"]
	others := maps.Clone(vhost.Policies)
	delete(others, n.catchPolicy(name))
	policies, doubtful := topology.NewMatcher(others).Exchange(name)
	isLedTo := func(b topology.Binding) bool { return b.ToExchange && b.Destination == name }
	return !alternate && !n.OwnsExchange(name) && slices.Contains([]string{"direct", "fanout", "topic", "headers"}, source.Type) &&
		len(policies)+len(doubtful) == 0 && !slices.ContainsFunc(vhost.Bindings, isLedTo)
}

// Catching picks out of the pipeline's objects those that still catch; what was caught is not among them.
func (n Names) Catching(owned topology.Topology) topology.Topology {
	t := topology.New()
	for name, exchange := range owned.Exchanges {
		if n.isCatchExchange(name) {
			t.Exchanges[name] = exchange
		}
	}
	for _, b := range owned.Bindings {
		if n.isCatchExchange(b.Source) {
			t.Bindings = append(t.Bindings, b)
		}
	}
	for name, policy := range owned.Policies {
		if parsed, is := parsePolicyName(name); is && parsed.kind == catchPolicy {
			t.Policies[name] = policy
		}
	}
	return t
}
