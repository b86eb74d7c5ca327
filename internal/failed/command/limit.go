package command

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/pass"
)

// AMQP tells nobody but who may configure a queue whether it has a delivery limit, and nobody at all what a policy says.
// A message that is put back more often than the limit allows is deleted, or dead-lettered.
const (
	// worn is how often a message was delivered when it is looked at no more.
	worn = 3
	// spent is how often one was that is not put back by a pass which acts: such a pass reads the queue twice.
	spent = worn - 1
)

// approach finds out whether the queue of others may delete what is looked at, and whether that can be prevented.
func (s *survey) approach(ctx context.Context) error {
	if err := s.place.recognize(ctx); err != nil {
		return err
	}
	if s.place.isKept() || s.limited || s.force && s.place.isOfWorkQueues() {
		return nil // by force: the user says that the pipeline declares it
	}
	kind, err := s.place.Kind(ctx)
	switch {
	case err != nil:
		return err
	case kind == pass.Stream:
		return fmt.Errorf("queue %q is a stream, which keeps its messages whoever reads them: there is nothing to replay or to take out",
			s.place.Name)
	case kind != pass.Quorum:
		return nil
	}
	s.limited = true
	if s.force {
		return nil
	}
	s.console.Say("Each look at quorum queue %q may count against its delivery limit; RabbitMQ 4 has one by default. "+
		"A policy with delivery-limit -1 ends that.", s.place.Name)
	return s.mayRescue(ctx)
}

// mayRescue is an error if a message could not be copied before the queue deletes it.
func (s *survey) mayRescue(ctx context.Context) error {
	published, returned := false, false
	_, err := pass.Send(ctx, s.place.Queue, pass.Sending{
		Next: func() (failed.Publishing, bool, error) {
			first := !published
			published = true
			// To a queue that does not exist: the broker checks the permission, and returns it.
			return failed.Publishing{RoutingKey: "rabbitmq-retry-" + rand.Text(), Properties: []byte{0, 0}}, first, nil
		},
		Done: func(_ failed.Publishing, o pass.Outcome) { returned = o == pass.Returned },
	})
	if err == nil && !returned {
		err = errors.New("the broker took a message for a queue that does not exist")
	}
	if err != nil {
		return fmt.Errorf("a look could delete messages of %q, which may have a delivery limit; needs: write on \"amq.default\" "+
			"to save them, or write --force%s (%w)", s.place.Name, s.byForce(), err)
	}
	return nil
}

// byForce says what --force does, or when it is safe.
func (s *survey) byForce() string {
	if !s.place.isOfWorkQueues() {
		return ", which replaces by copies what could be deleted"
	}
	return fmt.Sprintf(" if pipeline %q declares it, as its configuration (--config) would tell", s.place.Pipeline)
}

// cautious ends a look with an error when the first message was put back too often. No other was delivered then.
func (s *survey) cautious(decide func(*failed.Entry) pass.Verdict, refused *error) func(*failed.Entry) pass.Verdict {
	first := true
	decide = s.spare(decide, worn)
	return func(e *failed.Entry) pass.Verdict {
		last := first && e.DeliveryCount >= worn && !s.force
		first = false
		verdict := decide(e)
		if verdict.Last = last; last {
			*refused = fmt.Errorf("a message of %q was put back %s already, and a delivery limit, which cannot be seen from here, deletes "+
				"what is put back too often: set delivery-limit to -1 in a policy (RabbitMQ 4), or write --force%s",
				s.place.Name, times(e.DeliveryCount), s.byForce())
		}
		return verdict
	}
}

// spare replaces what a queue with a delivery limit could delete by a copy, which is counted from the beginning.
func (s *survey) spare(decide func(*failed.Entry) pass.Verdict, from int64) func(*failed.Entry) pass.Verdict {
	if !s.limited {
		return decide
	}
	return func(e *failed.Entry) pass.Verdict {
		verdict := decide(e)
		if verdict.Publish != nil || verdict.Drop || e.DeliveryCount < from {
			return verdict
		}
		how := failed.Import{Queue: s.place.Name, User: s.place.user, FrameMax: s.place.frameMax}
		// What does not fit a frame can only be put back.
		if copied, _, err := how.Publishing(e.Message, e.ID); err == nil {
			verdict.Publish = &copied
		}
		return verdict
	}
}
