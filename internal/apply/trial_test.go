package apply

import (
	"maps"
	"net/http"
	"regexp"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/stored"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// If the user lacks a permission on one object, a removal is refused before it deletes a binding, or does not need it.
func TestRemovalWithoutARightChangesNothing(t *testing.T) {
	t.Parallel()
	type owner interface {
		Owner() stored.Owner
		Expand() topology.Topology
		Owned(vhost topology.Topology) topology.Topology
	}
	for _, of := range []func(b *brokertest.Broker) owner{
		func(b *brokertest.Broker) owner {
			p := small(b)
			p.WorkQueues = map[string]pipeline.WorkQueue{"declared": {Type: topology.Quorum, Declare: true}}
			return p
		},
		func(b *brokertest.Broker) owner {
			second := pipeline.Delay{Wait: time.Second, Spelling: "1s"}
			return delayed.Exchange{Name: "events", Vhost: b.Vhost, Type: "topic", MaxDelay: second, Precision: second}
		},
	} {
		all := of(brokertest.WithoutVhost(t)).Expand()
		names := slices.Concat(slices.Collect(maps.Keys(all.Queues)), slices.Collect(maps.Keys(all.Exchanges)))
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			for i, right := range []string{"configure", "write", "read"} {
				t.Run(right+" on "+name, func(t *testing.T) {
					t.Parallel()
					b := brokertest.New(t)
					change := func(wanted topology.Topology) Change {
						all := list(t, newApplier(t, b, b.Endpoint), b.Vhost)
						return Change{
							Owner: of(b).Owner(), Vhost: b.Vhost, All: all, Live: of(b).Owned(all.Topology), Wanted: wanted, SharedQueues: []string{"declared"},
						}
					}
					require.NoError(t, newApplier(t, b, b.Endpoint).Create(t.Context(), change(of(b).Expand())))
					permissions := []string{".*", ".*", ".*"}
					permissions[i] = "^(?!" + regexp.QuoteMeta(name) + "$)"
					user, password := b.User(t, "policymaker", permissions[0], permissions[1], permissions[2])
					var deletes atomic.Bool
					a := applierAs(t, b.Before(t, func(r *http.Request) {
						if r.Method == http.MethodDelete {
							deletes.Store(true)
						}
					}), user, password)
					removal := change(topology.Topology{})
					err := a.Remove(t.Context(), removal)
					now := list(t, newApplier(t, b, b.Endpoint), b.Vhost).Topology
					if err == nil {
						require.True(t, of(b).Owned(now).Empty())
						return
					}
					require.ErrorContains(t, err, right+" on ")
					require.ErrorContains(t, err, `"`+name+`"`)
					require.False(t, deletes.Load())
					requireSame(t, removal.All.Topology, now)
				})
			}
		}
	}
}
