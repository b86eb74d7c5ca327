package configured

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/apply"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// counting is a provider that counts its listings.
func counting(listings *atomic.Int32) *Provider {
	s := New(nil, apply.DefaultTimes())
	s.list = func(context.Context, string) (topology.Vhost, error) {
		return topology.Vhost{Nodes: int(listings.Add(1))}, nil
	}
	return s
}

// Terraform does not say where an operation ends.
func TestListingIsSharedWithinAnOperation(t *testing.T) {
	t.Parallel()
	orders, bills := Key{Pipeline, "/", "orders"}, Key{Pipeline, "/", "bills"}
	for name, c := range map[string]struct {
		then func(*Provider)
		want int
	}{
		"others refreshed and planned": {func(s *Provider) { s.Refreshes(bills); s.Plans(bills) }, 1},
		"a key of another kind":        {func(s *Provider) { s.Refreshes(Key{Attachment, "/", "orders"}); s.Plans(Key{Pipeline, "v", "orders"}) }, 1},
		"refreshed again":              {func(s *Provider) { s.Refreshes(orders) }, 2},
		"planned again":                {func(s *Provider) { s.Plans(orders) }, 2},
		"written":                      {func(s *Provider) { s.MarkWritten(Pipeline, false) }, 2},
		"refreshed after a write":      {func(s *Provider) { s.MarkWritten(Pipeline, false); s.Refreshes(bills) }, 2},
		"others looked up":             {func(s *Provider) { s.LooksUp(bills) }, 1},
		"looked up again":              {func(s *Provider) { s.LooksUp(orders) }, 2},
		"a pause":                      {func(s *Provider) { time.Sleep(time.Hour); s.Call()() }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var listings atomic.Int32
				s := counting(&listings)
				end := s.Call()
				s.Refreshes(orders)
				s.Plans(orders)
				s.LooksUp(orders)
				for range 2 {
					if _, err := s.Listed(t.Context(), "/"); err != nil {
						t.Fatal(err)
					}
				}
				end()
				c.then(s)
				if got, _ := s.Listed(t.Context(), "/"); got.Nodes != c.want {
					t.Errorf("listing %d, want %d", got.Nodes, c.want)
				}
			})
		})
	}
}

func TestWrittenUntilTheNextOperation(t *testing.T) {
	t.Parallel()
	s := Unconnected()
	s.MarkWritten(Pipeline, false)
	if s.Plans(Key{Pipeline, "/", "orders"}); !s.HasWritten() {
		t.Error("a plan within an apply forgets the writes before it")
	}
	if s.Refreshes(Key{Pipeline, "/", "bills"}); s.HasWritten() {
		t.Error("a refresh follows a write in one operation")
	}
}

// If plans and applies have one process, a plan that follows an apply is no part of it, even if it refreshes nothing.
func TestPlanAfterAnApplyIsAnotherOperation(t *testing.T) {
	t.Parallel()
	s := Unconnected()
	orders, bills := Key{Pipeline, "/", "orders"}, Key{Pipeline, "/", "bills"}
	s.Plans(orders)
	s.Plans(bills)
	for _, key := range []Key{bills, orders} {
		s.Plans(key)
		s.MarkWritten(Pipeline, false)
	}
	if !s.HasWritten() {
		t.Error("an apply forgets its first write")
	}
	if s.Plans(Key{Pipeline, "/", "later"}); s.HasWritten() {
		t.Error("the apply goes on with what was not planned before")
	}
	s.Refreshes(orders)
	s.MarkWritten(Pipeline, true)
	if s.Plans(orders); s.HasWritten() {
		t.Error("a destroy after a refresh goes on with a plan")
	}
}

// A look-up during an apply sees what the apply has done, and takes nothing from what the plan knows.
func TestLookUpForgetsOnlyAnswers(t *testing.T) {
	t.Parallel()
	var listings atomic.Int32
	s := counting(&listings)
	orders := Key{Queue, "/", "orders"}
	s.Changes(PlannedPolicies + "/").Add(func(*topology.Vhost) {})
	s.LooksUp(orders)
	s.LooksUp(orders)
	if len(s.Changes(PlannedPolicies+"/").Now().all) != 1 {
		t.Error("the planned policies are gone")
	}
	s.MarkWritten(Pipeline, false)
	for want := range 2 {
		s.LooksUp(Key{Queue, "/", fmt.Sprint(want)})
		if got, _ := s.Listed(t.Context(), "/"); got.Nodes != want+1 {
			t.Errorf("listing %d, want %d", got.Nodes, want+1)
		}
	}
	if len(s.Changes(PlannedPolicies+"/").Now().all) != 0 {
		t.Error("a write ends no plan")
	}
}

func TestErrorsOfListingsAreNotRemembered(t *testing.T) {
	t.Parallel()
	s := New(nil, apply.DefaultTimes())
	down := errors.New("down")
	s.list = func(context.Context, string) (topology.Vhost, error) { return topology.Vhost{Nodes: 3}, down }
	if _, err := s.Listed(t.Context(), "/"); !errors.Is(err, down) {
		t.Fatal(err)
	}
	down = nil
	if got, err := s.Listed(t.Context(), "/"); err != nil || got.Nodes != 3 {
		t.Errorf("%v, %v", got, err)
	}
}

