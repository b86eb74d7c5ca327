package apply

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Limits of broker.Client.
const (
	requestsAtOnce     = 10
	policyWritesAtOnce = 2
)

// gauge counts what is in flight, by the first word after /api, and remembers the most.
type gauge struct {
	mutex     sync.Mutex
	now, most map[string]int
}

func (g *gauge) add(kind string, n int) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.now[kind] += n
	g.most[kind] = max(g.most[kind], g.now[kind])
}

// pass is a fault that lets everything through, slowly, and counts the writes.
func (g *gauge) pass(r *http.Request) (forward, answer bool) {
	if r.Method != http.MethodGet {
		for _, kind := range []string{"all", strings.Split(r.URL.Path, "/")[2]} {
			g.add(kind, 1)
			defer g.add(kind, -1)
		}
		time.Sleep(30 * time.Millisecond) // for the others to come
	}
	return true, true
}

// Many pipelines at once neither flood the broker nor wait for each other's every write.
func TestWritesAtOnce(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	g := &gauge{now: map[string]int{}, most: map[string]int{}}
	c := applierThrough(t, b, g.pass)
	var all sync.WaitGroup
	for i := range 5 {
		all.Go(func() {
			p := small(b)
			p.Name = fmt.Sprintf("p%d", i)
			if err := create(t, c, p); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if g.most["all"] > requestsAtOnce || g.most["all"] < requestsAtOnce/2 {
		t.Errorf("%d writes in flight, want up to %d", g.most["all"], requestsAtOnce)
	}
	if g.most["policies"] > policyWritesAtOnce {
		t.Errorf("%d writes of policies in flight, want at most %d", g.most["policies"], policyWritesAtOnce)
	}
}

// Of two that create the same pipeline, the one that comes second takes no part of it.
func TestSecondCreateMakesNothing(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	p := small(b)
	begun, goOn := make(chan struct{}), make(chan struct{})
	first := applierThrough(t, b, func(r *http.Request) (bool, bool) {
		if r.Method != http.MethodGet && (!strings.Contains(r.URL.Path, "/exchanges/") || !strings.HasSuffix(r.URL.Path, "/orders.failed")) {
			<-goOn
		}
		return true, true
	})
	second := applierThrough(t, b, func(r *http.Request) (bool, bool) {
		if r.Method != http.MethodGet && r.Method != http.MethodPut {
			t.Errorf("the second sent %s %s", r.Method, r.URL.Path)
		}
		return true, true
	})
	var both sync.WaitGroup
	both.Go(func() {
		if err := create(t, first, p); err != nil {
			t.Error(err)
		}
	})
	both.Go(func() {
		defer close(goOn)
		<-begun
		change := Change{Vhost: p.Vhost, Wanted: pipeline.Expand(p), Identity: pipeline.Identity(p)} // as if it had listed before the first began
		if err := second.Create(t.Context(), change); err == nil || !strings.Contains(err.Error(), "exists already") {
			t.Errorf("the second got %v", err)
		}
	})
	brokertest.Eventually(t, func() error {
		if status, _ := b.Request(t, http.MethodGet, b.Path("exchanges", "orders.failed"), nil); status != http.StatusOK {
			return errors.New("the first has not begun")
		}
		return nil
	})
	close(begun)
	both.Wait()
	now := list(t, newApplier(t, b, b.Endpoint), b.Vhost)
	if changes := topology.Diff(pipeline.Expand(p), pipeline.Owned(p, now.Topology)); !changes.Empty() {
		t.Errorf("missing or different: %+v", changes)
	}
}

// Brokers can answer two creators that an object is new. Neither can tell what is its own then.
func TestCreatorThatMeetsAnotherRemovesNothing(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	p := small(b)
	require.NoError(t, create(t, newApplier(t, b, b.Endpoint), p))
	late := newApplier(t, b, b.After(t, func(r *http.Request, answer *httptest.ResponseRecorder) {
		if r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/orders.failed") {
			answer.Code = http.StatusCreated
		}
	}))
	change := Change{Vhost: p.Vhost, Wanted: pipeline.Expand(p), Identity: pipeline.Identity(p)} // as if it had listed before
	if err := late.Create(t.Context(), change); err == nil || !strings.Contains(err.Error(), "exists already") {
		t.Errorf("the late one got %v", err)
	}
	now := list(t, newApplier(t, b, b.Endpoint), b.Vhost)
	if changes := topology.Diff(pipeline.Expand(p), pipeline.Owned(p, now.Topology)); !changes.Empty() {
		t.Errorf("missing or different: %+v", changes)
	}
}

func TestForEachParallelBeginsNothingAfterAFailure(t *testing.T) {
	t.Parallel()
	failure := errors.New("failed")
	var mutex sync.Mutex
	begun, finished := 0, 0
	err := forEachParallel(t.Context(), make([]int, 100), func(context.Context, int) error {
		mutex.Lock()
		begun++
		first := begun == 1
		mutex.Unlock()
		if first {
			return failure
		}
		time.Sleep(20 * time.Millisecond)
		mutex.Lock()
		defer mutex.Unlock()
		finished++
		return nil
	})
	if !errors.Is(err, failure) || begun > 2*writesAtOnce || finished != begun-1 {
		t.Errorf("%v; %d begun, %d finished", err, begun, finished)
	}
}
