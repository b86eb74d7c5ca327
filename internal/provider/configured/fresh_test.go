package configured

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/apply"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// slowly is a provider whose listings take a second and tell when they began, by the number of nodes.
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

// A change must see everything that was there when it began, as if it read for itself.
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

// Whoever reads for all may be cancelled; the others read again.
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
