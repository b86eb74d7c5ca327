package plain_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

// requests are the requests that a broker got.
type requests struct {
	mutex  sync.Mutex
	reads  []string
	writes int
}

func (c *requests) endpoint(t *testing.T, b *brokertest.Broker) string {
	t.Helper()
	return b.Before(t, func(r *http.Request) {
		c.mutex.Lock()
		defer c.mutex.Unlock()
		if r.Method == http.MethodGet {
			c.reads = append(c.reads, r.URL.Path)
		} else {
			c.writes++
		}
	})
}

// take returns the numbers since it was last called.
func (c *requests) take() (reads []string, writes int) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	reads, writes = c.reads, c.writes
	c.reads, c.writes = nil, 0
	slices.Sort(reads)
	return reads, writes
}

// many are exchanges, queues, bindings and policies of a vhost, n of each. Those of a group need the groups before it.
func many(vhost, endpoint string, n int) [][]*acctest.Core {
	core := func(kind string, config map[string]any) *acctest.Core {
		config["vhost"] = vhost
		return &acctest.Core{Type: "rabbitmq_" + kind, Config: config, Times: acctest.Quick(), Endpoint: endpoint}
	}
	groups := make([][]*acctest.Core, 2)
	for i := range n {
		name := fmt.Sprintf("orders.%d", i)
		groups[0] = append(groups[0],
			core("exchange", map[string]any{"name": name, "type": "topic"}),
			core("queue", map[string]any{"name": name, "type": "classic"}),
			core("policy", map[string]any{
				"name": name, "pattern": "^" + name + "$", "apply_to": "queues", "definition": map[string]any{"max-length": 10},
			}))
		groups[1] = append(groups[1], core("binding", map[string]any{"source": name, "destination": name, "routing_key": name}))
	}
	return groups
}

// accounts are one resource of each kind that has no vhost, or that belongs to a user.
func accounts(vhost, endpoint string) [][]*acctest.Core {
	user := vhost + ".user"
	core := func(kind string, config map[string]any) *acctest.Core {
		return &acctest.Core{Type: "rabbitmq_" + kind, Config: config, Times: acctest.Quick(), Endpoint: endpoint}
	}
	return [][]*acctest.Core{
		{core("vhost", map[string]any{"name": vhost + ".more"}), core("user", map[string]any{"name": user, "password": "secret"})},
		{
			core("permissions", map[string]any{"user": user, "vhost": vhost, "configure": "", "write": "", "read": ".*"}),
			core("topic_permissions", map[string]any{"user": user, "vhost": vhost, "permissions": []any{
				map[string]any{"exchange": "amq.topic", "write": "", "read": ".*"},
			}}),
		},
	}
}

// together handles the resources of each group at the same time, ten at once, in one process.
func together(groups [][]*acctest.Core, do func(*acctest.Core) error) error {
	process := &acctest.Process{}
	for _, group := range groups {
		var all errgroup.Group
		all.SetLimit(10)
		for i, c := range group {
			c.Process = process
			if i == 0 { // it starts the process
				if err := do(c); err != nil {
					return err
				}
				continue
			}
			all.Go(func() error { return do(c) })
		}
		if err := all.Wait(); err != nil {
			return err
		}
	}
	return nil
}

// applied plans and applies all groups, and returns the requests of the apply.
func applied(t *testing.T, c *requests, groups [][]*acctest.Core) (reads []string, writes int) {
	t.Helper()
	var mutex sync.Mutex
	plans := map[*acctest.Core]acctest.Planned{}
	require.NoError(t, together(groups, func(core *acctest.Core) error {
		plan, err := core.Plan(t.Context())
		mutex.Lock()
		defer mutex.Unlock()
		plans[core] = plan
		return err
	}))
	c.take()
	require.NoError(t, together(groups, func(core *acctest.Core) error {
		mutex.Lock()
		plan := plans[core]
		mutex.Unlock()
		return core.Apply(t.Context(), plan)
	}))
	return c.take()
}

// requirePlan fails unless all plans are empty and take as many requests together.
func requirePlan(t *testing.T, c *requests, groups [][]*acctest.Core, want int) {
	t.Helper()
	c.take()
	require.NoError(t, together(groups, func(core *acctest.Core) error {
		plan, err := core.Plan(t.Context())
		if err == nil && !plan.Empty() {
			err = fmt.Errorf("%s: not empty", core.Type)
		}
		return err
	}))
	reads, writes := c.take()
	require.Zero(t, writes)
	require.Len(t, reads, want, strings.Join(reads, "\n"))
}

// The number of requests does not depend on the number of objects.
func TestAcc_RequestsOfPlainResources(t *testing.T) {
	t.Parallel()
	acctest.Require(t)
	b, other := brokertest.New(t), brokertest.New(t)
	var c requests
	endpoint := c.endpoint(t, b)
	const n = 40
	objects := many(b.Vhost, endpoint, n)
	began := time.Now()
	reads, writes := applied(t, &c, objects)
	// The policies list the vhost once a second, and twice if two of them find the list too old at the same moment.
	listings := 2 + int(time.Since(began)/time.Second)
	require.Equal(t, 4*n, writes)
	require.LessOrEqual(t, len(reads), 10+5*listings, strings.Join(reads, "\n"))
	require.Equal(t, 1, strings.Count(strings.Join(reads, "\n"), "bindings/source"))
	requirePlan(t, &c, objects, 8)

	second := many(other.Vhost, endpoint, 3)
	applied(t, &c, second)
	requirePlan(t, &c, slices.Concat(objects, second), 8+5)

	users := accounts(b.Vhost, endpoint)
	_, writes = applied(t, &c, users)
	require.Equal(t, 4, writes)
	const kinds = 5 // limits of vhosts, users, limits of users, permissions, topic permissions
	requirePlan(t, &c, slices.Concat(users, objects), 8+kinds)

	all := slices.Concat(objects, second, users)
	slices.Reverse(all)
	require.NoError(t, together(all, func(core *acctest.Core) error { return core.Destroy(t.Context()) }))
}

func TestAcc_RequestsNameTheProvider(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	c := core("rabbitmq_exchange", map[string]any{"name": "e", "vhost": b.Vhost, "type": "fanout"})
	c.Endpoint = b.Before(t, func(r *http.Request) {
		if agent := r.UserAgent(); !strings.HasPrefix(agent, "terraform-provider-rabbitmq/") {
			t.Errorf("a request names %q", agent)
		}
	})
	c.MustApply(t)
}
