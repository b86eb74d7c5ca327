package apply

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

func applierThrough(t *testing.T, b *brokertest.Broker, fault brokertest.Fault) *Applier {
	t.Helper()
	return newApplier(t, b, b.Through(t, fault))
}

func newApplier(t *testing.T, b *brokertest.Broker, endpoint string) *Applier {
	t.Helper()
	return applierAs(t, endpoint, b.Username, b.Password)
}

// applierOf changes a management API that is none of RabbitMQ's, and whose counts never lag.
func applierOf(t *testing.T, endpoint string) *Applier {
	t.Helper()
	a := applierAs(t, endpoint, "guest", "guest")
	a.times = Times{
		Settle: 100 * time.Millisecond, Stale: 2 * time.Second, Between: 100 * time.Millisecond,
		Report: time.Second, Poll: 10 * time.Millisecond,
	}
	return a
}

func applierAs(t *testing.T, endpoint, username, password string) *Applier {
	t.Helper()
	client, err := broker.New(broker.Config{Endpoint: endpoint, Username: username, Password: password})
	require.NoError(t, err)
	return New(client, TimesFor(brokertest.Statistics()))
}

func list(t *testing.T, a *Applier, vhost string) topology.Vhost {
	t.Helper()
	all, err := a.client.List(t.Context(), vhost)
	require.NoError(t, err)
	return all
}

func small(b *brokertest.Broker) pipeline.Pipeline {
	return pipeline.Pipeline{
		Name: "orders", Vhost: b.Vhost, MaxAttempts: 2, RetryOn: []string{"rejected"}, QueueType: topology.Quorum,
		Delays: []pipeline.Delay{{Wait: time.Second, Spelling: "1s"}},
	}
}

func create(t *testing.T, a *Applier, p pipeline.Pipeline) error {
	t.Helper()
	return a.Create(t.Context(), creation(t, a, p))
}

func creation(t *testing.T, a *Applier, p pipeline.Pipeline) Change {
	t.Helper()
	all := list(t, a, p.Vhost)
	return Change{Vhost: p.Vhost, All: all, Live: pipeline.Owned(p, all.Topology), Wanted: pipeline.Expand(p), Identity: pipeline.Identity(p)}
}
