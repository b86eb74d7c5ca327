package pass

import (
	"context"
	"errors"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
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
	if !r.lost {
		err = errors.Join(err, r.drop())
	}
	if r.lost {
		r.abandon()
		return err
	}
	if !r.acked.IsZero() {
		time.Sleep(time.Until(r.acked.Add(lastAcks)))
	}
	return errors.Join(err, r.end(ctx))
}

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
			// Not looked at, but counted: it will have been delivered before.
			r.note(a, failed.Digest(a.Message))
		case err := <-r.in.broken:
			_ = r.brokenBy(err) // what was published is what counts now
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
