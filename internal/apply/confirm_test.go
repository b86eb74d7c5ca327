package apply

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Somebody else attaches the queue after the vhost was read. The one who writes last fails, takes back what it made, and
// leaves the other's as it is.
func TestQueueThatTwoAttachAtOnce(t *testing.T) {
	t.Parallel()
	for name, attach := range map[string]func(t *testing.T, a *Applier, b *brokertest.Broker) error{
		"create": func(t *testing.T, a *Applier, b *brokertest.Broker) error {
			t.Helper()
			return a.Create(t.Context(), attaching(t, a, b))
		},
		"update": func(t *testing.T, a *Applier, b *brokertest.Broker) error {
			t.Helper()
			require.NoError(t, create(t, a, small(b)))
			_, err := a.Update(t.Context(), attaching(t, a, b))
			return err
		},
		"attachment": func(t *testing.T, a *Applier, b *brokertest.Broker) error {
			t.Helper()
			require.NoError(t, create(t, a, small(b)))
			attachment := pipeline.Attachment{
				Pipeline: "orders", Vhost: b.Vhost, Queue: "work", WorkQueue: pipeline.WorkQueue{Type: topology.Quorum}, PolicyPriority: 1000,
			}
			return a.Create(t.Context(), Change{
				Vhost: b.Vhost, All: list(t, a, b.Vhost), Wanted: pipeline.ExpandAttachment(attachment), AttachedBy: pipeline.AttachedBy,
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := brokertest.New(t)
			b.DeclareQueue(t, "work", "quorum", nil)
			b.Call(t, http.MethodPut, b.Path("exchanges", "bills.return"), map[string]any{"type": "direct"}, nil)
			theirs := pipeline.Names("bills").ReturnBinding("work")
			var once sync.Once
			a := newApplier(t, b, b.Before(t, func(r *http.Request) {
				if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/e/orders.return/q/work") {
					once.Do(func() {
						b.Call(t, http.MethodPost, b.Path("bindings", "e", theirs.Source, "q", "work"), map[string]any{"routing_key": theirs.RoutingKey}, nil)
					})
				}
			}))
			err := attach(t, a, b)
			var left *NotUndoneError
			if err == nil || !strings.Contains(err.Error(), `queue "work" was attached to the pipeline "bills" at the same time`) || errors.As(err, &left) {
				t.Fatalf("got %v", err)
			}
			now := list(t, a, b.Vhost)
			if text := bindings(t, a, b); !strings.Contains(text, theirs.String()) || strings.Contains(text, "orders.return -> work") {
				t.Errorf("bindings:\n%s", text)
			}
			if policies, doubtful := topology.NewMatcher(now.Policies).Queue("work", topology.Quorum); len(policies)+len(doubtful) > 0 {
				t.Errorf("policies apply to the queue: %v, %v", policies, doubtful)
			}
		})
	}
}

// attaching changes what is there to a pipeline that has the queue.
func attaching(t *testing.T, a *Applier, b *brokertest.Broker) Change {
	t.Helper()
	p, all := small(b), list(t, a, b.Vhost)
	p.WorkQueues = map[string]pipeline.WorkQueue{"work": {Type: topology.Quorum}}
	return Change{
		Vhost: b.Vhost, All: all, Live: pipeline.Owned(p, all.Topology), Wanted: pipeline.Expand(p), Identity: pipeline.Identity(p),
		CatchAll: p.Names().FailedQueue(), Guard: pipeline.Guard(p), AttachedBy: pipeline.AttachedBy,
	}
}
