package apply

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// reporting returns the endpoint of a management API with these statistics. It reports every queue without consumers,
// and counts gives its messages and pending dead letters for each look.
func reporting(t *testing.T, b *brokertest.Broker, counts func(queue string, look int) (messages, pending int)) (endpoint string) {
	t.Helper()
	var mutex sync.Mutex
	looks := map[string]int{}
	return b.After(t, func(r *http.Request, answer *httptest.ResponseRecorder) {
		queue, isQueue := strings.CutPrefix(r.URL.Path, "/api/queues/"+b.Vhost+"/")
		if r.Method != http.MethodGet || !isQueue || strings.HasSuffix(queue, "/bindings") || answer.Code != http.StatusOK {
			return
		}
		mutex.Lock()
		defer mutex.Unlock()
		looks[queue]++
		messages, pending := counts(queue, looks[queue])
		var description map[string]any
		if err := json.Unmarshal(answer.Body.Bytes(), &description); err != nil {
			t.Errorf("%s: %v", answer.Body, err)
		}
		maps.Copy(description, map[string]any{"messages": messages, "messages_dlx": pending, "consumers": 0, "state": "running"})
		changed, err := json.Marshal(description)
		if err != nil {
			t.Error(err)
		}
		answer.Body = bytes.NewBuffer(changed)
	})
}

// emptyStatistics reports every queue as empty, like a broker that has not gathered its statistics yet.
func emptyStatistics(t *testing.T, b *brokertest.Broker) (endpoint string) {
	t.Helper()
	return reporting(t, b, func(string, int) (messages, pending int) { return 0, 0 })
}

// reported declares the queue, and returns an applier that reads these counts of it without lag.
func reported(t *testing.T, b *brokertest.Broker, queue string, counts func(look int) (messages, pending int)) *Applier {
	t.Helper()
	b.DeclareQueue(t, queue, "quorum", nil)
	return withoutLag(newApplier(t, b, reporting(t, b, func(_ string, look int) (messages, pending int) { return counts(look) })))
}

// A queue to delete has a message that the statistics do not count yet. The message and the queue stay.
func TestQueuesThemselvesAreAskedBeforeTheyGo(t *testing.T) {
	t.Parallel()
	for queueType, queues := range map[string][]string{
		topology.Quorum: {"orders.failed", "orders.retry.1s", "declared"}, topology.Classic: {"orders.inbox"},
	} {
		for _, queue := range queues {
			t.Run(queueType+" "+queue, func(t *testing.T) {
				t.Parallel()
				b := brokertest.New(t)
				a := newApplier(t, b, emptyStatistics(t, b))
				p := small(b)
				p.QueueType, p.Delays[0].Wait = queueType, pipeline.MaxDelay
				p.WorkQueues = map[string]pipeline.WorkQueue{"declared": {Type: queueType, Declare: true}}
				queue = strings.Replace(queue, "orders.retry.1s", p.Names().RetryQueue(pipeline.MaxDelay), 1)
				require.NoError(t, create(t, a, p))
				b.Publish(t, "", queue, amqp.Publishing{DeliveryMode: amqp.Persistent, Body: []byte("not counted")})
				err := a.Remove(t.Context(), changeTo(t, a, p, nil))
				var kept *KeptError
				if queueType == topology.Quorum && (!errors.As(err, &kept) || kept.Queues[queue] == "") {
					t.Errorf("got %v", err)
				}
				if message, ok := b.Get(t, queue); !ok || string(message.Body) != "not counted" {
					t.Errorf("the message is gone: %v", err)
				}
			})
		}
	}
}

