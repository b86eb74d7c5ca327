package pass

import (
	"context"
	"errors"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Codes with which a broker closes a channel.
const (
	accessRefused      = amqp.AccessRefused
	notFound           = amqp.NotFound
	preconditionFailed = amqp.PreconditionFailed
)

func isCode(err error, code int) bool {
	var reason *amqp.Error
	return errors.As(err, &reason) && reason.Code == code
}

// finish ends a round in good order: what was published is confirmed and acknowledged, everything else is put
// back.
func (r *run) finish(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	r.show(Finishing)
	err := r.takeConfirms(ctx)
	if r.lost == nil {
		err = errors.Join(err, r.drop())
	}
	ended := r.end(ctx)
	r.result.Unverified = ended != nil && r.acknowledged() > 0
	return errors.Join(err, ended)
}

func (r *run) acknowledged() int { return r.result.Confirmed + r.result.Dropped }

// takeConfirms waits for the broker's answers, for a while.
func (r *run) takeConfirms(ctx context.Context) error {
	deadline := time.NewTimer(lastConfirms)
	defer deadline.Stop()
	for len(r.out.outstanding) > 0 {
		select {
		case _, ok := <-r.out.confirms:
			if err := r.confirm(ctx, ok); err != nil {
				return r.uncertain(err)
			}
		case a := <-r.in.arriving:
			r.in.conn.Release(a.size()) // not looked at
			r.held++
		case err := <-r.in.broken:
			r.lost = fmt.Errorf("queue %q: %w", r.queue.Name, err) // what was published is what counts now
		case l := <-r.in.opened:
			r.in.widened(l)
		case <-deadline.C:
			return r.uncertain(errUnconfirmed)
		}
	}
	return nil
}

// uncertain gives up what has no answer.
func (r *run) uncertain(err error) error {
	r.out.forgetUnsent()
	r.result.Uncertain += len(r.out.outstanding)
	r.out.outstanding, r.out.flying, r.out.bytes = nil, 0, 0
	return err
}
