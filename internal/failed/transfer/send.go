package transfer

import (
	"context"
	"errors"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
)

// Sending is what is published that comes from no queue.
type Sending struct {
	// Next is the next message; false if there is none.
	Next func() (p failed.Publishing, ok bool, err error)
	// Done is told the outcome of each, in their order; nil for nobody.
	Done func(p failed.Publishing, o Outcome)
	// Progress is told every second how far it is; nil for nobody.
	Progress func(Progress)
}

// Send publishes. The result is that of what was done, also with an error.
func Send(ctx context.Context, queue Queue, s Sending) (result Result, err error) {
	out, err := openPublisher(ctx, queue, &result, s.Done)
	if err != nil {
		return Result{}, err
	}
	defer out.close()
	err = out.uncertain(s.run(ctx, out))
	result.Interrupted = ctx.Err() != nil
	return result, err
}

func (s Sending) run(ctx context.Context, out *publisher) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	next, more, err := s.Next()
	var deadline <-chan time.Time
	stopped := ctx.Done()
	for err == nil && (more || len(out.outstanding) > 0) {
		if more && !out.full() {
			out.result.Selected++
			out.publish(next, selected{})
			next, more, err = s.Next()
			select {
			case <-stopped: // is looked at below, before more is published
			default:
				if !out.full() {
					continue
				}
			}
		}
		select {
		case _, ok := <-out.confirms:
			_, _, unpublished := out.confirm(context.WithoutCancel(ctx), ok)
			err = errors.Join(err, unpublished)
		case b, ok := <-out.alarms:
			out.alarm(b, ok)
			s.show(out)
		case <-tick.C:
			s.show(out)
		case <-stopped:
			stopped, more, deadline = nil, false, time.After(lastConfirms)
		case <-deadline:
			return errUnconfirmed
		}
	}
	return err
}

func (s Sending) show(out *publisher) {
	if s.Progress != nil {
		s.Progress(Progress{Result: *out.result, Phase: Reading, Blocked: out.blocked})
	}
}