// A retry queue that left the schedule is kept in the same way.
func TestRetiredQueuesAreAskedBeforeTheyGo(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	a := newApplier(t, b, emptyStatistics(t, b))
	before, after := small(b), small(b)
	before.Delays = append(before.Delays, pipeline.Delay{Wait: pipeline.MaxDelay, Spelling: pipeline.FormatDelay(pipeline.MaxDelay)})
	require.NoError(t, create(t, a, before))
	queue := before.Names().RetryQueue(pipeline.MaxDelay)
	b.Publish(t, "", queue, amqp.Publishing{DeliveryMode: amqp.Persistent, Body: []byte("not counted")})
	kept, err := a.Update(t.Context(), changeTo(t, a, before, &after))
	require.NoError(t, err)
	require.NotEmpty(t, kept[queue])
	if message, ok := b.Get(t, queue); !ok || string(message.Body) != "not counted" {
		t.Error("the message is gone")
	}
	leadsThere := func(b topology.Binding) bool { return b.Destination == queue }
	require.True(t, slices.ContainsFunc(list(t, a, b.Vhost).Bindings, leadsThere), "the queue is not bound again")
}

// Each question counts against a queue's delivery limit, which is 20 by default on 4.0 to 4.2. A removal that waits for a message to
// go asks each queue once.
func TestWaitingRemovalAsksOnce(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	p := declaring(t, b)
	b.Publish(t, "", "declared", amqp.Publishing{DeliveryMode: amqp.Persistent})
	_, deliveries := b.Consume(t, "declared", 1)
	<-deliveries // so that the message is not stuck, and the removal waits
	var asked sync.Map
	a := newApplier(t, b, b.Before(t, func(r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/get") {
			count, _ := asked.LoadOrStore(r.URL.Path, &atomic.Int32{})
			if count.(*atomic.Int32).Add(1) > 1 {
				t.Errorf("asked again: %s", r.URL.Path)
			}
		}
	}))
	removal := changeTo(t, a, p, nil)
	removal.Drain = 10 * time.Second
	kept := (*KeptError)(nil)
	require.ErrorAs(t, a.Remove(t.Context(), removal), &kept)
	require.Contains(t, kept.Queues, "declared")
	requireSame(t, removal.All.Topology, list(t, a, b.Vhost).Topology)
}

// Without the permission, a queue that left the schedule is kept, and stays bound all the time.
func TestUpdateWithoutReadKeepsAQueueBound(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	before, after := small(b), small(b)
	before.Delays = append(before.Delays, pipeline.Delay{Wait: pipeline.MaxDelay, Spelling: pipeline.FormatDelay(pipeline.MaxDelay)})
	require.NoError(t, create(t, newApplier(t, b, b.Endpoint), before))
	queue := before.Names().RetryQueue(pipeline.MaxDelay)
	user, password := b.User(t, "administrator", ".*", ".*", `^orders\.(dlx|retry|return|failed)$`)
	a := applierAs(t, b.Before(t, func(r *http.Request) {
		if r.Method == http.MethodDelete && strings.Contains(r.URL.Path, queue) {
			t.Errorf("%s %s", r.Method, r.URL)
		}
	}), user, password)
	kept, err := a.Update(t.Context(), changeTo(t, a, before, &after))
	require.NoError(t, err)
	require.Contains(t, kept[queue], "needs read on it")
}

// RabbitMQ refuses to look into such a queue, so the proof relies on its statistics.
func TestQueueOfASingleActiveConsumerGoes(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	a, p := newApplier(t, b, b.Endpoint), small(b)
	p.WorkQueues = map[string]pipeline.WorkQueue{
		"declared": {Type: topology.Quorum, Declare: true, Arguments: topology.Arguments{"x-single-active-consumer": true}},
	}
	require.NoError(t, create(t, a, p))
	require.NoError(t, a.Remove(t.Context(), changeTo(t, a, p, nil)))
	requireLive(t, a, p, topology.Topology{})
}

// If a vhost accepts no connections, its queues cannot be looked into. That is no sign of messages.
func TestRemovalWithoutConnections(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	p := declaring(t, b)
	a := newApplier(t, b, b.Endpoint)
	limit := b.Path("vhost-limits", "max-connections")
	b.Call(t, http.MethodPut, limit, map[string]any{"value": 0}, nil)
	before := list(t, a, b.Vhost)
	err := a.Remove(t.Context(), changeTo(t, a, p, nil))
	var kept *KeptError
	if err == nil || errors.As(err, &kept) || !strings.Contains(err.Error(), "RabbitMQ refused a connection") ||
		!strings.Contains(err.Error(), "the limit max-connections of the vhost is 0") {
		t.Fatalf("got %v", err)
	}
	if changes := topology.Diff(before.Topology, list(t, a, b.Vhost).Topology); !changes.Create.Empty() || !changes.Update.Empty() {
		t.Errorf("not everything was put back: %+v", changes)
	}
}

