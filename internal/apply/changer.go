package apply

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// changer carries out one change and remembers how to undo it.
type changer struct {
	*Applier
	Change
	// onlyNew refuses objects that exist already: another one's would be taken over.
	onlyNew bool
	// made is what was created or written; several objects are at once.
	made      topology.Topology
	madeMutex sync.Mutex
	// deletionUnknown are queues whose deletion the broker did not answer: it may still take effect.
	deletionUnknown map[string]bool
	// recreated are queues that are created again after their deletion.
	recreated map[string]bool
	// bestEffort is for a removal that nobody can take up again: what the broker does not answer is noted in
	// unanswered, and does not stop it once all queues are proved to be empty.
	bestEffort bool
	unanswered []error
	// undo puts back what was removed.
	undo journal
	// drainUntil is when the change's time to drain is over: at least Times.Stale after its beginning.
	drainUntil time.Time
}

func (a *Applier) changer(change Change) *changer {
	drain := max(change.Drain, a.times.Stale)
	made := topology.Topology{Exchanges: map[string]topology.Exchange{}, Queues: map[string]topology.Queue{}, Policies: map[string]topology.Policy{}}
	return &changer{Applier: a, Change: change, made: made, deletionUnknown: map[string]bool{}, recreated: map[string]bool{}, drainUntil: time.Now().Add(drain)}
}

// remember notes what was made.
func (c *changer) remember(note func(made *topology.Topology)) {
	c.madeMutex.Lock()
	defer c.madeMutex.Unlock()
	note(&c.made)
}

// lookupTime bounds the look-up of a write that was not answered, which goes on after a cancellation.
const lookupTime = 30 * time.Second

// write sends one write and tells whether it took effect, or may have. If there is no answer, what
// is on the broker decides; a write is never repeated blindly.
func (c *changer) write(ctx context.Context, what string, put func() (bool, error), exists func(topology.Topology) bool) (bool, error) {
	isNew, err := put()
	if err != nil && broker.IsUnanswered(err) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookupTime)
		defer cancel()
		now, lookupErr := c.client.List(ctx, c.Vhost)
		if lookupErr != nil || !exists(now.Topology) {
			return true, fmt.Errorf("%s: the broker did not say whether it was written, and it may still appear later: %w", what, err)
		}
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("%s: %w", what, err)
	}
	if c.onlyNew && !isNew {
		return false, fmt.Errorf("%s: it exists already, since somebody created it a moment ago. Import it, or choose another name", what)
	}
	return true, nil
}

func (c *changer) createExchange(ctx context.Context, name string, exchange topology.Exchange) error {
	written, err := c.write(ctx, fmt.Sprintf("create exchange %q", name),
		func() (bool, error) { return c.client.PutExchange(ctx, c.Vhost, name, exchange) },
		func(now topology.Topology) bool { _, exists := now.Exchanges[name]; return exists })
	if written {
		c.remember(func(made *topology.Topology) { made.Exchanges[name] = exchange })
	}
	return err
}

func (c *changer) createQueue(ctx context.Context, name string, queue topology.Queue) error {
	written, err := c.write(ctx, fmt.Sprintf("create queue %q", name),
		func() (bool, error) { return c.client.PutQueue(ctx, c.Vhost, name, queue) },
		func(now topology.Topology) bool { _, exists := now.Queues[name]; return exists })
	if written {
		c.remember(func(made *topology.Topology) { made.Queues[name] = queue })
	}
	return err
}

func (c *changer) createBinding(ctx context.Context, b topology.Binding) error {
	// Creating a binding a second time changes nothing, so the broker's answer never tells.
	written, err := c.write(ctx, fmt.Sprintf("create binding %q", b),
		func() (bool, error) { return true, c.client.Bind(ctx, c.Vhost, b) },
		func(now topology.Topology) bool {
			return slices.ContainsFunc(now.Bindings, func(have topology.Binding) bool { return have.String() == b.String() })
		})
	if written {
		c.remember(func(made *topology.Topology) { made.Bindings = append(made.Bindings, b) })
	}
	return err
}

func (c *changer) removeBinding(ctx context.Context, b topology.Binding) error {
	c.undo.add("restore binding "+b.String(), func(ctx context.Context) error { return c.rebind(ctx, []topology.Binding{b}) })
	if err := c.client.Unbind(ctx, c.Vhost, b); err != nil {
		return fmt.Errorf("delete binding %q: %w", b, err)
	}
	return nil
}

// toleratingSilence notes a failure to answer instead of returning it, if the removal goes on all the same.
func (c *changer) toleratingSilence(err error) error {
	if err == nil || !c.bestEffort || !broker.IsUnanswered(err) {
		return err
	}
	c.unanswered = append(c.unanswered, err)
	return nil
}

// removeQueue deletes a queue. If the broker does not say whether it did, the queue gets no bindings any
// more: what it received would be deleted with it.
func (c *changer) removeQueue(ctx context.Context, name string, queue topology.Queue) error {
	err := c.deleteUntilAnswered(ctx, name, queue)
	if err == nil {
		return nil
	}
	if c.deletionUnknown[name] {
		return c.toleratingSilence(fmt.Errorf("delete queue %q: the broker did not say whether it was deleted, and it may still be; it stays unbound until the next apply: %w", name, err))
	}
	return fmt.Errorf("delete queue %q: %w", name, err)
}

// deleteUntilAnswered deletes a queue, again while the broker does not say whether it did: a node that
// dies in the middle of a deletion leaves a quorum queue without members, of which nothing can be
// proved any more (3.10 to 4.3). What is unbound receives nothing, and the first attempt may take
// effect at any time, so the next one can lose no more than that. But a queue that is created again
// afterwards, here or by an application, may be another one by then.
func (c *changer) deleteUntilAnswered(ctx context.Context, name string, queue topology.Queue) error {
	var deadline time.Time
	once := len(c.deletionUnknown) > 0 || c.recreated[name] || slices.Contains(c.Published, name)
	for {
		err := c.client.DeleteQueue(ctx, c.Vhost, name, queue.Type)
		if err == nil {
			delete(c.deletionUnknown, name)
			return nil
		}
		if !broker.IsUnanswered(err) {
			return err
		}
		c.deletionUnknown[name] = true
		if deadline.IsZero() {
			deadline = time.Now().Add(lookupTime)
		}
		if once || time.Now().After(deadline) || pause(ctx, c.times.Poll) != nil {
			return err
		}
	}
}

func (c *changer) removeExchange(ctx context.Context, name string, _ topology.Exchange) error {
	if err := c.client.DeleteExchange(ctx, c.Vhost, name); err != nil {
		return c.toleratingSilence(fmt.Errorf("delete exchange %q: %w", name, err))
	}
	return nil
}

// eachByName calls with the entries of a map in the order of their names, until one fails.
func eachByName[T any](ctx context.Context, objects map[string]T, call func(context.Context, string, T) error) error {
	for _, name := range slices.Sorted(maps.Keys(objects)) {
		if err := call(ctx, name, objects[name]); err != nil {
			return err
		}
	}
	return nil
}

func each[T any](ctx context.Context, objects []T, call func(context.Context, T) error) error {
	for _, object := range objects {
		if err := call(ctx, object); err != nil {
			return err
		}
	}
	return nil
}
