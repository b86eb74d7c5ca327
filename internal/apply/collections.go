package apply

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"
)

func has[T any](objects map[string]T, name string) bool {
	_, exists := objects[name]
	return exists
}

// sorted yields objects in the order of their names.
func sorted[T any](objects map[string]T) iter.Seq2[string, T] {
	return func(yield func(string, T) bool) {
		for _, name := range slices.Sorted(maps.Keys(objects)) {
			if !yield(name, objects[name]) {
				return
			}
		}
	}
}

// only returns the objects that a condition is true for.
func only[T any](objects []T, is func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(objects), func(object T) bool { return !is(object) })
}

// without returns the objects whose names are not in the other map.
func without[M ~map[string]T, T, Other any](objects M, names map[string]Other) M {
	rest := maps.Clone(objects)
	maps.DeleteFunc(rest, func(name string, _ T) bool { return has(names, name) })
	return rest
}

// within returns the objects whose names are in the other map.
func within[M ~map[string]T, T, Other any](objects M, names map[string]Other) M {
	return without(objects, without(objects, names))
}

// divide divides objects into those that a condition is true for, and all others.
func divide[T any](objects map[string]T, is func(name string, object T) bool) (those, others map[string]T) {
	others = maps.Clone(objects)
	maps.DeleteFunc(others, is)
	return without(objects, others), others
}

func each[T any](ctx context.Context, objects []T, call func(context.Context, T) error) error {
	for _, object := range objects {
		if err := call(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

// writesAtOnce limits the parallel writes of one change.
const writesAtOnce = 8

// forEachParallel calls a function for each object, several at once. After a failure it waits for running calls,
// because their results must be known, and starts no others.
func forEachParallel[T any](ctx context.Context, objects []T, call func(context.Context, T) error) error {
	group, failed := errgroup.WithContext(context.WithoutCancel(ctx))
	group.SetLimit(writesAtOnce)
	failures := make([]error, len(objects))
	for i, object := range objects {
		group.Go(func() error {
			if failed.Err() == nil {
				failures[i] = call(ctx, object)
			}
			return failures[i]
		})
	}
	_ = group.Wait() // failures has the errors
	return errors.Join(failures...)
}
