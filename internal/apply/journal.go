package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// rollbackTime bounds the undoing of what a failed call did, which goes on after a cancellation.
const rollbackTime = 3 * time.Minute

// journal remembers how to undo what was done, so that a call that cannot finish leaves the broker
// as it found it.
type journal struct {
	mutex sync.Mutex
	steps []undoStep
}

type undoStep struct {
	what string
	do   func(context.Context) error
}

func (j *journal) add(what string, do func(context.Context) error) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.steps = append(j.steps, undoStep{what, do})
}

// rollback undoes everything, the last thing first, and returns what could not be undone.
func (j *journal) rollback(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTime)
	defer cancel()
	j.mutex.Lock()
	steps := j.steps
	j.steps = nil
	j.mutex.Unlock()
	var failed []error
	for _, step := range slices.Backward(steps) {
		if err := step.do(ctx); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", step.what, err))
		}
	}
	return errors.Join(failed...)
}
