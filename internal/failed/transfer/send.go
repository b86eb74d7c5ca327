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
func Send(ctx context.Context, queue Queue, s Sending) (Result, error) {
	r := &sender{Sending: s}
	out, err := openPublisher(ctx, queue, &r.result, s.Done)
	if err != nil {
		return Result{}, err
	}
	defer out.close()
	r.out = out
	err = out.uncertain(r.run(ctx))
	r.result.Interrupted = ctx.Err() != nil
	return r.result, err
}

// sender is a sending under way.
type sender struct {
	Sending
	out    *publisher
	result Result
	// next is to be published, nil if there is nothing more.
	next *failed.Publishing
}

func (r *sender) run(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	err := r.advance()
	var deadline <-chan time.Time
	stopped := ctx.Done()
	for err == nil && (r.next != nil || len(r.out.outstanding) > 0) {
		if r.next != nil && !r.out.full() {
			err = r.publish()
			select {
			case <-stopped: // is looked at below, before more is published
			default:
				if !r.out.full() {
					continue
				}
			}
		}
		select {
		case _, ok := <-r.out.confirms:
			_, _, unpublished := r.out.confirm(context.WithoutCancel(ctx), ok)
			err = errors.Join(err, unpublished)
		case b, ok := <-r.out.alarms:
			r.out.alarm(b, ok)
			r.show()
		case <-tick.C:
			r.show()
		case <-stopped:
			stopped, r.next, deadline = nil, nil, time.After(lastConfirms)
		case <-deadline:
			return errUnconfirmed
		}
	}
	return err
}

// publish publishes the next message, unless it is known that the broker does not take it.
func (r *sender) publish() error {
	r.result.Selected++
	if r.out.exceeds(len(r.next.Body)) {
		r.out.tooLarge(*r.next, selected{})
	} else {
		r.out.publish(*r.next, selected{})
	}
	return r.advance()
}

func (r *sender) advance() error {
	r.next = nil
	p, ok, err := r.Next()
	if err == nil && ok {
		r.next = &p
	}
	return err
}

func (r *sender) show() {
	if r.Progress != nil {
		r.Progress(Progress{Result: r.result, Phase: Reading, Blocked: r.out.blocked})
	}
}
