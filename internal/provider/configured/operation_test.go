package configured

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/apply"
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
		"written":                      {func(s *Provider) { s.MarkWritten() }, 2},
		"refreshed after a write":      {func(s *Provider) { s.MarkWritten(); s.Refreshes(bills) }, 2},
		"calls that follow":            {func(s *Provider) { time.Sleep(idle); s.Call()() }, 1},
		"a pause":                      {func(s *Provider) { time.Sleep(idle + 1); s.Call()() }, 2},
		"a long call":                  {func(s *Provider) { end := s.Call(); time.Sleep(time.Hour); s.Call()(); end(); s.Call()() }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var listings atomic.Int32
				s := counting(&listings)
				end := s.Call()
				s.Refreshes(orders)
				s.Plans(orders)
				for range 2 {
					if _, err := s.Listing(t.Context(), "/"); err != nil {
						t.Fatal(err)
					}
				}
				end()
				c.then(s)
				if got, _ := s.Listing(t.Context(), "/"); got.Nodes != c.want {
					t.Errorf("listing %d, want %d", got.Nodes, c.want)
				}
			})
		})
	}
}

func TestWrittenUntilTheNextOperation(t *testing.T) {
	t.Parallel()
	s := Unconnected()
	s.MarkWritten()
	if s.Plans(Key{Pipeline, "/", "orders"}); !s.HasWritten() {
		t.Error("a plan within an apply forgets the writes before it")
	}
	if s.Refreshes(Key{Pipeline, "/", "bills"}); s.HasWritten() {
		t.Error("a refresh follows a write in one operation")
	}
}

func TestErrorsOfListingsAreNotRemembered(t *testing.T) {
	t.Parallel()
	s := New(nil, apply.DefaultTimes())
	down := errors.New("down")
	s.list = func(context.Context, string) (topology.Vhost, error) { return topology.Vhost{Nodes: 3}, down }
	if _, err := s.Listing(t.Context(), "/"); !errors.Is(err, down) {
		t.Fatal(err)
	}
	down = nil
	if got, err := s.Listing(t.Context(), "/"); err != nil || got.Nodes != 3 {
		t.Errorf("%v, %v", got, err)
	}
}

// Each of two owners who leave a queue has to know of the other.
func TestPoliciesThatGoFromAQueue(t *testing.T) {
	t.Parallel()
	s := Unconnected()
	if got := s.Goes("/", "work", "retry/a/queues"); !slices.Equal(got, []string{"retry/a/queues"}) {
		t.Errorf("goes: %q", got)
	}
	s.Goes("v", "work", "retry/other/queues")
	if got := s.Goes("/", "work", "retry/b/queues"); !slices.Equal(got, []string{"retry/a/queues", "retry/b/queues"}) {
		t.Errorf("goes: %q", got)
	}
}

func TestMakingOneObjectAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := Unconnected()
		made, err := s.Making(t.Context(), []string{"a", "b"})
		require.NoError(t, err)
		if other, err := s.Making(t.Context(), []string{"c"}); err != nil {
			t.Error(err)
		} else {
			other()
		}
		waited := make(chan error)
		go func() {
			last, err := s.Making(t.Context(), []string{"c", "b"})
			if err == nil {
				last()
			}
			waited <- err
		}()
		synctest.Wait()
		select {
		case err := <-waited:
			t.Error(err, "two make one object")
		default:
		}
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := s.Making(cancelled, []string{"a"}); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
		made()
		if err := <-waited; err != nil {
			t.Error(err)
		}
	})
}
