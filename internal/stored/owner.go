package stored

import "github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"

// Owner says what a change must know of the owner of its objects. An owner without special objects is the zero value.
type Owner struct {
	// Identity has the objects that identify the owner: its exchange, if it has one, and the objects that belong to that.
	// They are created first.
	Identity topology.Topology
	// Guard has the owner's policies, by name, in a form that covers only its own queues and keeps other policies off
	// them. A removal writes a policy in this form first, and deletes it after the queues.
	Guard map[string]topology.Policy
	// Shared are queues of the owner that others publish to and consume.
	Shared []string
	// Retired are queues that a change keeps only until they are drained.
	Retired []string
	// CatchAll is the owner's queue for messages without another target. It is unbound last.
	CatchAll string
	// Entrance is the exchange that applications publish to, or "". A removal deletes it before it unbinds the catch-all
	// queue. Brokers confirm messages that an exchange without bindings drops, and refuse messages to a deleted exchange.
	// Behind an entrance, messages pass from one of the owner's queues to the next. So an update deletes all unwanted
	// queues or none, along with the exchanges that lead to them.
	Entrance string
	// Notes are the exchanges for notes of other owners' bindings. A note is needed while an exchange is re-created.
	Notes Notes
	// ReturnsFrom lists the other owner's queues whose messages come back by its binding. For other bindings it returns
	// nil. Such a binding keeps a queue only until these queues are proved empty. Nil means that no messages come back.
	ReturnsFrom func(b topology.Binding, vhost topology.Topology) []string
	// FallsBack reports whether messages go to another queue of the owner if this binding is missing. If the binding's
	// key moves to another queue, the old binding is deleted first, because both together would duplicate messages. Nil
	// means that no messages fall back.
	FallsBack func(b topology.Binding) bool
	// AttachedBy returns the owner that a binding gives its queue to, or "". Nil means that no bindings attach queues.
	AttachedBy func(b topology.Binding) string
	// RestoresBindings says that a re-created queue gets the bindings of others back. Otherwise they prevent the
	// re-creation.
	RestoresBindings bool
	// ForceTakesBindings says that a forced removal also deletes bindings of others to the queues.
	ForceTakesBindings bool
}

// Effects are what a change does besides making the owner's objects as wanted.
type Effects struct {
	// Released are queues that the owner has and, instead of deleting them, leaves to others.
	Released []string
	// Detached are the work queues that the change detaches.
	Detached []string
	// FailedQueues are the failed queues that stay because other pipelines use them, with these pipelines.
	FailedQueues map[string][]string
	// Bindings are the bindings of others that a destroy deletes.
	Bindings []topology.Binding
	// RestoresRoute says that pending dead letters get a route, since the change restores missing objects.
	RestoresRoute bool
}
