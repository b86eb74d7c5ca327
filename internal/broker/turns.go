package broker

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

const (
	// requestsAtOnce is how many requests a client has in flight, each on a connection that is kept. The
	// others wait here, where no timeout runs.
	requestsAtOnce = 10
	// policyWritesAtOnce is how many of them write policies. A broker matches all policies of the vhost
	// against all of its queues at each, one write after another or nearly so: with ten in flight each
	// takes ten times as long, up to where it is not answered in time.
	policyWritesAtOnce = 2
	// writesAtOnce is how many writes of one change are in flight.
	writesAtOnce = 8
)

// errNotSent is a request that was given up before it was sent.
var errNotSent = errors.New("not sent")

// turns lets a number of callers in at once. The others wait in the order in which they came.
type turns chan struct{}

func (t turns) take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", errNotSent, context.Cause(ctx))
	}
}

func (t turns) give() { <-t }

// sideBySide calls with each of the objects, several at once. After a failure nothing more is begun;
// what was begun is finished, since its outcome must be known.
func sideBySide[T any](ctx context.Context, objects []T, call func(context.Context, T) error) error {
	var group errgroup.Group
	group.SetLimit(writesAtOnce)
	var failed atomic.Bool
	failures := make([]error, len(objects))
	for i, object := range objects {
		group.Go(func() error {
			if failed.Load() {
				return nil
			}
			failures[i] = call(ctx, object)
			if failures[i] != nil {
				failed.Store(true)
			}
			return nil
		})
	}
	_ = group.Wait() // each failure is at its place
	return errors.Join(failures...)
}
