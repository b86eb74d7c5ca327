package apply

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// emptyStatistics is the endpoint of a management API whose statistics say of every queue that it is empty, as
// those of a broker that gathers them once a minute do until it has.
func emptyStatistics(t *testing.T, b *brokertest.Broker) string {
	t.Helper()
	return b.After(t, func(r *http.Request, answer *httptest.ResponseRecorder) {
		ofQueue := strings.HasPrefix(r.URL.Path, "/api/queues/"+b.Vhost+"/") && !strings.HasSuffix(r.URL.Path, "/bindings")
		if r.Method == http.MethodGet && ofQueue && answer.Code == http.StatusOK {
			answer.Body = bytes.NewBuffer(withoutCounts(t, answer.Body.Bytes()))
		}
	})
}

// withoutCounts is the broker's description of a queue with all counts that matter to a proof set to 0.
func withoutCounts(t *testing.T, answer []byte) []byte {
	t.Helper()
	var queue map[string]any
	if err := json.Unmarshal(answer, &queue); err != nil {
		t.Errorf("%s: %v", answer, err)
	}
	for _, count := range []string{"messages", "messages_dlx", "consumers"} {
		queue[count] = 0
	}
	queue["state"] = "running"
	changed, err := json.Marshal(queue)
	if err != nil {
		t.Error(err)
	}
	return changed
}

// A message that the statistics do not count yet is in a queue that goes: it stays, and so does the queue.
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
				all := list(t, a, b.Vhost)
				live := pipeline.Owned(p, all.Topology)
				err := a.Remove(t.Context(), Change{
					Vhost: b.Vhost, All: all, Live: live, CatchAll: "orders.failed", SharedQueues: []string{"declared"}, Guard: pipeline.Guard(p),
				})
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

// A retry queue that left the schedule is kept likewise.
func TestRetiredQueuesAreAskedBeforeTheyGo(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	a := newApplier(t, b, emptyStatistics(t, b))
	before, after := small(b), small(b)
	before.Delays = append(before.Delays, pipeline.Delay{Wait: pipeline.MaxDelay, Spelling: pipeline.FormatDelay(pipeline.MaxDelay)})
	require.NoError(t, create(t, a, before))
	queue := before.Names().RetryQueue(pipeline.MaxDelay)
	b.Publish(t, "", queue, amqp.Publishing{DeliveryMode: amqp.Persistent, Body: []byte("not counted")})
	all := list(t, a, b.Vhost)
	kept, err := a.Update(t.Context(), Change{
		Vhost: b.Vhost, All: all, Live: pipeline.Owned(before, all.Topology), Wanted: pipeline.Expand(after), Guard: pipeline.Guard(after),
	})
	if err != nil || kept[queue] == "" {
		t.Errorf("kept %v, %v", kept, err)
	}
	if message, ok := b.Get(t, queue); !ok || string(message.Body) != "not counted" {
		t.Error("the message is gone")
	}
	bound := false
	for _, binding := range list(t, a, b.Vhost).Bindings {
		bound = bound || binding.Destination == queue
	}
	if !bound {
		t.Error("the queue is not bound again")
	}
}

// A user who may not read a queue cannot ask it.
func TestQueueThatCannotBeAskedIsKept(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	require.NoError(t, create(t, newApplier(t, b, b.Endpoint), small(b)))
	user, password := b.User(t, "administrator", ".*", ".*", `^orders\.(dlx|retry|return|failed)$`)
	a := applierAs(t, b.Endpoint, user, password)
	all := list(t, a, b.Vhost)
	err := a.Remove(t.Context(), Change{
		Vhost: b.Vhost, All: all, Live: pipeline.Owned(small(b), all.Topology), CatchAll: "orders.failed", Guard: pipeline.Guard(small(b)),
	})
	var kept *KeptError
	if !errors.As(err, &kept) || !strings.Contains(kept.Queues["orders.inbox"], "permission to read it") {
		t.Errorf("got %v", err)
	}
	if changes := topology.Diff(all.Topology, list(t, a, b.Vhost).Topology); !changes.Empty() {
		t.Errorf("not everything was put back: %+v", changes)
	}
}

// RabbitMQ lets nobody look into such a queue, so its statistics have to do.
func TestQueueOfASingleActiveConsumerGoes(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	a, p := newApplier(t, b, b.Endpoint), small(b)
	p.WorkQueues = map[string]pipeline.WorkQueue{
		"declared": {Type: topology.Quorum, Declare: true, Arguments: topology.Arguments{"x-single-active-consumer": true}},
	}
	require.NoError(t, create(t, a, p))
	require.NoError(t, a.Remove(t.Context(), noting(t, a, p, nil)))
	if left := pipeline.Owned(p, list(t, a, b.Vhost).Topology); !left.Empty() {
		t.Errorf("left behind: %+v", left)
	}
}

// A vhost that takes no more connections lets nobody look into its queues. That is no sign of messages.
func TestRemovalWithoutConnections(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	p := declaring(t, b)
	a := newApplier(t, b, b.Endpoint)
	limit := b.Path("vhost-limits", "max-connections")
	b.Call(t, http.MethodPut, limit, map[string]any{"value": 0}, nil)
	before := list(t, a, b.Vhost)
	err := a.Remove(t.Context(), noting(t, a, p, nil))
	var kept *KeptError
	if err == nil || errors.As(err, &kept) || !strings.Contains(err.Error(), "RabbitMQ refused a connection") ||
		!strings.Contains(err.Error(), "the limit max-connections of the vhost is 0") {
		t.Fatalf("got %v", err)
	}
	if changes := topology.Diff(before.Topology, list(t, a, b.Vhost).Topology); !changes.Create.Empty() || !changes.Update.Empty() {
		t.Errorf("not everything was put back: %+v", changes)
	}
}
