package transfer

import (
	"context"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
)

// Sending describes messages to publish that do not come from a queue.
type Sending struct {
	// Next returns the next message, and false after the last one.
	Next func() (p failed.Publishing, ok bool, err error)
	// Done learns of each publish, in order, whether the message is in a queue; it can be nil.
	Done func(p failed.Publishing, confirmed bool)
	// Progress is called every second; it can be nil.
	Progress func(Progress)
}

// Send publishes the messages. The result counts the finished work even if there is an error.
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
		if more && !out.full() && ctx.Err() == nil {
			out.result.Selected++
			out.publish(next, selected{})
			next, more, err = s.Next()
			continue
		}
		select {
		case _, ok := <-out.confirms:
			_, _, err = out.confirm(context.WithoutCancel(ctx), ok)
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
