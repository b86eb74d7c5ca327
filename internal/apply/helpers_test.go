package apply

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

func applierThrough(t *testing.T, b *brokertest.Broker, fault brokertest.Fault) *Applier {
	t.Helper()
	a := newApplier(t, b, b.Through(t, fault))
	a.times.Patience = 2 * time.Second
	return a
}

func newApplier(t *testing.T, b *brokertest.Broker, endpoint string) *Applier {
	t.Helper()
	return applierAs(t, endpoint, b.Username, b.Password)
}

// withoutLag returns an applier for a management API whose counts never lag.
func withoutLag(a *Applier) *Applier {
	a.times = Times{
		Settle: 100 * time.Millisecond, Stale: 2 * time.Second, Between: 100 * time.Millisecond,
		Report: brokertest.Slow(time.Second), Poll: 10 * time.Millisecond, Patience: time.Second,
	}
	return a
}

// quickApplier returns an applier for tests without moving messages.
func quickApplier(t *testing.T, b *brokertest.Broker, endpoint string) *Applier {
	t.Helper()
	a := newApplier(t, b, endpoint)
	a.times.Settle, a.times.Between, a.times.Patience = 50*time.Millisecond, 50*time.Millisecond, time.Second
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

// created returns the small pipeline, which is on the broker.
func created(t *testing.T, b *brokertest.Broker) pipeline.Pipeline {
	t.Helper()
	p := small(b)
	require.NoError(t, create(t, newApplier(t, b, b.Endpoint), p))
	return p
}

func create(t *testing.T, a *Applier, p pipeline.Pipeline) error {
	t.Helper()
	return a.Create(t.Context(), creation(t, a, p))
}

// creation returns the change that creates the pipeline, except for existing objects.
func creation(t *testing.T, a *Applier, p pipeline.Pipeline) Change {
	t.Helper()
	return changeTo(t, a, p, &p)
}

// declaring returns a pipeline that declares a queue.
func declaring(t *testing.T, b *brokertest.Broker) pipeline.Pipeline {
	t.Helper()
	p := small(b)
	p.WorkQueues = map[string]pipeline.WorkQueue{"declared": {Type: topology.Quorum, Declare: true}}
	require.NoError(t, create(t, newApplier(t, b, b.Endpoint), p))
	return p
}

// changeTo returns the change from a live pipeline to the wanted one. If wanted is nil, it removes the pipeline.
func changeTo(t *testing.T, a *Applier, p pipeline.Pipeline, wanted *pipeline.Pipeline) Change {
	t.Helper()
	all := list(t, a, p.Vhost)
	c := Change{Owner: p.Owner(), Vhost: p.Vhost, All: all, Live: p.Owned(all.Topology), SharedQueues: []string{"declared"}}
	if wanted != nil {
		c.Wanted = wanted.Expand()
	}
	return c
}

func bindings(t *testing.T, a *Applier, vhost string) string {
	t.Helper()
	var lines []string
	for _, binding := range list(t, a, vhost).Bindings {
		lines = append(lines, binding.String())
	}
	return strings.Join(lines, "\n")
}

// update restores the pipeline, checks that no difference remains, and returns the bindings.
func update(t *testing.T, a *Applier, p pipeline.Pipeline) string {
	t.Helper()
	_, err := a.Update(t.Context(), changeTo(t, a, p, &p))
	require.NoError(t, err)
	requireLive(t, a, p, p.Expand())
	return bindings(t, a, p.Vhost)
}

// requireSame fails the test unless both have the same objects.
func requireSame(t *testing.T, want, got topology.Topology) {
	t.Helper()
	changes := topology.Diff(want, got)
	require.Truef(t, changes.Empty(), "different: %+v", changes)
}

// requireLive fails the test unless the broker has exactly these objects of the pipeline.
func requireLive(t *testing.T, a *Applier, p pipeline.Pipeline, want topology.Topology) {
	t.Helper()
	requireSame(t, want, p.Owned(list(t, a, p.Vhost).Topology))
}
