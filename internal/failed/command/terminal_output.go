package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"
)

// output writes to stdout for as long as the context lasts, also if nobody reads it. After an error nothing more may be
// written.
type output struct {
	Context context.Context //nolint:containedctx // a writer has no other way to get one
	To      io.Writer
}

// Write is an [io.Writer].
func (o output) Write(data []byte) (int, error) {
	type result struct {
		n   int
		err error
	}
	done := make(chan result, 1)
	go func() {
		n, err := o.To.Write(data)
		done <- result{n, err}
	}()
	select {
	case r := <-done:
		if errors.Is(r.err, syscall.EPIPE) {
			r.err = fmt.Errorf("whoever read the output has ended before all of it was written (%w)", r.err)
		}
		return r.n, r.err
	case <-o.Context.Done():
		return 0, errors.New("stopped before all of the output was read")
	}
}
