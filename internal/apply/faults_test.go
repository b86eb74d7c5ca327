package apply

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// A proxy answers all reads from the middle of a proof on. No queue is deleted, the bindings are restored, and the
// error says where to look. The next change finds no difference.
func TestReadsThatFailDuringAProofDeleteNothing(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(*Applier, Change) error{
		"removal": func(a *Applier, c Change) error { return a.Remove(t.Context(), c) },
		"update":  func(a *Applier, c Change) error { _, err := a.Update(t.Context(), c); return err },
	} {
		for _, status := range []int{http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusNotFound} {
			t.Run(name+", "+http.StatusText(status), func(t *testing.T) {
				t.Parallel()
				b := brokertest.New(t)
				p := declaring(t, b)
				returns := p.Names().DeclaredBinding("declared").String()
				a, without := newApplier(t, b, b.Endpoint), small(b)
				wanted := map[string]*pipeline.Pipeline{"update": &without}[name]
				var ill atomic.Bool
				through := newApplier(t, b, b.Behind(t, func(w http.ResponseWriter, r *http.Request, api http.Handler) {
					if r.Method == http.MethodGet && ill.Load() {
						w.WriteHeader(status)
						_, _ = w.Write([]byte("<html>no such backend</html>"))
						return
					}
					if r.Method == http.MethodDelete && strings.Contains(r.URL.Path, "/q/declared/") {
						ill.Store(true)
					}
					api.ServeHTTP(w, r)
				}))
				err := do(through, changeTo(t, a, p, wanted))
				if err == nil || !ill.Load() || !strings.Contains(err.Error(), "no such backend") {
					t.Fatalf("got %v", err)
				}
				if now := list(t, a, b.Vhost); len(now.Queues) < len(p.Expand().Queues) || !strings.Contains(bindings(t, a, b.Vhost), returns) {
					t.Errorf("left: %v; bindings:\n%s", now.Queues, bindings(t, a, b.Vhost))
				}
				update(t, a, p)
			})
		}
	}
}

func TestWriteWhoseAnswerIsLostCountsAsOursIfItTookEffect(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	c := applierThrough(t, b, func(r *http.Request) (bool, bool) {
		return true, r.Method == http.MethodGet || r.Method == http.MethodDelete
	})
	p := small(b)
	require.NoError(t, create(t, c, p))
	requireLive(t, c, p, p.Expand())
}

func TestWriteThatNeverArrivedFailsAndIsRolledBack(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	c := applierThrough(t, b, func(r *http.Request) (bool, bool) {
		ok := !strings.HasSuffix(r.URL.Path, "/orders.retry.1s") || r.Method != http.MethodPut
		return ok, ok
	})
	p := small(b)
	err := create(t, c, p)
	if err == nil || !strings.Contains(err.Error(), `create queue "orders.retry.1s"`) || !strings.Contains(err.Error(), "can still appear") {
		t.Fatalf("got %v", err)
	}
	requireLive(t, c, p, topology.Topology{})
}

// Another queue has the name of one whose creation was not answered. It is not what was sent, so it belongs to someone else.
func TestWriteThatIsNotAnsweredAdoptsNoOtherQueue(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	const name = "orders.retry.1s"
	c := newApplier(t, b, b.Behind(t, func(w http.ResponseWriter, r *http.Request, api http.Handler) {
		if r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/"+name) {
			b.DeclareQueue(t, name, "classic", nil)
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		api.ServeHTTP(w, r)
	}))
	p := small(b)
	require.ErrorContains(t, create(t, c, p), "did not confirm the write")
	now := list(t, c, b.Vhost)
	require.Equal(t, "classic", now.Queues[name].Type)
	require.Empty(t, now.Policies)
}

