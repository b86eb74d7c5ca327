package preflight

import (
	"maps"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/stored"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

const delayedExchange = "delayed exchange"

// CheckLiveDelayedExchange compares a delayed exchange with a live vhost. Prior is the earlier delayed exchange, whose
// objects can exist. If the delayed exchange is new, prior is nil.
func CheckLiveDelayedExchange(e delayed.Exchange, prior *delayed.Exchange, vhost topology.Vhost) Findings {
	var f Findings
	n, own := e.Names(), ownerOfDelayed(e, vhost)
	checkOwnQueues(&f, own, vhost)
	checkCoveredQueues(&f, own, vhost)
	checkAlternateExchanges(&f, own, vhost)
	checkExistingDelayed(&f, e, prior, vhost.Topology)
	if len(f.Of(InTheWay)) == 0 { // otherwise they belong to another exchange of that name
		checkBindingsOfDelayed(&f, n, vhost.Topology)
	}
	checkNotes(&f, delayedExchange, n.Notes().Garbled(vhost.Topology, n.OwnsExchange))
	if prior != nil && prior.Type != e.Type {
		checkChangeOfType(&f, n, vhost.Topology)
	}
	checkDefinition(&f, n.DefinitionPlace().CheckReplaceable(vhost.Topology), prior != nil)
	return f.inOrder()
}

// ownerOfDelayed returns a delayed exchange as the owner of its objects.
func ownerOfDelayed(e delayed.Exchange, vhost topology.Vhost) ownObjects {
	n, expanded, others := e.Names(), e.Expand(), maps.Clone(vhost.Policies)
	delete(others, n.QueuesPolicy())
	return ownObjects{
		kind: delayedExchange, queues: expanded.Queues, priority: e.PolicyPriority, exchanges: expanded.Exchanges,
		others: topology.NewMatcher(others), operator: topology.NewMatcher(vhost.OperatorPolicies), alike: "levels",
		covers: func(name string, queue topology.Queue) bool {
			return n.CoversQueue(name) && !n.IsLevelQueue(name, queue)
		},
	}
}

// checkBindingsOfDelayed finds bindings of others that deliver a message early or hold it for good. Bindings from the
// deliver exchange and to the delayed exchange itself are meant for others.
func checkBindingsOfDelayed(f *Findings, n delayed.Names, vhost topology.Topology) {
	for _, b := range vhost.Bindings {
		_, ofNote := b.Arguments[stored.UnboundArgument]
		if b.Source == "" || n.OwnsBinding(b) || ofNote {
			continue
		}
		_, fromLevel := n.LevelOf(b.Source)
		_, toLevel := n.LevelOf(b.Destination)
		switch {
		case b.Source == n.Exchange():
			f.refuse(Path{"name"}, "Binding that gets messages at once",
				"There is a binding %q. It gets every message as soon as it is published, not when it is due. "+
					"Bind to the exchange %q instead, with the same key, and remove this binding.", b.String(), n.DeliverExchange())
		case toLevel:
			f.refuse(Path{"name"}, "Binding that bypasses the sidecar",
				"There is a binding %q. It brings messages to a level without the header that says how long they wait. "+
					"The level would hold them, and all messages after them, forever. "+
					"Remove it, and route these messages to the exchange %q instead.", b.String(), n.Exchange())
		case fromLevel:
			f.warn(Path{"name"}, "Unmanaged binding on the delayed exchange's levels", duplicatedByBinding, b.String())
		case b.Source == n.UnroutedExchange():
			f.warn(Path{"name"}, "Unmanaged binding on the exchange of unrouted messages",
				"There is a binding %q. It is left alone, but undeliverable messages wait for the slowest of their targets. "+
					"If %q is full and rejects messages, or has no majority, all delayed messages stop. "+
					"Give it overflow = drop-head, or no limit.", b.String(), b.Destination)
		}
	}
}

// checkChangeOfType refuses to re-create the deliver exchange with another type while it has bindings of others. They
// would route differently.
func checkChangeOfType(f *Findings, n delayed.Names, vhost topology.Topology) {
	if bindings := n.Foreign(n.DeliverExchange(), vhost); len(bindings) > 0 {
		f.refuse(Path{"type"}, "Bindings would mean something else",
			"A change of type re-creates the exchange %q, and these bindings of others would mean something else there:\n%s\n\n"+
				"Remove them first. After the apply, bind again as the new type requires. "+
				"Until then, due messages go to the unrouted queue. "+
				"Or add a second delayed exchange of that type, and move publishers and bindings to it.",
			n.DeliverExchange(), BulletsOf(bindings))
	}
}

// checkExistingDelayed finds objects that the delayed exchange would create but that already exist.
func checkExistingDelayed(f *Findings, e delayed.Exchange, prior *delayed.Exchange, vhost topology.Topology) {
	wanted := e.Expand()
	if prior != nil {
		known := topology.Merge(prior.Expand(), prior.Owned(vhost))
		known.Bindings = nil
		wanted = wanted.Without(known)
	}
	objects := appendCommon(nil, "exchange", wanted.Exchanges, vhost.Exchanges)
	objects = appendCommon(objects, "policy", wanted.Policies, vhost.Policies)
	objects = appendCommon(objects, "queue", wanted.Queues, vhost.Queues)
	if prior != nil || len(objects) == 0 {
		f.exist(Path{"name"}, objects, nil)
		return
	}
	_, notImportable := delayed.Recover(e.Name, e.Vhost, vhost)
	f.existForNew(delayedExchange, objects, e.InterruptedCreation(vhost), notImportable)
}
