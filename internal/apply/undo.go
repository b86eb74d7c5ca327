package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// rollbackTime bounds the undoing of what a failed call did, which goes on after a cancellation.
const rollbackTime = 3 * time.Minute

// journal remembers how to put back what was removed, so that a call that cannot finish leaves the
// broker as it found it.
type journal struct {
	mutex   sync.Mutex
	entries []journalEntry
}

type journalEntry struct {
	what string
	undo func(context.Context) error
}

func (j *journal) add(what string, undo func(context.Context) error) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.entries = append(j.entries, journalEntry{what, undo})
}

// rollback undoes everything, the last thing first, and returns what could not be undone.
func (j *journal) rollback(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTime)
	defer cancel()
	j.mutex.Lock()
	entries := j.entries
	j.entries = nil
	j.mutex.Unlock()
	var failed []error
	for _, entry := range slices.Backward(entries) {
		if err := entry.undo(ctx); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", entry.what, err))
		}
	}
	return errors.Join(failed...)
}

// removeMade removes what was made as Remove does, since consumers reject as soon as a policy is
// written. So all of it stays if messages would be lost: what is there can be imported, sent back and
// consumed only as long as the definition, the ways back and the policies are there.
func (e *execution) removeMade(ctx context.Context) error {
	if e.made.Empty() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTime)
	defer cancel()
	if err := e.countRejected(ctx); err != nil {
		return err
	}
	all, err := e.client.List(ctx, e.Vhost)
	if err != nil {
		return fmt.Errorf("nothing of what was made is removed again: %w", err)
	}
	removal := e.Change
	// A policy whose write was not answered may appear at any time.
	removal.All, removal.Live = all, e.made
	removal.All.Topology = topology.Merge(all.Topology, topology.Topology{Policies: e.made.Policies})
	undo := e.execution(removal)
	err = undo.remove(ctx, goOn)
	var kept *KeptError
	if errors.As(err, &kept) {
		return fmt.Errorf("all that was made stays, since removing it would lose what is in these queues:\n%w", err)
	}
	return errors.Join(append(undo.unanswered, err)...)
}

// countRejected waits until the broker counts what was rejected since the policies were written: a removal
// that begins without knowing of it unbinds the inbox, and what follows goes to the failed queue.
func (e *execution) countRejected(ctx context.Context) error {
	if len(e.made.Policies) == 0 {
		return nil
	}
	return pause(ctx, e.times.Settle)
}
