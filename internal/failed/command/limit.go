package command

import (
	"context"
	"fmt"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/pass"
)

// AMQP tells nobody but who may configure a queue whether it has a delivery limit, and nobody at all what a policy says.
// A message that is put back more often than the limit allows is deleted, or dead-lettered.
const (
	// worn is how often a message was put back when it is looked at no more.
	worn = 3
	// usualLimit is that of a quorum queue of RabbitMQ 4 that has no other one.
	usualLimit = 20
)

// approach finds out whether the queue of others may delete what is looked at.
func (s *survey) approach(ctx context.Context) error {
	if err := s.place.recognize(ctx); err != nil {
		return err
	}
	if s.place.isKept() || s.limited || s.options.force && s.place.isOfWorkQueues() {
		return nil // by force: the user says that the pipeline declares it
	}
	kind, err := s.place.Kind(ctx)
	switch {
	case err != nil:
		return err
	case kind == pass.Stream:
		return fmt.Errorf("queue %q is a stream, which keeps its messages whoever reads them: there is nothing to replay or to take out",
			s.place.Name)
	case kind == pass.Quorum && !s.options.force:
		s.limited = true
		s.terminal.say("Each look at quorum queue %q may count against its delivery limit; RabbitMQ 4 has one by default. "+
			"A policy with delivery-limit -1 ends that.", s.place.Name)
	}
	return nil
}

// cautious ends a look with an error when a message was put back too often. If it is the first one, no other was delivered.
func (s *survey) cautious(decide func(*failed.Entry) pass.Verdict, refused *error) func(*failed.Entry) pass.Verdict {
	return func(e *failed.Entry) pass.Verdict {
		if e.DeliveryCount < worn {
			return decide(e)
		}
		*refused = fmt.Errorf("a message of %q was put back %d times already, and a delivery limit, which AMQP does not tell, deletes what "+
			"is put back too often: one of %d, the default of RabbitMQ 4, leaves %d looks. Set delivery-limit to -1 in a policy (RabbitMQ 4), "+
			"and write --force%s", s.place.Name, e.DeliveryCount, usualLimit, max(0, usualLimit-e.DeliveryCount-1), s.byForce())
		return pass.Verdict{Last: true}
	}
}

// byForce says when no policy is needed.
func (s *survey) byForce() string {
	if !s.place.isOfWorkQueues() {
		return ""
	}
	return fmt.Sprintf("; --force alone is enough if pipeline %q declares the queue, as its configuration (--config) would tell",
		s.place.Pipeline)
}
