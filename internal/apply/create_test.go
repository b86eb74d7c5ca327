package apply

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// The broker refuses the second policy. Messages that were rejected since the first one are still in the inbox or held
// by their work queue. Everything that they need to come back stays.
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
				if r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/retry/orders/quorum-queues") {
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
			require.ErrorContains(t, err, "400")
			now := list(t, c, b.Vhost)
			if _, err := pipeline.Recover("orders", b.Vhost, now.Topology); err != nil {
				t.Error(err)
			}
			require.Contains(t, now.Policies, "retry/orders/queue/work", "the policy is gone")
		})
	}
}

// Without rejected messages, nothing stays.
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
	requireLive(t, c, p, topology.Topology{})
}

// If another policy would then drop messages, the policy that keeps it off stays.
func TestFailedCreateKeepsThePolicyThatKeepsALimitOff(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	p := refusedInTheMiddle(t, b)
	p.PolicyPriority = 1
	b.Call(t, http.MethodPut, b.Path("policies", "limit"), map[string]any{
		"pattern": "^work$", "apply-to": "queues", "priority": 0, "definition": map[string]any{"max-length": 1},
	}, nil)
	const messages = 3
	a := newApplier(t, b, b.Before(t, func(r *http.Request) {
		if r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/retry/orders/quorum-queues") {
			for range messages {
				b.Publish(t, "", "work", amqp.Publishing{DeliveryMode: amqp.Persistent})
			}
		}
	}))
	err := create(t, a, p)
	var left *NotUndoneError
	var kept *KeptError
	if !errors.As(err, &left) || !errors.As(left, &kept) || kept.Queues["work"] == "" {
		t.Errorf("got %v", err)
	}
	for range messages {
		_, there := b.Get(t, "work")
		require.True(t, there, "a message was dropped")
	}
}

