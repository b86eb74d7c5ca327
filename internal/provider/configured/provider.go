// Package configured holds the state of one configured provider while Terraform runs it.
package configured

import (
	"cmp"
	"context"
	"runtime/debug"
	"sync"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/apply"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/nearby"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Provider is made by Configure and lives as long as the provider's process, which can serve many operations. Its memory of
// an operation serves only reads and plans. Writes ask the broker again, with Fresh.
type Provider struct {
	// Client is nil while the provider's configuration is not known yet.
	Client *broker.Client
	// Applier changes the objects that Client reads.
	Applier *apply.Applier

	mutex     sync.Mutex
	operation *operation
	underWay  int
	ended     int // calls that have ended
	waiting   int // calls in AwaitAnother
	fresh     map[string]*freshListings
	turns     map[any]*Turn
	fates     map[Key]Fate
	// list asks the broker.
	list lister
}

// New makes a provider for the client, which does not connect yet. Times are the applier's times.
func New(client *broker.Client, times apply.Times) *Provider {
	return &Provider{
		Client: client, Applier: apply.New(client, times), list: sparing(client.List),
		operation: newOperation(), fresh: map[string]*freshListings{},
		turns: map[any]*Turn{}, fates: map[Key]Fate{},
	}
}

// lister reads a vhost.
type lister func(ctx context.Context, vhost string) (topology.Vhost, error)

// sparing collects garbage as often as is usual once a vhost is large. Collections of a small heap are rare, see main.
func sparing(list lister) lister {
	const large = 10_000
	return func(ctx context.Context, vhost string) (topology.Vhost, error) {
		all, err := list(ctx, vhost)
		if len(all.Queues)+len(all.Bindings) > large {
			debug.SetGCPercent(100)
		}
		return all, err
	}
}

// Unconnected makes a provider whose configuration is not known yet.
func Unconnected() *Provider { return New(nil, apply.DefaultTimes()) }

// Configured reports whether the provider's configuration is known.
func (s *Provider) Configured() bool { return s.Client != nil }

// listing is a vhost, or the error that there is none.
type listing struct {
	vhost   topology.Vhost
	index   func() *nearby.Index
	missing error
}

// Listed is a whole vhost, which is read once per operation. Callers share the result and must not change it.
func (s *Provider) Listed(ctx context.Context, vhost string) (topology.Vhost, error) {
	l, err := s.listed(ctx, vhost)
	return l.vhost, err
}

// Near is the part of a listed vhost that can matter to a center, see [nearby.Index.Near].
func (s *Provider) Near(ctx context.Context, vhost string, center nearby.Center) (topology.Vhost, error) {
	l, err := s.listed(ctx, vhost)
	if err != nil {
		return l.vhost, err
	}
	return l.index().Near(center), nil
}

func (s *Provider) listed(ctx context.Context, vhost string) (listing, error) {
	l, err := Once(ctx, s, "listing "+vhost, func(ctx context.Context) (listing, error) {
		all, err := s.list(ctx, vhost)
		if broker.IsNotFound(err) {
			return listing{vhost: all, missing: err}, nil // also remembered
		}
		return listing{vhost: all, index: sync.OnceValue(func() *nearby.Index { return nearby.NewIndex(all) })}, err
	})
	return l, cmp.Or(err, l.missing)
}

// Reach asks the broker for the provider's user, once per operation and on first use, so that plans that need no broker work
// without one. It needs a client.
func (s *Provider) Reach(ctx context.Context) (broker.User, error) {
	failed, _ := Once(ctx, s, "unreached", func(ctx context.Context) (error, error) {
		_, err := s.ReachForWrite(ctx)
		return err, nil
	})
	if failed != nil {
		return broker.User{}, failed
	}
	return s.ReachForWrite(ctx)
}

// ReachForWrite is Reach for an apply. It asks again after a failure, since an earlier step of the apply can have started the
// broker.
func (s *Provider) ReachForWrite(ctx context.Context) (broker.User, error) {
	return Once(ctx, s, Lasting+"user", s.Client.User)
}
