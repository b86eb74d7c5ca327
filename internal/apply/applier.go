package apply

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
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