// refusedInTheMiddle returns a pipeline with a policy that the broker accepts, and then one that it refuses.
func refusedInTheMiddle(t *testing.T, b *brokertest.Broker) pipeline.Pipeline {
	t.Helper()
	for _, queue := range []string{"work", "refused"} {
		b.DeclareQueue(t, queue, "quorum", nil)
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

// holdOne makes the work queue hold a dead letter that cannot be routed for a while.
func holdOne(t *testing.T, b *brokertest.Broker) {
	t.Helper()
	rejectUntilInInbox(t, b)
	c := newApplier(t, b, b.Endpoint)
	all := list(t, c, b.Vhost)
	targets := map[string]topology.Queue{"orders.inbox": {}, "orders.failed": {}}
	e := c.execution(Change{Vhost: b.Vhost, All: all, Live: small(b).Owned(all.Topology)})
	require.NoError(t, each(t.Context(), e.bindingsTo(targets), e.removeBinding))
	rejectSlowly(t, b, "work", 1)
	brokertest.Eventually(t, func() error {
		if work, err := c.client.Queue(t.Context(), b.Vhost, "work"); err != nil || work.MessagesDLX == nil || *work.MessagesDLX == 0 {
			return fmt.Errorf("no dead letter is held: %+v, %w", work, err)
		}
		return nil
	})
	// Earlier rejected messages can be in either queue, because the failed queue is unbound last.
	for target := range targets {
		b.Request(t, http.MethodDelete, b.Path("queues", target)+"/contents", nil)
	}
	require.NoError(t, e.rebind(t.Context(), e.bindingsTo(targets)))
}

// Two creations continue after the same interruption, with an exchange and an inbox but no definition. Both create the
// same definition, and one of them is too late for the other objects. It leaves all objects.
func TestLoserOfTwoThatGoOnDeletesNothing(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	p, a := small(b), quickApplier(t, b, b.Endpoint)
	left := p.Identity()
	identity := topology.Topology{Exchanges: left.Exchanges, Queues: left.Queues}
	require.NoError(t, a.Create(t.Context(), Change{Vhost: p.Vhost, All: list(t, a, p.Vhost), Wanted: identity}))
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
	require.ErrorContains(t, create(t, loser, p), "already exists")
	late.Do(func() { close(start) })
	if <-won; winnerErr != nil {
		t.Errorf("the winner got %v", winnerErr)
	}
	requireLive(t, a, p, p.Expand())
}

// Limits of broker.Client.
const (
	requestsAtOnce     = 10
	policyWritesAtOnce = 2
)

// gauge counts requests in flight, by the first word after /api, and keeps the maximum.
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

// pass is a fault that lets all requests through, slowly, and counts the writes.
func (g *gauge) pass(r *http.Request) (forward, answer bool) {
	if r.Method != http.MethodGet {
		for _, kind := range []string{"all", strings.Split(r.URL.Path, "/")[2]} {
			g.add(kind, 1)
			defer g.add(kind, -1)
		}
		time.Sleep(30 * time.Millisecond) // gives others time to arrive
	}
	return true, true
}

// Many pipelines at once do not flood the broker, and do not wait for each other's every write.
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

// If two runs create the same pipeline, the second one takes over no objects.
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
		change := Change{Owner: p.Owner(), Vhost: p.Vhost, Wanted: p.Expand()} // listed before the first run began
		if err := second.Create(t.Context(), change); err == nil || !strings.Contains(err.Error(), "already exists") {
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
	requireLive(t, newApplier(t, b, b.Endpoint), p, p.Expand())
}

// Brokers can tell two creators that an object is new. Then neither knows its own objects.
func TestCreatorThatMeetsAnotherRemovesNothing(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	p := created(t, b)
	late := newApplier(t, b, b.After(t, func(r *http.Request, answer *httptest.ResponseRecorder) {
		if r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/orders.failed") {
			answer.Code = http.StatusCreated
		}
	}))
	change := Change{Owner: p.Owner(), Vhost: p.Vhost, Wanted: p.Expand()} // listed before the other run began
	require.ErrorContains(t, late.Create(t.Context(), change), "already exists")
	requireLive(t, newApplier(t, b, b.Endpoint), p, p.Expand())
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

// Somebody else attaches the queue after the vhost was read. The last writer fails, removes its own objects, and leaves
// the other's unchanged.
func TestQueueThatTwoAttachAtOnce(t *testing.T) {
	t.Parallel()
	for name, attach := range map[string]func(t *testing.T, a *Applier, b *brokertest.Broker) error{
		"create": func(t *testing.T, a *Applier, b *brokertest.Broker) error {
			t.Helper()
			return a.Create(t.Context(), attaching(t, a, b))
		},
		"update": func(t *testing.T, a *Applier, b *brokertest.Broker) error {
			t.Helper()
			created(t, b)
			_, err := a.Update(t.Context(), attaching(t, a, b))
			return err
		},
		"attachment": func(t *testing.T, a *Applier, b *brokertest.Broker) error {
			t.Helper()
			created(t, b)
			attachment := pipeline.Attachment{
				Pipeline: "orders", Vhost: b.Vhost, Queue: "work", WorkQueue: pipeline.WorkQueue{Type: topology.Quorum}, PolicyPriority: 1000,
			}
			return a.Create(t.Context(), Change{
				Owner: attachment.Owner(), Vhost: b.Vhost, All: list(t, a, b.Vhost), Wanted: attachment.Expand(),
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := brokertest.WithQueues(t, "work")
			b.Call(t, http.MethodPut, b.Path("exchanges", "bills.return"), map[string]any{"type": "direct"}, nil)
			theirs := pipeline.Names("bills").ReturnBinding("work")
			var attached atomic.Int32
			a := newApplier(t, b, b.Before(t, func(r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				r.Body = io.NopCloser(bytes.NewReader(body))
				attaches := strings.HasSuffix(r.URL.Path, "/e/orders.return/q/work") && bytes.Contains(body, []byte(pipeline.ReturnKey("work")))
				if r.Method == http.MethodPost && attaches && attached.Add(1) == 1 {
					b.Call(t, http.MethodPost, b.Path("bindings", "e", theirs.Source, "q", "work"), map[string]any{"routing_key": theirs.RoutingKey}, nil)
				}
			}))
			err := attach(t, a, b)
			var left *NotUndoneError
			if err == nil || !strings.Contains(err.Error(), `queue "work" was attached to the pipeline "bills" at the same time`) || errors.As(err, &left) {
				t.Fatalf("got %v", err)
			}
			now := list(t, a, b.Vhost)
			if text := bindings(t, a, b.Vhost); !strings.Contains(text, theirs.String()) || strings.Contains(text, "orders.return -> work") {
				t.Errorf("bindings:\n%s", text)
			}
			if policies, doubtful := topology.NewMatcher(now.Policies).Queue("work", topology.Quorum, now.Version); len(policies)+len(doubtful) > 0 {
				t.Errorf("policies apply to the queue: %v, %v", policies, doubtful)
			}
			require.EqualValues(t, 1, attached.Load(), "the queue was attached again, and the other one would give way, too")
		})
	}
}

// attaching returns the change to a pipeline that has the queue.
func attaching(t *testing.T, a *Applier, b *brokertest.Broker) Change {
	t.Helper()
	p := small(b)
	p.WorkQueues = map[string]pipeline.WorkQueue{"work": {Type: topology.Quorum}}
	return creation(t, a, p)
}