// A queue whose consumers reject all the time has dead letters on their way at most looks. Only dead letters that are
// held for good appear at every look and are a reason to refuse.
func TestDeadLettersThatPassAreNoReasonToRefuse(t *testing.T) {
	t.Parallel()
	for name, held := range map[string]func(look int) int{
		"passing": func(look int) int { return look % 3 },
		"staying": func(int) int { return 1 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := brokertest.New(t)
			a := reported(t, b, "work", func(look int) (messages, pending int) { return 0, held(look) })
			err := a.execution(Change{Vhost: b.Vhost}).run(t.Context(), []step{
				{do: proveNonePending, ifFails: refuse, checks: checksOf(pendingDeadLetters, "work")},
			})
			var kept *KeptError
			if refused := errors.As(err, &kept); refused != (name == "staying") || (err != nil && !refused) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// Messages that were published and consumed shortly before can appear after a report that the queue is empty. The
// change starts again, and is not refused over messages that are already consumed.
func TestLateReportOfWhatIsGoneIsNoReasonToRefuse(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	a := reported(t, b, "paid", func(look int) (messages, pending int) {
		if look == 2 {
			return 1, 0
		}
		return 0, 0
	})
	change := Change{Vhost: b.Vhost}
	steps := []step{change.removeIfEmpty(map[string]topology.Queue{"paid": {Type: topology.Quorum}}, refuse)}
	require.NoError(t, a.execution(change).run(t.Context(), steps))
	require.Empty(t, list(t, a, b.Vhost).Queues)
}

// Messages without a consumer at one look that are consumed by the next do not end the wait of the change.
func TestWhatIsGoneIsNotStuck(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	a := reported(t, b, "paid", func(look int) (messages, pending int) {
		if look == 1 {
			return 1, 0
		}
		return 0, 0
	})
	e := a.execution(Change{Vhost: b.Vhost})
	found, err := e.lastingContents(t.Context(), checksOf(use, "paid"))
	require.NoError(t, err)
	require.Empty(t, found)
	require.Empty(t, e.stuckSince)
}

// Messages pass between these queues. If one queue is not empty, all of them stay bound, with the exchanges that lead
// to them. The message can appear in the middle of the proof.
func TestQueuesGoTogetherOrNotAtAll(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		messages func(look int) int
		goes     bool
	}{
		"all empty":            {func(int) int { return 0 }, true},
		"not empty":            {func(int) int { return 1 }, false},
		"not empty afterwards": {func(look int) int { return min(1, look/4) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := brokertest.New(t)
			c := Change{Owner: owner(), Vhost: b.Vhost, Wanted: topology.Topology{
				Exchanges: map[string]topology.Exchange{"high": {Type: "fanout"}, "low": {Type: "fanout"}},
				Queues:    map[string]topology.Queue{"high": quorum("low"), "low": quorum("due")},
				Bindings: []topology.Binding{
					binding("high", "high"), binding("low", "low"), {Source: "high", Destination: "low", ToExchange: true},
				},
			}}
			c.Entrance = "high"
			var unbound atomic.Bool
			counting := &brokertest.Broker{Vhost: b.Vhost, Endpoint: b.Before(t, func(r *http.Request) {
				if r.Method == http.MethodDelete && strings.HasPrefix(r.URL.Path, "/api/bindings/") {
					unbound.Store(true)
				}
			})}
			a := withoutLag(newApplier(t, b, reporting(t, counting, func(queue string, look int) (messages, pending int) {
				if queue == "low" {
					return 0, 0
				}
				return test.messages(look), 0
			})))
			before := list(t, a, b.Vhost)
			require.NoError(t, a.Create(t.Context(), c))
			c.All = list(t, a, b.Vhost)
			c.Live, c.Wanted = c.Wanted, topology.New()
			kept, err := a.Update(t.Context(), c)
			require.NoError(t, err)
			if test.goes {
				require.Empty(t, kept)
				requireSame(t, before.Topology, list(t, a, b.Vhost).Topology)
				return
			}
			require.Len(t, kept, 2)
			requireSame(t, c.All.Topology, list(t, a, b.Vhost).Topology)
			require.Equal(t, name != "not empty", unbound.Load(), "unbound")
		})
	}
}

// A policy of others gives a queue smaller limits once the owner's policy is gone.
func TestQueueThatWouldBeLimitedByOthersKeepsItsPolicy(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	a, p := newApplier(t, b, b.Endpoint), small(b)
	b.DeclareQueue(t, "theirs", "quorum", nil)
	limit := map[string]any{"pattern": "^theirs$", "apply-to": "queues", "definition": map[string]any{"max-length": 1}}
	b.Call(t, http.MethodPut, b.Path("policies", "limit"), limit, nil)
	p.WorkQueues, p.PolicyPriority = map[string]pipeline.WorkQueue{"theirs": {Type: topology.Quorum}}, 10
	require.NoError(t, create(t, a, p))
	for range 3 {
		b.Publish(t, "", "theirs", amqp.Publishing{DeliveryMode: amqp.Persistent})
	}
	brokertest.Eventually(t, func() error {
		info, err := a.client.Queue(t.Context(), b.Vhost, "theirs")
		if err == nil && (info.Messages == nil || *info.Messages != 3) {
			return errors.New("not counted yet")
		}
		return err
	})
	kept := (*KeptError)(nil)
	require.ErrorAs(t, a.Remove(t.Context(), changeTo(t, a, p, nil)), &kept)
	require.Contains(t, kept.Queues["theirs"], "a policy of others")
	without := small(b)
	_, err := a.Update(t.Context(), changeTo(t, a, p, &without))
	require.ErrorAs(t, err, &kept)
	for range 3 {
		_, there := b.Get(t, "theirs")
		require.True(t, there)
	}
	brokertest.Eventually(t, func() error { return a.Remove(t.Context(), changeTo(t, a, p, nil)) })
}

// If a removal fails after it has deleted queues, these come back before the exchange that leads to them.
func TestRemovalThatFailsLateRestoresItsQueues(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	second := pipeline.Delay{Wait: time.Second, Spelling: "1s"}
	x := delayed.Exchange{Name: "events", Vhost: b.Vhost, Type: "topic", MaxDelay: second, Precision: second}
	a := newApplier(t, b, b.Endpoint)
	change := func(wanted topology.Topology) Change {
		all := list(t, a, b.Vhost)
		return Change{Owner: x.Owner(), Vhost: b.Vhost, All: all, Live: x.Owned(all.Topology), Wanted: wanted}
	}
	require.NoError(t, a.Create(t.Context(), change(x.Expand())))
	before := list(t, a, b.Vhost)
	through := newApplier(t, b, b.Behind(t, func(w http.ResponseWriter, r *http.Request, api http.Handler) {
		if r.Method == http.MethodDelete && strings.Contains(r.URL.Path, "/policies/") {
			http.Error(w, `{"error":"not_authorised","reason":"Access refused."}`, http.StatusUnauthorized)
			return
		}
		api.ServeHTTP(w, r)
	}))
	require.ErrorContains(t, through.Remove(t.Context(), change(topology.Topology{})), "Access refused")
	requireSame(t, before.Topology, list(t, a, b.Vhost).Topology)
}

// A queue with visible messages is not asked for one, because that counts against its delivery limit.
func TestRefusedRemovalDeliversNoMessage(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	p := declaring(t, b)
	b.Publish(t, "", "declared", amqp.Publishing{DeliveryMode: amqp.Persistent})
	a := newApplier(t, b, b.Before(t, func(r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/declared/get") {
			t.Error("asked")
		}
	}))
	brokertest.Eventually(t, func() error {
		info, err := a.client.Queue(t.Context(), b.Vhost, "declared")
		if err == nil && (info.Messages == nil || *info.Messages != 1) {
			return errors.New("not counted yet")
		}
		return err
	})
	kept := (*KeptError)(nil)
	require.ErrorAs(t, a.Remove(t.Context(), changeTo(t, a, p, nil)), &kept)
}
