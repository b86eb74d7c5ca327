package acctest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

// AtEachWrite counts the writes of a scenario, and then kills the provider at each of them, in its own vhost. The scenario
// gets the number of the write, 0 for none, and returns the count of [Core.Killed].
func AtEachWrite(t *testing.T, scenario func(t *testing.T, write int) (writes int)) {
	t.Helper()
	Require(t)
	all := scenario(t, 0)
	require.NotZero(t, all)
	for write := range all {
		t.Run(fmt.Sprintf("write %d of %d", write+1, all), func(t *testing.T) {
			t.Parallel()
			require.Equal(t, write+1, scenario(t, write+1), "not killed")
		})
	}
}

// Kill decides at which write a provider is killed, by the write's number, counted from 1, or by its request.
type Kill func(number int, write *http.Request) bool

// At kills at the write with this number, 0 for none. Just before the broker gets the request, it calls the functions.
func At(write int, before ...func()) Kill {
	return func(number int, _ *http.Request) bool {
		if number != write {
			return false
		}
		for _, do := range before {
			do()
		}
		return true
	}
}

// Killed acts as Terraform does, and kills the provider at a write. The broker carries out that write but does not answer,
// and gets no later request. It returns the number of writes. If the provider is killed, Terraform's state stays unchanged.
func (c *Core) Killed(t *testing.T, b *brokertest.Broker, kill Kill, do func(*Core) error) (writes int) {
	t.Helper()
	var mutex sync.Mutex
	died, ended := make(chan struct{}), make(chan error, 1)
	dead := false
	dying := *c
	dying.Endpoint = b.Behind(t, func(w http.ResponseWriter, r *http.Request, api http.Handler) {
		mutex.Lock()
		defer mutex.Unlock()
		if dead {
			panic(http.ErrAbortHandler)
		}
		if !changes(r, api) {
			api.ServeHTTP(w, r)
			return
		}
		writes++
		if dead = kill(writes, r); !dead {
			api.ServeHTTP(w, r)
			return
		}
		api.ServeHTTP(httptest.NewRecorder(), r)
		close(died)
		panic(http.ErrAbortHandler)
	})
	go func() { ended <- do(&dying) }()
	select {
	case <-died:
	case err := <-ended:
		require.NoError(t, err)
		dying.Endpoint = c.Endpoint
		*c = dying
	}
	mutex.Lock()
	defer mutex.Unlock()
	return writes
}

// Change returns a function that plans and applies.
func Change(t *testing.T) func(*Core) error {
	t.Helper()
	return func(c *Core) error {
		_, err := c.PlanAndApply(t.Context())
		return err
	}
}

// Destruction returns a function that destroys the resource.
func Destruction(t *testing.T) func(*Core) error {
	t.Helper()
	return func(c *Core) error { return c.Destroy(t.Context()) }
}

// MustApply plans and applies.
func (c *Core) MustApply(t *testing.T) {
	t.Helper()
	_, err := c.PlanAndApply(t.Context())
	require.NoError(t, err)
}

// Finish applies again. If the error asks for an import, it imports the resource first.
func (c *Core) Finish(t *testing.T, importID string) {
	t.Helper()
	_, err := c.PlanAndApply(t.Context())
	if err == nil {
		return
	}
	if !strings.Contains(err.Error(), "To adopt them, import the resource") && !strings.Contains(err.Error(), "terraform import") {
		t.Fatalf("the error names no import: %v", err)
	}
	require.NoError(t, c.Import(t.Context(), importID))
	c.MustApply(t)
}

// RequireEmptyPlan fails unless the plan is empty.
func (c *Core) RequireEmptyPlan(t *testing.T) {
	t.Helper()
	plan, err := c.Plan(t.Context())
	if err != nil || !plan.Empty() {
		t.Errorf("%v: the plan changes %q", err, Differences(TopologyOf(plan.Refreshed), TopologyOf(plan.After)))
	}
}

// Settled applies until the plan is empty. A new queue has no counts yet, so an earlier apply did not know that it is empty.
func (c *Core) Settled(t *testing.T) {
	t.Helper()
	brokertest.Eventually(t, func() error {
		plan, err := c.Plan(t.Context())
		if err != nil || plan.Empty() {
			return err
		}
		if err := c.Apply(t.Context(), plan); err != nil {
			t.Error(err)
		}
		return fmt.Errorf("the plan still changed %q", Differences(TopologyOf(plan.Refreshed), TopologyOf(plan.After)))
	})
}
