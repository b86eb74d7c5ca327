package topology

import "slices"

// Untouched reports whether all that an owner has in a vhost is there exactly as it would be made, and nothing is bound to
// it or from it.
func Untouched(owned, made, vhost Topology) bool {
	changes := Diff(owned, made)
	isBound := func(b Binding) bool {
		_, from := owned.Exchanges[b.Source]
		_, toQueue := owned.Queues[b.Destination]
		_, toExchange := owned.Exchanges[b.Destination]
		return from || b.Source != "" && (b.ToExchange && toExchange || !b.ToExchange && toQueue)
	}
	return !owned.Empty() && changes.Create.Empty() && changes.Replace.Empty() && changes.Update.Empty() &&
		!slices.ContainsFunc(vhost.Bindings, isBound)
}
