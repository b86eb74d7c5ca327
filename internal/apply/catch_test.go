package apply

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

const caughtQueue = "orders.retry.0.caught"

// publisher publishes numbered messages, some 2,000 a second, to an exchange.
type publisher struct {
	stopping  atomic.Bool
	published chan int
}

func publishTo(t *testing.T, b *brokertest.Broker, exchange, key string) *publisher {
	t.Helper()
	ch := b.Channel(t)
	if err := ch.Confirm(false); err != nil {
		t.Fatal(err)
	}
	p := &publisher{published: make(chan int, 1)}
	go func() {
		n := 0
		var last *amqp.DeferredConfirmation
		for tick := time.NewTicker(10 * time.Millisecond); !p.stopping.Load(); <-tick.C {
			for range 20 {
				var err error
				last, err = ch.PublishWithDeferredConfirm(exchange, key, false, false, amqp.Publishing{
					DeliveryMode: amqp.Persistent, Headers: amqp.Table{"kind": "order"}, Body: fmt.Append(nil, n),
				})
				if err != nil {
					t.Error(err)
				}
				n++
			}
		}
		if last != nil && !last.Wait() {
			t.Error("not confirmed")
		}
		p.published <- n
	}()
	return p
}

func (p *publisher) stop() int {
	p.stopping.Store(true)
	return <-p.published
}

// requireOnce takes the messages out of the queues: each of them is there once.
func requireOnce(t *testing.T, b *brokertest.Broker, published int, queues ...string) (inQueue map[string]int) {
	t.Helper()
	ch, copies, inQueue := b.Channel(t), map[string]int{}, map[string]int{}
	for _, queue := range queues {
		for {
			m, found, err := ch.Get(queue, true)
			if err != nil {
				t.Fatal(err)
			}
			if !found {
				break
			}
			copies[string(m.Body)]++
			inQueue[queue]++
		}
	}
	doubled := 0
	for _, n := range copies {
		doubled += n - 1
	}
	t.Logf("%d published: %v", published, inQueue)
	if lost := published - len(copies); lost != 0 || doubled != 0 {
		t.Errorf("%d of %d lost, %d doubled", lost, published, doubled)
	}
	return inQueue
}

// requireReleased fails the test if anything still catches.
func requireReleased(t *testing.T, a *Applier, b *brokertest.Broker) {
	t.Helper()
	all := list(t, a, b.Vhost)
	for name := range all.Policies {
		if strings.Contains(name, "caught") {
			t.Errorf("policy %s is left", name)
		}
	}
	for name := range all.Exchanges {
		if strings.Contains(name, "caught") {
			t.Errorf("exchange %s is left", name)
		}
	}
}

// bound is a pipeline with a declared queue, bound to an exchange of each type.
func bound(t *testing.T, b *brokertest.Broker) (a *Applier, p pipeline.Pipeline, bindings []topology.Binding) {
	t.Helper()
	p, byHeaders := declaring(t, b)
	a = newApplier(t, b, b.Endpoint)
	bindings = []topology.Binding{
		byHeaders,
		{Source: "amq.topic", Destination: "declared", RoutingKey: "order.*"},
		{Source: "amq.direct", Destination: "declared", RoutingKey: "order.created"},
		{Source: "amq.fanout", Destination: "declared"},
	}
	for _, binding := range bindings {
		if err := a.client.Bind(t.Context(), b.Vhost, binding); err != nil {
			t.Fatal(err)
		}
	}
	return a, p, bindings
}

// A queue is not deleted, since applications begin to publish when its bindings are away already: nothing of it is lost
// or doubled, and the error says where it is.
func TestWhatIsPublishedDuringAProofIsCaught(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(*Applier, Change) error{
		"removal": func(a *Applier, c Change) error { return a.Remove(t.Context(), c) },
		"update":  func(a *Applier, c Change) error { _, err := a.Update(t.Context(), c); return err },
	} {
		for _, exchange := range []string{"amq.headers", "amq.topic", "amq.direct", "amq.fanout"} {
			t.Run(name+", "+exchange, func(t *testing.T) {
				t.Parallel()
				b := brokertest.New(t)
				a, p, applications := bound(t, b)
				without := small(b)
				wanted := map[string]*pipeline.Pipeline{"update": &without}[name]
				var once sync.Once
				var publishing *publisher
				c := noting(t, a, p, wanted)
				err := do(newApplier(t, b, b.Before(t, func(r *http.Request) {
					if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/get") && bindingsAway(t, a, b, applications) {
						once.Do(func() { publishing = publishTo(t, b, exchange, "order.created"); time.Sleep(200 * time.Millisecond) })
					}
				})), c)
				var kept *KeptError
				if !errors.As(err, &kept) || kept.Queues[caughtQueue] == "" || publishing == nil {
					t.Fatalf("got %v", err)
				}
				requireReleased(t, a, b)
				if bindingsAway(t, a, b, applications) {
					t.Error("bindings of others are gone")
				}
				if in := requireOnce(t, b, publishing.stop(), "declared", caughtQueue); in["declared"] == 0 || in[caughtQueue] == 0 {
					t.Errorf("got %v", in)
				}
			})
		}
	}
}

