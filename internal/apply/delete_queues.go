package apply

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// removeIfEmpty deletes the queues of a step that are proved to be empty. A queue that is not is bound
// again and kept; if the step refuses, a single one keeps all of them, which is a *KeptError. Those that go together or not at
// all are tried again while there is time to drain.
func (e *execution) removeIfEmpty(ctx context.Context, s step) error {
	kept, err := e.removeEmpty(ctx, s)
	for s.ifFails == keepAll && err == nil && len(kept) > 0 && time.Now().Before(e.drainUntil) {
		kept, err = e.removeEmpty(ctx, s)
	}
	if err == nil && len(kept) > 0 && s.ifFails == refuse {
		return &KeptError{Queues: kept}
	}
	switch {
	case s.ifFails == keepAll && len(kept) > 0:
		for name := range without(s.queues, kept) {
			e.kept[name] = "it stays as long as the others do: messages pass from one to the next"
		}
		fallthrough
	case s.ifFails == keep:
		maps.Copy(e.kept, kept)
	}
	return err
}

// allOrNone reports whether one queue that is not proved to be empty keeps all of them.
func (s step) allOrNone() bool { return s.ifFails == refuse || s.ifFails == keepAll }

// removeEmpty says of each queue that it keeps what speaks against deleting it. Queues in which
// messages are visible are not even unbound, unless they have time to drain: then all of them are
// unbound at once, and the sidecar, which learns of the new schedule only after the change, uses another
// delay meanwhile.
func (e *execution) removeEmpty(ctx context.Context, s step) (map[string]string, error) {
	unbound := map[string]topology.Queue{}
	if s.ifFails == keep && e.Drain > 0 {
		maps.Copy(unbound, s.queues)
	}
	if err := e.unbindAll(ctx, s.bindings, unbound); err != nil {
		return nil, errors.Join(err, e.bindAgain(ctx, s.bindings, unbound))
	}
	kept, err := e.lastingContents(ctx, s.checks)
	if s.ifFails == keepAll && err == nil && len(kept) == 0 {
		// A message may have left one queue and not be counted in the next one yet: unbound, that would hold it for minutes.
		if err = pause(ctx, e.times.Lag); err == nil {
			kept, _, err = e.visible(ctx, e.Vhost, s.checks)
		}
	}
	candidates := without(s.queues, kept)
	if err != nil || len(candidates) == 0 || len(kept) > 0 && s.allOrNone() {
		return kept, errors.Join(err, e.bindAgain(ctx, s.bindings, unbound))
	}
	maps.Copy(unbound, candidates)
	s.checks = s.checks.without(kept)
	against, err := e.removeUnbound(ctx, s, candidates, unbound)
	maps.Copy(kept, against)
	return kept, errors.Join(err, e.bindAgain(ctx, s.bindings, unbound))
}

// removeUnbound removes every binding to the candidates, so that nothing arrives between the proof
// and the deletion, proves that they are empty and deletes them. It takes those that it deleted out of
// remaining.
func (e *execution) removeUnbound(ctx context.Context, s step, candidates, remaining map[string]topology.Queue) (map[string]string, error) {
	if err := e.unbindAll(ctx, s.bindings, candidates); err != nil {
		return nil, err
	}
	against, err := e.settleAndProve(ctx, s.checks, s.allOrNone())
	if err != nil || len(against) > 0 && s.allOrNone() {
		return against, err
	}
	holding, err := e.answers(ctx, without(candidates, against))
	if err != nil && s.ifFails == refuse {
		return nil, err
	}
	maps.Copy(against, holding)
	if len(against) > 0 && s.allOrNone() {
		return against, nil
	}
	empty := without(candidates, against)
	if err := e.requireUnbound(ctx, topology.Topology{Queues: empty}); err != nil {
		return nil, err
	}
	var failed []error
	for _, name := range slices.Sorted(maps.Keys(empty)) {
		if err := e.removeQueue(ctx, name, candidates[name], s.do == replace); err != nil {
			failed = append(failed, err)
			continue
		}
		delete(remaining, name)
	}
	return against, errors.Join(failed...)
}

// unbindAll removes those of the bindings that lead to the queues.
func (e *execution) unbindAll(ctx context.Context, bindings []topology.Binding, queues map[string]topology.Queue) error {
	return each(ctx, bindings, func(ctx context.Context, b topology.Binding) error {
		if !leadsTo(b, queues) {
			return nil
		}
		return e.removeBinding(ctx, b)
	})
}

// bindAgain gives queues that are still there their bindings back, whatever went wrong.
func (e *execution) bindAgain(ctx context.Context, bindings []topology.Binding, queues map[string]topology.Queue) error {
	lost := slices.DeleteFunc(slices.Clone(bindings), func(b topology.Binding) bool { return !leadsTo(b, queues) })
	return notUndone(e.rebind(context.WithoutCancel(ctx), lost))
}
