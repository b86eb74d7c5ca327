package apply

import (
	"context"
	"errors"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// writesAtOnce is how many writes of one change are in flight.
const writesAtOnce = 8

// forEachParallel calls with each of the objects, several at once. After a failure nothing more is
// begun; what was begun is finished, since its outcome must be known.
func forEachParallel[T any](ctx context.Context, objects []T, call func(context.Context, T) error) error {
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