// bindingsAway reports whether none of the bindings is there.
func bindingsAway(t *testing.T, a *Applier, b *brokertest.Broker, of []topology.Binding) bool {
	t.Helper()
	now := "\n" + bindings(t, a, b) + "\n"
	for _, binding := range of {
		if strings.Contains(now, "\n"+binding.String()+"\n") {
			return false
		}
	}
	return true
}

// What another queue gets, or what the binding would not route, is not caught; a queue that is deleted as planned leaves
// nothing.
func TestOnlyWhatWouldBeLostIsCaught(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	a, p, applications := bound(t, b)
	b.DeclareQueue(t, "other", "quorum", nil)
	if err := a.client.Bind(t.Context(), b.Vhost, topology.Binding{Source: "amq.topic", Destination: "other", RoutingKey: "order.created"}); err != nil {
		t.Fatal(err)
	}
	var once sync.Once
	published := false
	without := small(b)
	c := noting(t, a, p, &without)
	kept, err := newApplier(t, b, b.Before(t, func(r *http.Request) {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/get") && bindingsAway(t, a, b, applications) {
			once.Do(func() {
				published = true
				message := amqp.Publishing{DeliveryMode: amqp.Persistent, Body: []byte("m")}
				b.Publish(t, "amq.topic", "order.created", message)
				publishUnroutable(t, b, "amq.topic", "invoice.created")
				publishUnroutable(t, b, "amq.direct", "invoice.created")
				publishUnroutable(t, b, "amq.headers", "order.created")
			})
		}
	})).Update(t.Context(), c)
	if err != nil || len(kept) > 0 || !published {
		t.Fatalf("got %v, %v", kept, err)
	}
	requireReleased(t, a, b)
	requireOnce(t, b, 1, "other")
	if queues := list(t, a, b.Vhost).Queues; len(queues) != len(pipeline.Expand(without).Queues)+1 {
		t.Errorf("left: %v", queues)
	}
}

// publishUnroutable publishes what no queue gets.
func publishUnroutable(t *testing.T, b *brokertest.Broker, exchange, key string) {
	t.Helper()
	ch := b.Channel(t)
	if err := ch.Confirm(false); err != nil {
		t.Fatal(err)
	}
	confirmed, err := ch.PublishWithDeferredConfirm(exchange, key, false, false, amqp.Publishing{Body: []byte("nobody's")})
	if err != nil || !confirmed.Wait() {
		t.Fatal(err)
	}
}

