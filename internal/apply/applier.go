// Package apply changes a broker without losing a message. A pure function turns a Change into steps (plan.go). Each
// step names its objects, and how the change continues if the step fails. An execution carries out the steps in order,
// records how to undo them, and proves that queues are empty before it deletes them (execute.go).
package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/stored"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Applier carries out changes. It is safe for concurrent use.
type Applier struct {
	client *broker.Client
	times  Times
	// ends has a lock for each exchange or queue, because a re-creation would bring back a binding that is deleted meanwhile.
	ends *sync.Map
}

// New returns an applier that changes the client's broker.
func New(client *broker.Client, times Times) *Applier { return &Applier{client, times, &sync.Map{}} }

// Times are the times of the proof that queues are empty.
func (a *Applier) Times() Times { return a.times }

// end is an exchange or a queue, where bindings end.
type end struct{ vhost, kind, name string }

// Hold waits until neither end of a binding is being re-created, and keeps it so until the returned function is called.
func (a *Applier) Hold(vhost string, b topology.Binding) (release func()) {
	to := end{vhost, aQueue, b.Destination}
	if b.ToExchange {
		to.kind = anExchange
	}
	return a.hold(map[end]bool{{vhost, anExchange, b.Source}: false, to: false})
}

// HoldExchange waits until no queue with a binding from the exchange is being re-created, and keeps it so until the returned function is
// called.
func (a *Applier) HoldExchange(vhost, name string) (release func()) {
	return a.hold(map[end]bool{{vhost, anExchange, name}: true})
}

// hold locks ends of bindings, alone or shared with others, until the returned function is called. It always locks in one order, so that
// two calls do not wait for each other.
func (a *Applier) hold(alone map[end]bool) (release func()) {
	order := slices.SortedFunc(maps.Keys(alone), func(x, y end) int {
		return cmp.Or(cmp.Compare(x.kind, y.kind), cmp.Compare(x.name, y.name))
	})
	var held []sync.Locker
	for _, end := range order {
		found, _ := a.ends.LoadOrStore(end, &sync.RWMutex{})
		lock := found.(*sync.RWMutex) //nolint:forcetypeassert // nothing else is stored
		locker := lock.RLocker()
		if alone[end] {
			locker = lock
		}
		locker.Lock()
		held = append(held, locker)
	}
	return func() {
		for _, lock := range held {
			lock.Unlock()
		}
	}
}

// Create creates objects that do not exist yet. Live has the objects that remain from an interrupted creation, and they
// stay if no other creation continues with them. If another object exists or a step fails, Create removes only the
// objects that this call made. If that would lose messages, all of them stay. A *NotUndoneError names the objects that
// stay.
func (a *Applier) Create(ctx context.Context, change Change) error {
	if err := a.requireAbandoned(ctx, change); err != nil {
		return err
	}
	e := a.execution(change)
	e.onlyNew = true
	return e.run(ctx, planCreate(change))
}

// requireAbandoned returns an error if another creation is making the objects now. It changes no object.
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
		return errors.New("another process is creating these objects now, so nothing of them was changed: apply again once it is done")
	}
	return nil
}

// Update changes the objects that differ. Steps that can be refused come first: if a change would lose messages, Update
// fails with *KeptError and changes nothing. An unwanted queue that only the owner publishes to stays unless it is
// proved empty. The result has these queues with the reasons.
func (a *Applier) Update(ctx context.Context, change Change) (kept map[string]string, err error) {
	e := a.execution(change)
	steps, err := planUpdate(change)
	if err != nil {
		return nil, err
	}
	err = e.run(ctx, steps)
	return e.kept, err
}

// Remove deletes every object of the owner, or none. If messages would be lost, it restores everything, and *KeptError
// says where the messages are. A *NotUndoneError names objects that it could not restore.
func (a *Applier) Remove(ctx context.Context, change Change) error {
	return a.execution(change).removeAll(ctx, rollBack)
}

// ForceRemove deletes every object of the owner, with all messages.
func (a *Applier) ForceRemove(ctx context.Context, change Change) error {
	change.Forced = true
	return a.execution(change).run(ctx, planForce(change))
}

// Change is a change of the objects of one owner in a vhost.
type Change struct {
	stored.Owner
	Vhost string
	// All is the whole vhost, read at the start of the change.
	All topology.Vhost
	// Live has the owner's objects in the vhost.
	Live topology.Topology
	// Wanted has the objects that the owner must have after the change.
	Wanted topology.Topology
	// SharedQueues are the owner's queues that others publish to and consume.
	SharedQueues []string
	// Joined are shared queues that another part of the same owner can create at the same time.
	Joined []string
	// Forced says that the removal deletes queues with their messages.
	Forced bool
	// RestoresDeadLetterRoute says that dead letters can be pending without a route, and that the change restores the
	// route.
	RestoresDeadLetterRoute bool
	// Recheck reads the vhost again after a wait. It fails if the change is no longer allowed. Nil means that there is
	// nothing to check.
	Recheck func(context.Context) (all topology.Vhost, live topology.Topology, err error)
	// Unused fails if others have begun to use the objects of a removal. It is called after each proof. Nil means that
	// there is nothing to check.
	Unused func(context.Context) error
	// Drain is how long to wait for queues that are not empty. Waiting, if set, is called about once a second with the
	// queues that hold up the change.
	Drain   time.Duration
	Waiting func(contents map[string]string)
}

// delta is a change with the differences between its live and its wanted objects.
type delta struct {
	Change
	topology.Changes
}

func (c Change) delta() delta { return delta{c, topology.Diff(c.Wanted, c.Live)} }

// split divides queues into shared queues and queues that only the owner uses.
func (c Change) split(queues map[string]topology.Queue) (shared, own map[string]topology.Queue) {
	return divide(queues, func(name string, _ topology.Queue) bool { return slices.Contains(c.SharedQueues, name) })
}

// LeftToOthers lists the shared queues that the owner no longer uses and does not delete.
func (c Change) LeftToOthers() []string {
	return only(c.SharedQueues, func(name string) bool {
		return has(c.All.Queues, name) && !has(c.Wanted.Queues, name) && !has(c.Live.Queues, name)
	})
}

// KeptError says that queues were not deleted, because messages could have been lost.
type KeptError struct {
	// Queues has the reason for each queue.
	Queues map[string]string
}

// Error lists the queues and their reasons.
func (e *KeptError) Error() string { return Describe(e.Queues) }

func isA[E error](err error) bool {
	_, is := errors.AsType[E](err)
	return is
}

// NotUndoneError says which parts of a failed change could not be undone: how the broker differs now, and why.
type NotUndoneError struct{ error }

// Unwrap returns the reasons.
func (e *NotUndoneError) Unwrap() error { return e.error }

func notUndone(err error) error {
	if err == nil {
		return nil
	}
	return &NotUndoneError{err}
}

// Describe lists queues and their contents or reasons, one on each line.
func Describe(queues map[string]string) string {
	var lines []string
	for name, found := range sorted(queues) {
		lines = append(lines, fmt.Sprintf("  - %s: %s", name, found))
	}
	return strings.Join(lines, "\n")
}
