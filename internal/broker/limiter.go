package broker

import (
	"context"
	"errors"
	"fmt"
)

const (
	// requestsAtOnce is how many requests a client has in flight, each on a connection that is kept. The
	// others wait here, where no timeout runs.
	requestsAtOnce = 10
	// policyWritesAtOnce is how many of them write policies. A broker matches all policies of the vhost
	// against all of its queues at each, one write after another or nearly so: with ten in flight each
	// takes ten times as long, up to where it is not answered in time.
	policyWritesAtOnce = 2
)

// errNotSent is a request that was given up before it was sent.
var errNotSent = errors.New("not sent")

// limiter admits a number of callers at once. The others wait in the order in which they came.
type limiter chan struct{}

func (t limiter) acquire(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", errNotSent, context.Cause(ctx))
	}
}

func (t limiter) release() { <-t }