// The provider dies while bindings are away: what is published until the next apply is caught, and stays until somebody
// has taken it out of its queue.
func TestWhatIsPublishedAfterTheDeathOfTheProviderIsCaught(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	a, p, applications := bound(t, b)
	without := small(b)
	var dead atomic.Bool
	dying := applierThrough(t, b, func(r *http.Request) (forward, answer bool) {
		if dead.Load() {
			return false, false
		}
		dead.Store(r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/get"))
		return !dead.Load(), !dead.Load()
	})
	if _, err := dying.Update(t.Context(), noting(t, a, p, &without)); err == nil || !bindingsAway(t, a, b, applications) {
		t.Fatalf("got %v", err)
	}
	publishing := publishTo(t, b, "amq.topic", "order.created")
	time.Sleep(time.Second)
	c := noting(t, a, p, &p)
	if topology.Diff(c.Wanted, c.Live).Empty() {
		t.Error("the next plan is empty")
	}
	kept, err := a.Update(t.Context(), c)
	if err != nil || kept[caughtQueue] == "" {
		t.Fatalf("got %v, %v", kept, err)
	}
	requireReleased(t, a, b)
	time.Sleep(200 * time.Millisecond)
	if in := requireOnce(t, b, publishing.stop(), "declared", caughtQueue); in["declared"] == 0 || in[caughtQueue] == 0 {
		t.Errorf("got %v", in)
	}
	if kept, err := a.Update(t.Context(), noting(t, a, p, &p)); err != nil || len(kept) > 0 {
		t.Fatalf("got %v, %v", kept, err)
	}
	if c := noting(t, a, p, &p); !topology.Diff(c.Wanted, c.Live).Empty() {
		t.Errorf("left: %+v", topology.Diff(c.Wanted, c.Live).Delete)
	}
}

// What is published when the queue is deleted already was caught, too: the removal fails and says so.
func TestRemovalKeepsWhatIsCaughtAtItsEnd(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	a, p, _ := bound(t, b)
	var once sync.Once
	err := newApplier(t, b, b.Before(t, func(r *http.Request) {
		if r.Method == http.MethodDelete && strings.HasSuffix(r.URL.Path, "/queues/"+b.Vhost+"/declared") {
			once.Do(func() { publishUnroutable(t, b, "amq.topic", "order.created") })
		}
	})).Remove(t.Context(), noting(t, a, p, nil))
	var kept *KeptError
	var left *NotUndoneError
	if !errors.As(err, &kept) || kept.Queues[caughtQueue] == "" || errors.As(err, &left) {
		t.Fatalf("got %v", err)
	}
	requireReleased(t, a, b)
	if m, found := b.Get(t, caughtQueue); !found || m.Exchange != "amq.topic" || m.RoutingKey != "order.created" {
		t.Errorf("got %v, %t", m, found)
	}
	c := noting(t, a, p, nil)
	if _, exists := c.Live.Queues["declared"]; exists || len(c.Live.Queues) != len(pipeline.Expand(p).Queues) {
		t.Errorf("left: %v", c.Live.Queues)
	}
	if err := a.Remove(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if all := list(t, a, b.Vhost); len(all.Queues) > 0 {
		t.Errorf("left: %v", all.Queues)
	}
}

// While an exchange is re-created, or an own queue, what somebody's binding would bring to it is caught.
func TestWhatIsPublishedDuringAReplacementIsCaught(t *testing.T) {
	t.Parallel()
	for kind, queue := range map[string]string{"inbox": "orders.inbox", "exchange": "orders.failed"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			b := brokertest.New(t)
			p, a := small(b), quickApplier(t, b, b.Endpoint)
			if err := create(t, a, p); err != nil {
				t.Fatal(err)
			}
			if kind == "inbox" {
				damage(t, b, a, p, kind)
			} else {
				giveAlternate(t, b, a, p)
			}
			var once sync.Once
			var publishing *publisher
			created := fmt.Sprintf("/%ss/%s/%s", map[string]string{"inbox": "queue", "exchange": "exchange"}[kind], b.Vhost, queue)
			kept, err := quickApplier(t, b, b.Before(t, func(r *http.Request) {
				if r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, created) {
					once.Do(func() { publishing = publishTo(t, b, "amq.topic", "key of others"); time.Sleep(200 * time.Millisecond) })
				}
			})).Update(t.Context(), noting(t, a, p, &p))
			if err != nil || publishing == nil {
				t.Fatalf("got %v", err)
			}
			requireReleased(t, a, b)
			time.Sleep(200 * time.Millisecond)
			if in := requireOnce(t, b, publishing.stop(), queue, caughtQueue); in[queue] == 0 || in[caughtQueue] == 0 || kept[caughtQueue] == "" {
				t.Errorf("got %v, %v", in, kept)
			}
		})
	}
}

// giveAlternate re-creates the failed exchange by hand with an alternate exchange, and binds one of others to it.
func giveAlternate(t *testing.T, b *brokertest.Broker, a *Applier, p pipeline.Pipeline) {
	t.Helper()
	failed := b.Path("exchanges", "orders.failed")
	b.Call(t, http.MethodDelete, failed, nil, nil)
	b.Call(t, http.MethodPut, failed, map[string]any{"type": "fanout", "arguments": map[string]any{"alternate-exchange": "amq.fanout"}}, nil)
	ofOthers := topology.Binding{Source: "amq.topic", Destination: "orders.failed", ToExchange: true, RoutingKey: "key of others"}
	for _, binding := range append(pipeline.Expand(p).Bindings, ofOthers) {
		if err := a.client.Bind(t.Context(), b.Vhost, binding); err != nil {
			t.Fatal(err)
		}
	}
}