// A proxy can pass a write on and still answer with its own page.
func TestWriteThatAProxyAnswersIsLookedUp(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	for _, status := range []int{http.StatusOK, http.StatusServiceUnavailable, http.StatusGatewayTimeout} {
		c := newApplier(t, b, b.Behind(t, func(w http.ResponseWriter, r *http.Request, api http.Handler) {
			if r.Method != http.MethodPut {
				api.ServeHTTP(w, r)
				return
			}
			api.ServeHTTP(httptest.NewRecorder(), r)
			http.Error(w, "<html>", status)
		}))
		p := small(b)
		p.Name = fmt.Sprint("orders", status)
		require.NoError(t, create(t, c, p), status)
	}
}

// A proxy's 404 says nothing about the queue.
func TestNotFoundOfAProxyProvesNothing(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	p := created(t, b)
	c := newApplier(t, b, b.Behind(t, func(w http.ResponseWriter, r *http.Request, api http.Handler) {
		if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/orders.failed") {
			http.NotFound(w, r)
			return
		}
		api.ServeHTTP(w, r)
	}))
	removal := changeTo(t, c, p, nil)
	require.ErrorContains(t, c.Remove(t.Context(), removal), "not RabbitMQ's answer")
	requireLive(t, c, p, removal.Live)
}

// If a queue's deletion was not answered, the broker can still delete it, with messages that arrive by then.
func TestQueueThatMayStillBeDeletedGetsNoBindings(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	p := created(t, b)
	c := applierThrough(t, b, func(r *http.Request) (bool, bool) {
		arrives := r.Method != http.MethodDelete || !strings.HasSuffix(r.URL.Path, "/queues/"+b.Vhost+"/orders.failed")
		return arrives, arrives
	})
	require.ErrorContains(t, c.Remove(t.Context(), changeTo(t, c, p, nil)), "stays unbound")
	after := list(t, c, p.Vhost)
	for _, binding := range after.Bindings {
		if binding.Source != "" && binding.Destination == "orders.failed" && !binding.ToExchange {
			t.Errorf("bound again: %s", binding)
		}
	}
	if !slices.ContainsFunc(after.Bindings, func(binding topology.Binding) bool {
		return binding.Source == "orders.dlx" && binding.Destination == "orders.inbox"
	}) {
		t.Error("the inbox is not bound again")
	}
}

// A node that dies during a deletion does not answer, and can leave half a queue.
func TestDeletionIsRepeatedUntilItIsAnswered(t *testing.T) {
	t.Parallel()
	for name, arrives := range map[string]bool{"arrived": true, "lost": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := brokertest.New(t)
			p := created(t, b)
			var deletions atomic.Int32
			c := applierThrough(t, b, func(r *http.Request) (bool, bool) {
				if r.Method != http.MethodDelete || !strings.HasSuffix(r.URL.Path, "/queues/"+b.Vhost+"/orders.retry.1s") || deletions.Add(1) > 2 {
					return true, true
				}
				return arrives, false
			})
			require.NoError(t, c.Remove(t.Context(), changeTo(t, c, p, nil)))
			requireLive(t, c, p, topology.Topology{})
			require.EqualValues(t, 3, deletions.Load())
		})
	}
}

// A queue that applications declare can be a new one with messages after the first deletion.
func TestDeletionOfAnApplicationsQueueIsNotRepeated(t *testing.T) {
	t.Parallel()
	b := brokertest.WithQueues(t, "work")
	var deletions atomic.Int32
	c := applierThrough(t, b, func(r *http.Request) (bool, bool) {
		if r.Method == http.MethodDelete {
			deletions.Add(1)
		}
		return true, r.Method != http.MethodDelete
	})
	e := c.execution(Change{Vhost: b.Vhost, SharedQueues: []string{"work"}})
	if err := e.removeQueue(t.Context(), "work", topology.Queue{Type: topology.Quorum}, false); err != nil || deletions.Load() != 1 {
		t.Errorf("%d deletions, %v", deletions.Load(), err)
	}
}

