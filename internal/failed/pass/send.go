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
	out, err := openOutlet[struct{}](ctx, conn)
	if err != nil {
		amqpconn.HangUp(conn.Connection)
		return Result{}, err
	}
	defer out.close()
	r := &sender{Sending: s, out: out}
	err = r.run(ctx)
	r.result.Uncertain = len(out.outstanding)
	r.result.Interrupted = ctx.Err() != nil
	return r.result, err
}

// sender is a sending under way.
type sender struct {
	Sending
	out     *outlet[struct{}]
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
			r.result.Selected++
			r.out.publish(*r.next, struct{}{})
			err = r.advance()
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
			err = errors.Join(err, r.confirm(ok))
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

func (r *sender) advance() error {
	r.next = nil
	p, ok, err := r.Next()
	if err == nil && ok {
		r.next = &p
	}
	return err
}

func (r *sender) confirm(ok bool) error {
	if !ok {
		return r.out.unpublished(r.result.Confirmed + r.result.Returned + r.result.Refused)
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
	}
	if r.Done != nil {
		r.Done(s.Publishing, outcome)
	}
	return nil
}

func (r *sender) show() {
	if r.Progress != nil {
		r.Progress(Progress{Result: r.result, Phase: Reading, Blocked: r.blocked})
	}
}
