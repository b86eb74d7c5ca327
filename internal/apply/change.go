package apply

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Change is a change of the objects of one owner in a vhost.
type Change struct {
	Vhost string
	// All is the whole vhost, read just now.
	All topology.Vhost
	// Live is what the owner has in it.
	Live topology.Topology
	// Wanted is what the owner shall have.
	Wanted topology.Topology
	// Identity is what the owner is recognised by: an exchange, or nothing, and what belongs to it. It is
	// created first.
	Identity topology.Topology
	// SharedQueues are queues of the owner that others publish to and consume.
	SharedQueues []string
	// Joined are those of them that somebody of the same owner may create at the same time.
	Joined []string
	// CatchAll is the owner's queue that receives what has nowhere else to go: it is unbound last.
	CatchAll string
	// Entrance is the exchange that applications publish to, "" if there is none. It goes before the catch-all queue is unbound:
	// brokers confirm what an exchange without bindings drops, and refuse what is published to one that is gone.
	Entrance string
	// Together says that messages pass from one of the owner's own queues to the next, so that of those which are not wanted
	// any more all go or none does, with the exchanges that lead to them.
	Together bool
	// Guard are policies of the owner, by name, in a form that keeps other people's policies off the
	// owner's own queues and covers no other queue. A policy that is deleted takes this form first, and
	// goes when the queues are gone.
	Guard map[string]topology.Policy
	// NoteOf is the binding of the owner's that notes one of somebody else's on the broker while an exchange of the owner's is
	// re-created, which that note survives. Noted reads it. Both are nil for an owner without exchanges.
	NoteOf func(b topology.Binding, going string) topology.Binding
	Noted  func(topology.Binding) (topology.Binding, bool)
	// ReturnsFrom lists the queues of another owner whose messages come back by a binding of that owner's, none for any other
	// binding; nil if there can be none. Such a binding keeps a queue only as long as these are not proved to be empty.
	ReturnsFrom func(b topology.Binding, vhost topology.Topology) []string
	// ForceTakesBindings says that a removal that is Forced takes bindings of others along with the queues to which they lead.
	ForceTakesBindings, Forced bool
	// FallsBack reports whether messages that a binding of the owner's routes go to a queue of the owner's without it. Such a
	// binding whose key is to lead to another queue goes first: with both of them, messages would be doubled. Nil if there is none.
	FallsBack func(topology.Binding) bool
	// AttachedBy is who owns a queue because of a binding that leads to it, "" if nobody; nil if nobody can.
	AttachedBy func(topology.Binding) string
	// RestoresDeadLetterRoute says that dead letters may be pending because they had no way to go, and
	// have one after the change.
	RestoresDeadLetterRoute bool
	// Recheck reads the vhost again after a wait, and fails if the change may not be made any more; nil
	// if there is nothing to look for.
	Recheck func(context.Context) (all topology.Vhost, live topology.Topology, err error)
	// Unused fails if somebody has begun to use what is removed. It is asked after each proof; nil if there is nothing to ask.
	Unused func(context.Context) error
	// Drain is how long to wait for queues that are not empty; Waiting, if it is set, is told about once
	// a second what is waited for.
	Drain   time.Duration
	Waiting func(contents map[string]string)
}

// split divides queues into those that others publish to and those that are the owner's alone.
func (c Change) split(queues map[string]topology.Queue) (shared, own map[string]topology.Queue) {
	isShared := func(name string, _ topology.Queue) bool { return slices.Contains(c.SharedQueues, name) }
	shared, own = maps.Clone(queues), maps.Clone(queues)
	maps.DeleteFunc(shared, func(name string, q topology.Queue) bool { return !isShared(name, q) })
	maps.DeleteFunc(own, isShared)
	return shared, own
}

// LeftToOthers lists the queues that others use, too, and that the owner has no use for any more and does not delete.
func (c Change) LeftToOthers() []string {
	return slices.DeleteFunc(slices.Clone(c.SharedQueues), func(name string) bool {
		_, exists := c.All.Queues[name]
		_, wanted := c.Wanted.Queues[name]
		_, deleted := c.Live.Queues[name]
		return !exists || wanted || deleted
	})
}

// KeptError says that queues were not deleted, since messages could have been lost.
type KeptError struct {
	// Queues says for each queue what speaks against deleting it.
	Queues map[string]string
}

// Error lists the queues and what is in them.
func (e *KeptError) Error() string { return Describe(e.Queues) }

// NotUndoneError says what could not be put back after a change failed.
type NotUndoneError struct{ Err error }

// Error says what is different now, and why.
func (e *NotUndoneError) Error() string { return e.Err.Error() }

// Unwrap returns the reasons.
func (e *NotUndoneError) Unwrap() error { return e.Err }

func notUndone(err error) error {
	if err == nil {
		return nil
	}
	return &NotUndoneError{Err: err}
}

// Describe lists queues and what is in them, one in a line.
func Describe(queues map[string]string) string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(queues)) {
		lines = append(lines, fmt.Sprintf("  - %s: %s", name, queues[name]))
	}
	return strings.Join(lines, "\n")
}
