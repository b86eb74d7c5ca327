package pass

import (
	"context"
	"errors"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
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
	conn, err := queue.Open(ctx, "publish")
	if err != nil {
		return Result{}, err
	}
	out, err := openOutlet(ctx, conn)
	if err != nil {
		amqpconn.HangUp(conn.Connection)
		return Result{}, err
	}
	defer out.close()
	r := &sender{Sending: s, out: out}
	err = r.run(ctx)
	out.forgetUnsent()
	r.result.Uncertain = len(out.outstanding)
	r.result.Interrupted = ctx.Err() != nil
	return r.result, err
}

// sender is a sending under way.
type sender struct {
	Sending
	out     *outlet
	result  Result
	blocked string
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
		if r.next != nil && !r.out.full() && r.blocked == "" {
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
			err = errors.Join(err, r.confirm(context.WithoutCancel(ctx), ok))
		case b, ok := <-r.out.blocked:
			if r.blocked = b.Reason; !ok {
				r.out.blocked, r.blocked = nil, ""
			}
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
		r.oversized(*r.next)
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

// oversized leaves a message that the broker does not take.
func (r *sender) oversized(p failed.Publishing) {
	r.result.Oversized = append(r.result.Oversized, Oversized{Size: len(p.Body), Max: r.out.max, Line: p.Line})
	r.done(p, TooLarge)
}

func (r *sender) done(p failed.Publishing, o Outcome) {
	if r.Done != nil {
		r.Done(p, o)
	}
}

func (r *sender) confirm(ctx context.Context, ok bool) error {
	if !ok {
		s, reason := r.out.oversized(ctx)
		if s == nil {
			return r.out.unpublished(r.result.Confirmed+r.result.Returned+r.result.Refused, reason)
		}
		r.oversized(s.Publishing)
		r.out.proceed()
		return nil
	}
	s, outcome, err := r.out.settle()
	if err != nil {
		return err
	}
	switch outcome {
	case Confirmed:
		r.result.Confirmed++
	case Returned:
		r.result.Returned++
	case Refused:
		r.result.Refused++
	case TooLarge: // the broker has no answer to it
	}
	r.done(s.Publishing, outcome)
	return nil
}

func (r *sender) show() {
	if r.Progress != nil {
		r.Progress(Progress{Result: r.result, Phase: Reading, Blocked: r.blocked})
	}
}
