package amqpconn

import (
	"context"
	"fmt"
	"time"
)

// callTimeout is longer than the 65 s after which a broker itself gives up on a queue that has no
// majority of its members online, so that its answer, which says more, comes first.
const callTimeout = 70 * time.Second

// Await runs a call that takes no context. When the context or the time is up it returns without
// waiting for the call, whose late result goes to discard. Errors begin with what was called.
func Await[T any](ctx context.Context, what string, call func() (T, error), discard func(T)) (T, error) {
	type result struct {
		value T
		err   error
	}
	ctx, cancel := context.WithTimeoutCause(ctx, callTimeout, fmt.Errorf("no answer in %s", callTimeout))
	defer cancel()
	results := make(chan result, 1)
	go func() {
		value, err := call()
		results <- result{value, err}
	}()

	select {
	case r := <-results:
		if r.err != nil {
			return r.value, fmt.Errorf("%s: %w", what, r.err)
		}
		return r.value, nil
	case <-ctx.Done():
		go func() {
			if r := <-results; r.err == nil {
				discard(r.value)
			}
		}()
		var none T
		return none, fmt.Errorf("%s: %w", what, context.Cause(ctx))
	}
}
