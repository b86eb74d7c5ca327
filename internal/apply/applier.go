// Package apply changes a broker without losing a message. A pure function turns a Change into steps,
// each with what it acts on and what becomes of the change if it fails (plan_*.go). An execution carries
// them out one after another, remembers how to undo them, and proves that queues are empty before they
// are deleted (execute.go).
package apply

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/stored"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Applier carries out changes. It is safe for concurrent use.
type Applier struct {
	client *broker.Client
	times  Times
}

// New makes an applier that changes the client's broker.
func New(client *broker.Client, times Times) *Applier { return &Applier{client, times} }

// Lag is Times.Lag.
func (a *Applier) Lag() time.Duration { return a.times.Lag }

// Create creates objects that do not exist yet. Those of Live are what an interrupted creation left, and stay as
// they are if nobody goes on with them. If any other exists already or anything fails, what this
// call made is removed again, and nothing else. If that would lose messages, all of it stays; what
// stays, for whatever reason, is in a *NotUndoneError.
func (a *Applier) Create(ctx context.Context, change Change) error {
	if err := a.requireAbandoned(ctx, change); err != nil {
		return err
	}
	e := a.execution(change)
	e.onlyNew = true
	return e.run(ctx, planCreate(change))
}

// requireAbandoned is an error if somebody is creating the objects now: what an interrupted creation left stays
// as it is.
func (a *Applier) requireAbandoned(ctx context.Context, change Change) error {
	if len(change.Live.Exchanges) == 0 {
		return nil
	}
	if err := pause(ctx, a.times.Settle); err != nil {
		return err
	}
	now, err := a.client.List(ctx, change.Vhost)
	if err != nil {
		return err
	}
	of := func(vhost topology.Vhost) topology.Topology { return vhost.Without(vhost.Without(change.Wanted)) }
	if changes := topology.Diff(of(now), of(change.All)); !changes.Empty() {
		return errors.New("somebody else is creating these objects now: nothing was changed")
	}
	return nil
}

// Update changes what differs. Whatever may be refused comes first: a change that would lose
// messages fails with *KeptError before anything else was touched. Of the queues that are not wanted
// any more, those that nobody else publishes to are kept if they are not proved to be empty, and the
// answer says why, by queue.
func (a *Applier) Update(ctx context.Context, change Change) (kept map[string]string, err error) {
	e := a.execution(change)
	steps, err := planUpdate(change)
	if err != nil {
		return nil, err
	}
	err = e.run(ctx, steps)
	return e.kept, err
}

// Remove deletes every object of the owner, or none: if messages would be lost, everything is put
// back and *KeptError says where they are. What could not be put back is in a *NotUndoneError.
func (a *Applier) Remove(ctx context.Context, change Change) error {
	e := a.execution(change)
	if err := e.remove(ctx, rollBack); err != nil {
		return err
	}
	return a.confirmVisible(ctx, change.Vhost)
}

// ForceRemove deletes every object of the owner with all messages that are in them.
func (a *Applier) ForceRemove(ctx context.Context, change Change) error {
	change.Forced = true
	return a.execution(change).run(ctx, planForce(change))
}

// confirmVisible is an error if the vhost exists but is not accessible any more: to such a user
// everything looks as if it were deleted.
func (a *Applier) confirmVisible(ctx context.Context, vhost string) error {
	err := a.client.Look(ctx, vhost)
	if !broker.IsNotFound(err) {
		return err
	}
	if gone, goneErr := a.client.VhostGone(ctx, vhost); goneErr != nil || !gone {
		return fmt.Errorf("whether everything was deleted is not known, since the vhost is not accessible any more: %w",
			errors.Join(err, goneErr))
	}
	return nil
}

// Owner is whose objects a change makes, changes and removes. [Plain] has the answers of one that has nothing of its kind.
type Owner interface {
	// Identity is what the owner is recognised by: an exchange, or nothing, and what belongs to it. It is created first.
	Identity() topology.Topology
	// Guard are policies of the owner, by name, in a form that keeps other people's policies off the
	// owner's own queues and covers no other queue. A policy that is deleted takes this form first, and
	// goes when the queues are gone.
	Guard() map[string]topology.Policy
	// CatchAll is the owner's queue that receives what has nowhere else to go: it is unbound last.
	CatchAll() string
	// Entrance is the exchange that applications publish to, "" if there is none. It goes before the catch-all queue is unbound:
	// brokers confirm what an exchange without bindings drops, and refuse what is published to one that is gone. From there messages
	// pass from one of the owner's queues to the next, so that of those no longer wanted all go or none does, with the exchanges
	// that lead to them.
	Entrance() string
	// Notes are where bindings of others are noted on the broker while an exchange of the owner's is re-created.
	Notes() stored.Notes
	// ReturnsFrom lists the queues of another owner whose messages come back by a binding of that owner's, none for any other
	// binding. Such a binding keeps a queue only as long as these are not proved to be empty.
	ReturnsFrom(b topology.Binding, vhost topology.Topology) []string
	// FallsBack reports whether messages that a binding of the owner's routes go to a queue of the owner's without it. If such a
	// binding gets a key that leads to another queue, it goes first: with both of them, messages would be doubled.
	FallsBack(b topology.Binding) bool
	// AttachedBy is who owns a queue because of a binding that leads to it, "" if nobody does.
	AttachedBy(b topology.Binding) string
	// ForceTakesBindings says that a removal that is forced takes bindings of others along with the queues to which they lead.
	ForceTakesBindings() bool
}

// Plain is an owner without an exchange, a guard or a catch-all queue.
type Plain struct{}

// Identity implements [Owner].
func (Plain) Identity() topology.Topology { return topology.Topology{} }

// Guard implements [Owner].
func (Plain) Guard() map[string]topology.Policy { return nil }

// CatchAll implements [Owner].
func (Plain) CatchAll() string { return "" }

// Entrance implements [Owner].
func (Plain) Entrance() string { return "" }

// Notes implements [Owner].
func (Plain) Notes() stored.Notes { return nil }

// ReturnsFrom implements [Owner].
func (Plain) ReturnsFrom(topology.Binding, topology.Topology) []string { return nil }

// FallsBack implements [Owner].
func (Plain) FallsBack(topology.Binding) bool { return false }

// AttachedBy implements [Owner].
func (Plain) AttachedBy(topology.Binding) string { return "" }

// ForceTakesBindings implements [Owner].
func (Plain) ForceTakesBindings() bool { return false }

// Change is a change of the objects of one owner in a vhost.
type Change struct {
	Owner
	Vhost string
	// All is the whole vhost, read just now.
	All topology.Vhost
	// Live is what the owner has in it.
	Live topology.Topology
	// Wanted is what the owner shall have.
	Wanted topology.Topology
	// SharedQueues are queues of the owner that others publish to and consume.
	SharedQueues []string
	// Joined are those of them that somebody of the same owner can create at the same time.
	Joined []string
	// Forced says that the removal deletes queues with the messages in them.
	Forced bool
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