// The first deletion can still take effect, regardless of the second answer.
func TestDeletionStaysInDoubtAfterARefusal(t *testing.T) {
	t.Parallel()
	var deletions atomic.Int32
	b := brokertest.WithQueues(t, "orders.retry.5s")
	a := withoutLag(newApplier(t, b, b.Behind(t, func(w http.ResponseWriter, r *http.Request, api http.Handler) {
		if r.Method != http.MethodDelete {
			api.ServeHTTP(w, r)
			return
		}
		w.WriteHeader([]int{http.StatusBadGateway, http.StatusForbidden}[min(deletions.Add(1), 2)-1])
	})))
	e := a.execution(Change{Vhost: b.Vhost})
	err := e.removeQueue(t.Context(), "orders.retry.5s", topology.Queue{Type: topology.Quorum}, false)
	if err == nil || !strings.Contains(err.Error(), "stays unbound") || !e.deletionUnknown["orders.retry.5s"] || deletions.Load() != 2 {
		t.Errorf("%d deletions, %v", deletions.Load(), err)
	}
}

// If an exchange's deletion was not answered, the exchange comes back with its bindings.
func TestExchangeIsRecreatedWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	p := created(t, b)
	c := applierThrough(t, b, func(r *http.Request) (bool, bool) {
		return true, r.Method != http.MethodDelete || !strings.HasSuffix(r.URL.Path, "/orders.retry")
	})
	change := changeTo(t, c, p, &p)
	steps := []step{{do: replaceExchanges, exchanges: map[string]topology.Exchange{"orders.retry": change.All.Exchanges["orders.retry"]}}}
	require.NoError(t, c.execution(change).run(t.Context(), steps))
	requireLive(t, c, p, change.Live)
}

// To a user who loses the vhost during a removal, everything looks deleted.
func TestRemovalWithoutAccessIsAnError(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	user, password := b.User(t, "policymaker", ".*", ".*", ".*")
	p, admin := created(t, b), newApplier(t, b, b.Endpoint)
	removal := changeTo(t, admin, p, nil)
	b.Call(t, http.MethodDelete, b.Path("permissions", user), nil, nil)
	a := applierAs(t, b.Endpoint, user, password)
	a.times = quickApplier(t, b, b.Endpoint).times
	err := a.Remove(t.Context(), removal)
	if err == nil || b.VersionAtLeast("4.3.3") && !strings.Contains(err.Error(), "is not accessible") {
		t.Errorf("got %v", err)
	}
	requireLive(t, admin, p, removal.Live)
}

// If the vhost is deleted, all its objects are deleted with it.
func TestRemovalFromAVhostThatIsGone(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	p := small(b)
	var once sync.Once
	a := quickApplier(t, b, b.Before(t, func(r *http.Request) {
		if r.Method == http.MethodDelete && strings.Contains(r.URL.Path, "/exchanges/") {
			once.Do(func() { b.Call(t, http.MethodDelete, "/api/vhosts/"+b.Vhost, nil, nil) })
		}
	}))
	require.NoError(t, create(t, a, p))
	require.NoError(t, a.Remove(t.Context(), changeTo(t, a, p, nil)))
}

// If a queue's deletion is refused, the queue gets its bindings back, regardless of its name.
func TestRefusalIsNoSilenceWhateverTheName(t *testing.T) {
	t.Parallel()
	const queue = "payment-timeout"
	b := brokertest.New(t)
	p, a := small(b), newApplier(t, b, b.Endpoint)
	p.WorkQueues = map[string]pipeline.WorkQueue{queue: {Type: topology.Quorum, Declare: true}}
	require.NoError(t, create(t, a, p))
	before := bindings(t, a, b.Vhost)
	user, password := b.User(t, "policymaker", "^(?!"+queue+"$)", ".*", ".*")
	removal := changeTo(t, a, p, nil)
	removal.SharedQueues = []string{queue}
	err := applierAs(t, b.Endpoint, user, password).Remove(t.Context(), removal)
	if err == nil || !strings.Contains(err.Error(), `the permission configure on "`+queue+`"`) || strings.Contains(err.Error(), "did not confirm") {
		t.Errorf("got %v", err)
	}
	require.Equal(t, before, bindings(t, a, b.Vhost))
}
