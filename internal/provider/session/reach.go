package session

import (
	"context"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
)

// Reach asks the broker who the provider's user is, once in an operation and when it is first needed: what needs no broker
// works without one. It needs a client.
func (s *Session) Reach(ctx context.Context) (broker.User, error) {
	return s.reach(ctx, func(error) bool { return false })
}

// ReachForWrite is Reach for an apply, which asks again after a failure: what came before it in the apply can have started
// the broker.
func (s *Session) ReachForWrite(ctx context.Context) (broker.User, error) {
	return s.reach(ctx, func(err error) bool { return err != nil })
}

func (s *Session) reach(ctx context.Context, again func(error) bool) (broker.User, error) {
	s.mutex.Lock()
	of := s.operation
	s.mutex.Unlock()
	select {
	case of.reaching <- struct{}{}:
		defer func() { <-of.reaching }()
	case <-ctx.Done():
		return broker.User{}, context.Cause(ctx)
	}
	if of.reached == nil || again(of.reached.err) {
		user, err := s.Client.User(ctx)
		of.reached = &reached{user, err}
	}
	return of.reached.user, of.reached.err
}
