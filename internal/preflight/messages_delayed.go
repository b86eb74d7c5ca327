package preflight

// Details of what is wrong with a delayed exchange, or in its way.
const (
	ownQueueOfDelayed = "Queue %q is one of the own queues of the delayed exchange %q. " +
		"Leave it out: a work queue is one that is bound to the exchange %q."

	getsEverything = "There is a binding %q. " +
		"It gets every message as soon as it is published, instead of when it is due. " +
		"Bind to the exchange %q instead, with the same key, and remove this one."

	leadsPastWorker = "There is a binding %q. " +
		"What it brings to a level has no header that says how long it waits, and would be held there for good, with all that follows. " +
		"Remove it, and lead what is to be delayed to the exchange %q."

	slowestUnrouted = "There is a binding %q. " +
		"It is left alone, but what cannot be delivered waits for the slowest of its targets: " +
		"if %q is full and rejects what is published, or has no majority, all delayed messages stop. " +
		"Give it overflow = drop-head, or no limit."

	typeWithBindings = "A change of type re-creates the exchange %q, and these bindings of others would mean something else there:\n%s\n\n" +
		"Remove them first, and bind again with what the new type routes by; until then, what is due goes to the unrouted queue. " +
		"Or add a second delayed exchange of that type, and move publishers and bindings to it."
)
