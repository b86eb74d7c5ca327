package broker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Change is a change of the objects of one owner in a vhost.
type Change struct {
	Vhost string
	// All is the whole vhost, read just now.
	All topology.Topology
	// Changes lead to what is wanted.
	Changes topology.Changes
	// HeldIn are work queues whose undelivered dead letters the change would delete.
	HeldIn []string
	// LastUnbound are queues that a removal leaves bound for as long as it may still be refused: those
	// that catch dead letters, and those that others publish to.
	LastUnbound []string
}

// KeptError says that nothing was deleted, since messages would have been lost.
type KeptError struct {
	// Queues says for each queue what speaks against it being empty.
	Queues map[string]string
}

// Error lists the queues and what they hold.
func (e *KeptError) Error() string { return Describe(e.Queues) }

// Describe lists queues and what they hold, one in a line.
func Describe(queues map[string]string) string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(queues)) {
		lines = append(lines, fmt.Sprintf("  - %s: %s", name, queues[name]))
	}
	return strings.Join(lines, "\n")
}

// Create creates objects that do not exist yet, policies last. If one exists already or anything
// fails, what this call made is removed again, and nothing else.
func (c *Client) Create(ctx context.Context, change Change) error {
	do := c.changer(change)
	do.onlyNew = true
	err := do.create(ctx, change.Changes.Create)
	if err == nil {
		return nil
	}
	if undone := do.undoCreate(ctx); undone != nil {
		return fmt.Errorf("%w\n\nNot everything that was created could be removed again:\n%w", err, undone)
	}
	return err
}

// Update changes what differs: what is missing is created first, what is in the way is replaced,
// what is not wanted any more is deleted last. Queues are deleted only if they are proved to be
// empty; those that are not are kept, and the answer says why. A queue that would have to be
// replaced but is not empty fails with *KeptError.
func (c *Client) Update(ctx context.Context, change Change) (map[string]string, error) {
	do, changes := c.changer(change), change.Changes
	if err := do.requireNoDeadLetters(ctx, change.HeldIn); err != nil {
		return nil, err
	}
	if err := eachByName(ctx, changes.Replace.Exchanges, do.replaceExchange); err != nil {
		return nil, err
	}
	if err := do.replaceQueues(ctx, changes.Replace.Queues); err != nil {
		return nil, err
	}
	if err := do.create(ctx, changes.Create); err != nil {
		return nil, err
	}
	if err := eachByName(ctx, changes.Update.Policies, do.writePolicy); err != nil {
		return nil, err
	}
	return do.removeSome(ctx, changes.Delete)
}

func (c *Client) changer(change Change) *changer {
	return &changer{Client: c, vhost: change.Vhost, all: change.All, made: map[string]topology.Queue{}}
}

func (c *changer) create(ctx context.Context, t topology.Topology) error {
	if err := eachByName(ctx, t.Exchanges, c.createExchange); err != nil {
		return err
	}
	if err := eachByName(ctx, t.Queues, c.createQueue); err != nil {
		return err
	}
	if err := each(ctx, t.Bindings, c.createBinding); err != nil {
		return err
	}
	return eachByName(ctx, t.Policies, c.writePolicy)
}

// undoCreate removes what was created. The queues go with the proof: as soon as policies were
// written, consumers could reject into them.
func (c *changer) undoCreate(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTime)
	defer cancel()
	undone := c.rollback(ctx)
	if len(c.made) == 0 {
		return undone
	}
	c.all.Bindings = nil
	kept, err := c.removeQueues(ctx, c.made, false)
	if len(kept) > 0 {
		err = errors.Join(err, &KeptError{Queues: kept})
	}
	return errors.Join(undone, err)
}

func (c *changer) requireNoDeadLetters(ctx context.Context, heldIn []string) error {
	if len(heldIn) == 0 {
		return nil
	}
	return c.requireEmpty(ctx, judging(deadLetters, heldIn...))
}

func (c *changer) requireEmpty(ctx context.Context, queues subjects) error {
	kept, err := c.proveEmpty(ctx, c.vhost, queues)
	if err != nil {
		return err
	}
	if len(kept) > 0 {
		return &KeptError{Queues: kept}
	}
	return nil
}

// replaceExchange deletes and creates an exchange, which is all that a broker offers, and gives it
// back every binding it had, foreign ones included.
func (c *changer) replaceExchange(ctx context.Context, name string, exchange topology.Exchange) error {
	if err := c.deleteExchange(ctx, c.vhost, name); err != nil {
		return fmt.Errorf("delete exchange %q: %w", name, err)
	}
	if err := c.createExchange(ctx, name, exchange); err != nil {
		return err
	}
	return each(ctx, c.bindingsOf(name), c.createBinding)
}

func (c *changer) replaceQueues(ctx context.Context, queues map[string]topology.Queue) error {
	live := map[string]topology.Queue{}
	for name := range queues {
		live[name] = c.all.Queues[name]
	}
	kept, err := c.removeQueues(ctx, live, true)
	if err != nil {
		return err
	}
	if len(kept) > 0 {
		return errors.Join(&KeptError{Queues: kept}, c.rollback(ctx))
	}
	if err := eachByName(ctx, queues, c.createQueue); err != nil {
		return err
	}
	return each(ctx, c.bindingsTo(queues), c.createBinding)
}

// removeSome deletes policies first, so that nothing new arrives, and exchanges last. Queues that
// are not proved to be empty are kept.
func (c *changer) removeSome(ctx context.Context, t topology.Topology) (map[string]string, error) {
	if err := eachByName(ctx, t.Policies, c.removePolicy); err != nil {
		return nil, err
	}
	kept, err := c.removeQueues(ctx, t.Queues, false)
	if err != nil {
		return kept, err
	}
	return kept, c.removeRest(ctx, t)
}

// removeRest deletes bindings that did not go with their queues, and exchanges.
func (c *changer) removeRest(ctx context.Context, t topology.Topology) error {
	bindings := slices.DeleteFunc(slices.Clone(t.Bindings), func(b topology.Binding) bool {
		_, withQueue := t.Queues[b.Destination]
		return withQueue
	})
	if err := each(ctx, bindings, c.removeBinding); err != nil {
		return err
	}
	for name := range t.Exchanges {
		if err := c.deleteExchange(ctx, c.vhost, name); err != nil {
			return fmt.Errorf("delete exchange %q: %w", name, err)
		}
	}
	return nil
}
