package retrypipeline_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// driftVhost is a vhost with a pipeline, with messages in each of its queues, and with objects of others
// that meet the pipeline's.
type driftVhost struct {
	*brokertest.Broker
	pipeline pipeline.Pipeline
	wanted   topology.Topology
	core     acctest.Core
	// applied is the resource as it was created.
	applied map[string]any
	// foreign is what belongs to others.
	foreign acctest.Listing
	// holds are the queues that have messages, and how many.
	holds map[string]int
}

func newDriftVhost(t *testing.T, kind string) *driftVhost {
	t.Helper()
	b := brokertest.NewNamed(t, "drift "+kind)
	p := driftPipelines(b.Vhost)[kind]
	s := &driftVhost{Broker: b, pipeline: p, wanted: pipeline.Expand(p), core: acctest.Core{Type: resourceType, Config: configurationOf(p), Times: acctest.Quick()}, holds: map[string]int{}}
	for name, w := range p.WorkQueues {
		if !w.Declare {
			b.DeclareQueue(t, name, w.Type, nil)
		}
	}
	plan, err := s.core.Plan(t.Context())
	if err == nil {
		err = s.core.Apply(t.Context(), plan)
	}
	if err != nil {
		t.Fatal(err)
	}
	own := acctest.List(t, b)
	s.applied = plan.After
	s.addForeign(t)
	s.foreign = acctest.List(t, b).Without(own)
	for i, queue := range s.queues() {
		s.fill(t, queue, i+2)
	}
	return s
}

// queues lists the pipeline's own queues and its work queues.
func (s *driftVhost) queues() []string {
	all := slices.Concat(slices.Collect(maps.Keys(s.wanted.Queues)), slices.Collect(maps.Keys(s.pipeline.WorkQueues)))
	slices.Sort(all)
	return slices.Compact(all)
}

// addForeign adds objects of others: a listener on each of the pipeline's exchanges, an exchange that
// leads to the pipeline's own queues, a binding to a work queue, and policies, one of them with a name
// that begins like the pipeline's.
func (s *driftVhost) addForeign(t *testing.T) {
	t.Helper()
	b := s.Broker
	b.DeclareQueue(t, "foreign.audit", "quorum", nil)
	b.Call(t, http.MethodPut, b.Path("exchanges", "foreign"), map[string]any{"type": "topic", "durable": true}, nil)
	for exchange := range s.wanted.Exchanges {
		bound(exchange, "foreign.audit", "audit", map[string]any{"who": "audit"})(t, b)
	}
	n := s.pipeline.Names()
	for _, queue := range []string{n.Inbox(), n.FailedQueue(), n.RetryQueue(s.pipeline.Delays[0].Wait), "work.created"} {
		bound("foreign", queue, "foreign.#", map[string]any{"who": "foreign"})(t, b)
	}
	for _, name := range []string{"foreign", "retry/" + s.pipeline.Name + "s/queues"} {
		b.Call(t, http.MethodPut, b.Path("policies", name), map[string]any{
			"pattern": "^foreign", "apply-to": "queues", "priority": 3, "definition": map[string]any{"max-length": 12345},
		}, nil)
	}
}

// fill publishes messages into a queue.
func (s *driftVhost) fill(t *testing.T, queue string, count int) {
	t.Helper()
	for i := range count {
		s.Publish(t, "", queue, persistent(fmt.Sprintf("%s %d", queue, i)))
	}
	s.holds[queue] = count
}

// messages is an error unless each queue has the messages that it shall have. What an AMQP
// declaration says of a queue's length is true at once.
func (s *driftVhost) messages(t *testing.T) error {
	t.Helper()
	ch := s.Channel(t)
	defer func() { _ = ch.Close() }()
	for _, queue := range s.queues() {
		q, err := ch.QueueDeclarePassive(queue, false, false, false, false, nil)
		if err != nil {
			return fmt.Errorf("%s: %w", queue, err)
		}
		if q.Messages != s.holds[queue] {
			return fmt.Errorf("%s has %d messages instead of %d", queue, q.Messages, s.holds[queue])
		}
	}
	return nil
}

// drain takes the messages out of a queue and is an error unless they are those that were put in.
func (s *driftVhost) drain(t *testing.T, queue string) error {
	t.Helper()
	for i := range s.holds[queue] {
		m, ok := s.Get(t, queue)
		if want := fmt.Sprintf("%s %d", queue, i); !ok || string(m.Body) != want {
			return fmt.Errorf("%s: got %q, %t instead of %q", queue, m.Body, ok, want)
		}
	}
	delete(s.holds, queue)
	awaitCount(t, s.Broker, queue, 0)
	return nil
}