// If two owners leave a queue, each must know of the other.
func TestPoliciesThatGoFromAQueue(t *testing.T) {
	t.Parallel()
	s := Unconnected()
	if got := s.Goes(Policy, "/", "work", "retry/a/queues"); !slices.Equal(got, []string{"retry/a/queues"}) {
		t.Errorf("goes: %q", got)
	}
	s.Goes(Policy, "v", "work", "retry/other/queues")
	if got := s.Goes(Policy, "/", "work", "retry/b/queues"); !slices.Equal(got, []string{"retry/a/queues", "retry/b/queues"}) {
		t.Errorf("goes: %q", got)
	}
}

func TestMakingOneObjectAtATime(t *testing.T) {
	t.Parallel()
	s := Unconnected()
	made := s.Making([]string{"b", "a", "b"})
	require.False(t, s.Turn("making a").TryLock())
	s.Making([]string{"c"})()
	made()
	s.Making([]string{"a", "c"})()
}

// slowly is a provider whose listings take a second. The number of nodes is the time when a listing began.
func slowly(calls *atomic.Int32, now func() int) *Provider {
	s := New(nil, apply.DefaultTimes())
	s.list = func(ctx context.Context, _ string) (topology.Vhost, error) {
		calls.Add(1)
		began := now()
		if _, ended := brokertest.Within(ctx.Done(), time.Second); ended {
			return topology.Vhost{}, ctx.Err()
		}
		return topology.Vhost{Nodes: began}, nil
	}
	return s
}

// A change must see every object that existed when it began, as if it read the vhost itself.
func TestFreshBeginsAfterTheCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		start := time.Now()
		now := func() int { return int(time.Since(start).Milliseconds()) }
		s := slowly(&calls, now)
		var all sync.WaitGroup
		const callers = 40
		for i := range callers {
			all.Go(func() {
				time.Sleep(time.Duration(i) * 100 * time.Millisecond)
				called := now()
				vhost, err := s.Fresh(t.Context(), "/")
				if err != nil || vhost.Nodes < called {
					t.Errorf("called at %d ms, got what was read from %d ms on, %v", called, vhost.Nodes, err)
				}
			})
		}
		all.Wait()
		if n := calls.Load(); n > 6 {
			t.Errorf("%d readings for calls within 4 seconds", n)
		}
	})
}

func TestFreshIsNotRemembered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		s := slowly(&calls, func() int { return 0 })
		for range 3 {
			if _, err := s.Fresh(t.Context(), "/"); err != nil {
				t.Fatal(err)
			}
		}
		if calls.Load() != 3 {
			t.Errorf("%d readings for three calls", calls.Load())
		}
	})
}

// If the caller that reads for all is cancelled, the others read again.
func TestFreshSurvivesTheCancellationOfAnother(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		s := slowly(&calls, func() int { return 0 })
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() { _, _ = s.Fresh(t.Context(), "/") }) // has the turn
		synctest.Wait()
		all.Go(func() {
			if _, err := s.Fresh(ctx, "/"); !errors.Is(err, context.Canceled) {
				t.Errorf("the cancelled one got %v", err)
			}
		})
		synctest.Wait()
		for range 3 {
			all.Go(func() {
				if _, err := s.Fresh(t.Context(), "/"); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		cancel()
		all.Wait()
		if calls.Load() != 2 {
			t.Errorf("%d readings, want one before and one shared", calls.Load())
		}
	})
}

// An apply's first steps can start the broker that its later steps need.
func TestAnApplyAsksAgainAfterAFailure(t *testing.T) {
	t.Parallel()
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked++; asked == 1 {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"name": "terraform", "tags": ["policymaker"], "rabbitmq_version": "4.3.6"}`))
	}))
	defer server.Close()
	client, err := broker.New(broker.Config{Endpoint: server.URL, Username: "terraform", Password: "secret"})
	require.NoError(t, err)
	s := New(client, apply.DefaultTimes())
	for range 2 {
		if _, err := s.Reach(t.Context()); !broker.IsUnauthorized(err) {
			t.Fatalf("a plan: %v", err)
		}
	}
	for range 2 {
		if user, err := s.ReachForWrite(t.Context()); err != nil || user.Name != "terraform" {
			t.Errorf("an apply: %v, %v", user, err)
		}
	}
	if asked != 3 {
		t.Errorf("the broker was asked %d times", asked)
	}
}

// A deletion can use a listing from a moment ago, unless the same apply can have begun to use the object since.
func TestRecentListings(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		by             Kind
		deletes        bool
		change, delete int32 // listings of two calls
	}{
		"a plain deletion":   {Queue, true, 1, 1},
		"a plain change":     {Queue, false, 1, 2},
		"a pipeline goes":    {Pipeline, true, 2, 2},
		"a pipeline changes": {Pipeline, false, 2, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				for _, kind := range []struct {
					recent func(*Provider, context.Context, string) (topology.Vhost, error)
					want   int32
				}{{(*Provider).Recent, c.change}, {(*Provider).RecentForDelete, c.delete}} {
					var listings atomic.Int32
					s := counting(&listings)
					s.MarkWritten(c.by, c.deletes)
					for range 2 {
						_, err := kind.recent(s, t.Context(), "/")
						require.NoError(t, err)
					}
					require.Equal(t, kind.want, listings.Load())
					time.Sleep(recently)
					_, err := kind.recent(s, t.Context(), "/")
					require.NoError(t, err)
					require.Equal(t, kind.want+1, listings.Load(), "it is too old now")
				}
			})
		})
	}
}
