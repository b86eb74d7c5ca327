package apply

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// The broker refuses the second policy. What consumers have rejected since the first is still there, be it in the
// inbox or held by its work queue, and so is everything that it needs to come back.
func TestFailedCreateKeepsAllThatMessagesNeed(t *testing.T) {
	t.Parallel()
	for holder, reject := range map[string]func(*testing.T, *brokertest.Broker){
		"orders.inbox": rejectUntilInInbox,
		"work":         holdOne,
	} {
		t.Run(holder, func(t *testing.T) {
			t.Parallel()
			b := brokertest.New(t)
			var once sync.Once
			c := newApplier(t, b, b.Before(t, func(r *http.Request) {
				if r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/retry/orders/queues") {
					once.Do(func() { reject(t, b) })
				}
				if r.Method == http.MethodDelete {
					t.Errorf("%s is deleted, although messages are held", r.URL.Path)
				}
			}))
			err := create(t, c, refusedInTheMiddle(t, b))
			var left *NotUndoneError
			var kept *KeptError
			if !errors.As(err, &left) || !errors.As(left, &kept) || len(kept.Queues) != 1 || kept.Queues[holder] == "" {
				t.Fatalf("got %v", err)
			}
			if !strings.Contains(err.Error(), "400") {
				t.Errorf("the reason is gone: %v", err)
			}
			now := list(t, c, b.Vhost)
			if _, err := pipeline.Recover("orders", b.Vhost, now.Topology); err != nil {
				t.Error(err)
			}
			if _, stays := now.Policies["retry/orders/queue/work"]; !stays {
				t.Error("the policy is gone")
			}
		})
	}
}

// Nothing was rejected, so nothing is left.
func TestFailedCreateRemovesPoliciesToo(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	c := newApplier(t, b, b.Endpoint)
	p := refusedInTheMiddle(t, b)
	err := create(t, c, p)
	var left *NotUndoneError
	if err == nil || errors.As(err, &left) {
		t.Fatalf("got %v", err)
	}
	now := list(t, c, b.Vhost)
	if left := pipeline.Owned(p, now.Topology); !left.Empty() {
		t.Errorf("left behind: %+v", left)
	}
}

// refusedInTheMiddle has a policy that the broker takes, and then one that it does not.
func refusedInTheMiddle(t *testing.T, b *brokertest.Broker) pipeline.Pipeline {
	t.Helper()
	for _, queue := range []string{"work", "refused"} {
		b.Request(t, http.MethodPut, b.Path("queues", queue), map[string]any{"durable": true, "arguments": map[string]any{"x-queue-type": "quorum"}})
	}
	p := small(b)
	p.PolicyDefinition = topology.Arguments{"nonsense": int64(1)}
	p.WorkQueues = map[string]pipeline.WorkQueue{
		"work":    {Type: topology.Quorum, PolicyDefinition: topology.Arguments{"nonsense": nil}},
		"refused": {Type: topology.Quorum},
	}
	return p
}

// rejectUntilInInbox publishes and rejects until the policy has taken effect.
func rejectUntilInInbox(t *testing.T, b *brokertest.Broker) {
	t.Helper()
	ch := b.Channel(t)
	brokertest.Eventually(t, func() error {
		rejectSlowly(t, b, "work", 1)
		inbox, err := ch.QueueDeclarePassive("orders.inbox", true, false, false, false, nil)
		if err == nil && inbox.Messages == 0 {
			err = errors.New("nothing in the inbox")
		}
		return err
	})
}

// holdOne makes the work queue hold a dead letter, which has nowhere to go for a while.
func holdOne(t *testing.T, b *brokertest.Broker) {
	t.Helper()
	rejectUntilInInbox(t, b)
	c := newApplier(t, b, b.Endpoint)
	all := list(t, c, b.Vhost)
	targets := map[string]topology.Queue{"orders.inbox": {}, "orders.failed": {}}
	e := c.execution(Change{Vhost: b.Vhost, All: all, Live: pipeline.Owned(small(b), all.Topology)})
	require.NoError(t, e.unbindAll(t.Context(), e.bindingsTo(targets), targets))
	rejectSlowly(t, b, "work", 1)
	brokertest.Eventually(t, func() error {
		if work, err := c.client.Queue(t.Context(), b.Vhost, "work"); err != nil || work.MessagesDLX == nil || *work.MessagesDLX == 0 {
			return fmt.Errorf("no dead letter is held: %+v, %w", work, err)
		}
		return nil
	})
	// What was rejected before may have arrived in either, the failed queue being unbound last.
	for target := range targets {
		b.Request(t, http.MethodDelete, b.Path("queues", target)+"/contents", nil)
	}
	require.NoError(t, e.rebind(t.Context(), e.bindingsTo(targets)))
}

// Two creations go on after the same interruption: the exchange and the inbox are there, no definition. Both make the
// definition, which nobody can tell apart, and one of them comes too late for the rest. It leaves everything in place.
func TestLoserOfTwoThatGoOnDeletesNothing(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	p, a := small(b), quickApplier(t, b, b.Endpoint)
	left := pipeline.Identity(p)
	if err := a.Create(t.Context(), Change{Vhost: p.Vhost, All: list(t, a, p.Vhost), Wanted: topology.Topology{Exchanges: left.Exchanges, Queues: left.Queues}}); err != nil {
		t.Fatal(err)
	}
	ready, start, won := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var first, late sync.Once
	var winnerErr error
	winner := quickApplier(t, b, b.Before(t, func(r *http.Request) {
		if r.Method != http.MethodGet {
			first.Do(func() { close(ready); <-start })
		}
	}))
	loser := quickApplier(t, b, b.Before(t, func(r *http.Request) {
		switch r.Method {
		case http.MethodPost:
			<-ready
		case http.MethodPut:
			late.Do(func() { close(start); <-won })
		case http.MethodDelete:
			t.Errorf("%s is deleted", r.URL.Path)
		}
	}))
	change := creation(t, winner, p)
	go func() {
		defer close(won)
		winnerErr = winner.Create(t.Context(), change)
	}()
	if err := create(t, loser, p); err == nil || !strings.Contains(err.Error(), "exists already") {
		t.Errorf("the loser got %v", err)
	}
	late.Do(func() { close(start) })
	if <-won; winnerErr != nil {
		t.Errorf("the winner got %v", winnerErr)
	}
	if changes := topology.Diff(pipeline.Expand(p), pipeline.Owned(p, list(t, a, p.Vhost).Topology)); !changes.Empty() {
		t.Errorf("what is there differs: %+v", changes)
	}
}
