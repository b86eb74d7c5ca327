package apply

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// catch begins to catch what a binding of somebody else's alone would route, before it is deleted.
func (e *execution) catch(ctx context.Context, b topology.Binding) error {
	if e.Catch == nil {
		return nil
	}
	missing := topology.Diff(e.Catch(b, e.All.Topology), e.catching).Create
	e.catching = topology.Merge(e.catching, missing)
	for _, name := range slices.Sorted(maps.Keys(missing.Queues)) {
		if _, err := e.client.PutQueue(ctx, e.Vhost, name, missing.Queues[name]); err != nil {
			return fmt.Errorf("create queue %q: %w", name, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(missing.Exchanges)) {
		if _, err := e.client.PutExchange(ctx, e.Vhost, name, missing.Exchanges[name]); err != nil {
			return fmt.Errorf("create exchange %q: %w", name, err)
		}
	}
	for _, to := range missing.Bindings {
		if err := e.client.Bind(ctx, e.Vhost, to); err != nil {
			return fmt.Errorf("create binding %q: %w", to, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(missing.Policies)) {
		if _, err := e.client.PutPolicy(ctx, e.Vhost, name, missing.Policies[name]); err != nil {
			return fmt.Errorf("write policy %q: %w", name, err)
		}
	}
	return nil
}

// release ends the catching, once the bindings are back or their queues are gone, and says what stays in the queue
// because it was caught. A queue that was there before is not deleted here: somebody may be emptying it.
func (e *execution) release(ctx context.Context) (map[string]string, error) {
	if e.catching.Empty() {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTime)
	defer cancel()
	if err := e.stopCatching(ctx, e.catching); err != nil {
		return nil, err
	}
	if err := pause(ctx, e.times.Settle); err != nil {
		return nil, err
	}
	caught := e.caught(ctx)
	queue := e.catching.Queues[e.CaughtQueue]
	e.catching = topology.Topology{}
	if _, before := e.Live.Queues[e.CaughtQueue]; before || len(caught) > 0 {
		return caught, nil
	}
	if err := e.client.DeleteQueue(ctx, e.Vhost, e.CaughtQueue, queue.Type); err != nil {
		return nil, fmt.Errorf("delete queue %q: %w", e.CaughtQueue, err)
	}
	return nil, nil
}

// releaseLeft ends the catching that an apply which was killed has begun.
func (e *execution) releaseLeft(ctx context.Context) error {
	if e.Catching == nil {
		return nil
	}
	left := e.Catching(e.Live)
	e.All.Topology, e.Live = e.All.Without(left), e.Live.Without(left)
	return e.stopCatching(ctx, left)
}

// stopCatching deletes the policies first, so that no source has an alternate exchange that is not there.
func (e *execution) stopCatching(ctx context.Context, catching topology.Topology) error {
	for _, name := range slices.Sorted(maps.Keys(catching.Policies)) {
		if err := e.client.DeletePolicy(ctx, e.Vhost, name); err != nil {
			return fmt.Errorf("delete policy %q: %w", name, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(catching.Exchanges)) {
		if err := e.removeExchange(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// caught says what the queue of this change has caught; the queue itself is asked.
func (e *execution) caught(ctx context.Context) map[string]string {
	if _, catches := e.catching.Queues[e.CaughtQueue]; !catches {
		return nil
	}
	holds, err := e.client.HoldsMessage(ctx, e.Vhost, e.CaughtQueue)
	switch {
	case broker.IsNotFound(err):
		return nil
	case err != nil:
		return map[string]string{e.CaughtQueue: notAskable(err)}
	case holds:
		return map[string]string{e.CaughtQueue: "messages that were published while the bindings that they are for were away"}
	}
	return nil
}

// releasing releases after a step, and reports what was caught along with what became of the step.
func (e *execution) releasing(ctx context.Context, outcome error) error {
	caught, err := e.release(ctx)
	if outcome == nil {
		maps.Copy(e.kept, caught)
		return err
	}
	var kept *KeptError
	switch {
	case errors.As(outcome, &kept):
		maps.Copy(kept.Queues, caught)
	case len(caught) > 0:
		outcome = fmt.Errorf("%w\n%s", outcome, Describe(caught))
	}
	return errors.Join(outcome, notUndone(err))
}

// splitCaught takes the queue of what was caught out of those that go: it may be needed until they are gone.
func (c Change) splitCaught(queues map[string]topology.Queue) (caught, others map[string]topology.Queue) {
	caught, others = map[string]topology.Queue{}, maps.Clone(queues)
	if queue, goes := queues[c.CaughtQueue]; goes {
		caught[c.CaughtQueue] = queue
		delete(others, c.CaughtQueue)
	}
	return caught, others
}

// caughtFrom are the bindings of others that are away while the owner's queues are deleted.
func (c Change) caughtFrom() []topology.Binding {
	if c.Catch == nil {
		return nil
	}
	return slices.DeleteFunc(c.bindingsTo(c.Live.Queues), c.owns)
}
