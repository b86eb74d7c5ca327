package apply

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/stored"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// declaring is a pipeline with a queue of its own.
func declaring(t *testing.T, b *brokertest.Broker) pipeline.Pipeline {
	t.Helper()
	p := small(b)
	p.WorkQueues = map[string]pipeline.WorkQueue{"declared": {Type: topology.Quorum, Declare: true}}
	require.NoError(t, create(t, newApplier(t, b, b.Endpoint), p))
	return p
}

// noting is the removal of the pipeline, or of the declared queue alone.
func noting(t *testing.T, a *Applier, p pipeline.Pipeline, wanted *pipeline.Pipeline) Change {
	t.Helper()
	all, n := list(t, a, p.Vhost), p.Names()
	c := Change{
		Vhost: p.Vhost, All: all, Live: pipeline.Owned(p, all.Topology), SharedQueues: []string{"declared"},
		CatchAll: n.FailedQueue(), Guard: pipeline.Guard(p), NoteOf: n.NoteOf, Noted: n.Noted,
		ReturnsFrom: pipeline.ReturnsFrom,
	}
	if wanted != nil {
		c.Wanted = pipeline.Expand(*wanted)
	}
	return c
}

func bindings(t *testing.T, a *Applier, b *brokertest.Broker) string {
	t.Helper()
	var lines []string
	for _, binding := range list(t, a, b.Vhost).Bindings {
		lines = append(lines, binding.String())
	}
	return strings.Join(lines, "\n")
}

// From RabbitMQ 4.0 on a headers exchange tells 1.0 from 1.
func TestBindingsComeBackExactly(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	p, a := small(b), quickApplier(t, b, b.Endpoint)
	require.NoError(t, create(t, a, p))
	damage(t, b, a, p, "orders.failed")
	path := b.Path("bindings", "e", "orders.failed", "q", "listener")
	b.Call(t, http.MethodPost, path, map[string]any{
		"routing_key": "k", "arguments": map[string]any{"price": json.RawMessage("1.0"), "x-match": "any"},
	}, nil)
	_, before := b.Request(t, http.MethodGet, path, nil)
	if _, err := a.Update(t.Context(), noting(t, a, p, &p)); err != nil {
		t.Fatal(err)
	}
	_, after := b.Request(t, http.MethodGet, path, nil)
	if strings.Count(string(before), "1.0") != strings.Count(string(after), "1.0") || strings.Count(string(after), "price") != 1 {
		t.Errorf("\n%s\nbecame\n%s", before, after)
	}
}

// A note about what the provider never deletes binds nothing, and goes.
func TestNotesAboutOthersBindNothing(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	p := declaring(t, b)
	a := newApplier(t, b, b.Endpoint)
	b.DeclareQueue(t, "victim", "quorum", nil)
	for name, forged := range map[string]topology.Binding{
		"a queue of others":     {Source: "amq.topic", Destination: "victim", RoutingKey: "#"},
		"an exchange of others": {Source: "amq.topic", Destination: "amq.fanout", ToExchange: true, RoutingKey: "#"},
	} {
		require.NoError(t, a.client.Bind(t.Context(), b.Vhost, p.Names().NoteOf(forged, "")))
		if _, err := a.Update(t.Context(), noting(t, a, p, &p)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if now := bindings(t, a, b); strings.Contains(now, "\n"+forged.String()) || strings.Contains(now, stored.UnboundArgument) {
			t.Errorf("%s: bindings:\n%s", name, now)
		}
	}
}

// Bindings of others go with an exchange that is re-created. After the death of the provider at any
// write, the objects of the next plan differ, and the next change restores these bindings.
func TestBindingsOfOthersSurviveReplacements(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"orders.dlx", "orders.retry", "orders.return", "orders.failed"} {
		for killedAt := 1; killedAt <= 16; killedAt++ {
			t.Run(fmt.Sprintf("%s, write %d", kind, killedAt), func(t *testing.T) {
				t.Parallel()
				b := brokertest.New(t)
				p, a := small(b), quickApplier(t, b, b.Endpoint)
				require.NoError(t, create(t, a, p))
				others := damage(t, b, a, p, kind)
				var writes atomic.Int32
				dying := quickApplier(t, b, b.Through(t, func(r *http.Request) (forward, answer bool) {
					if r.Method == http.MethodGet || strings.HasSuffix(r.URL.Path, "/get") {
						return writes.Load() < int32(killedAt), true
					}
					write := writes.Add(1)
					return write <= int32(killedAt), write < int32(killedAt)
				}))
				if _, err := dying.Update(t.Context(), noting(t, a, p, &p)); err == nil {
					t.Skipf("the change has fewer than %d writes", killedAt)
				}
				c := noting(t, a, p, &p)
				if now := bindings(t, a, b); strings.Count(now, "key of others") < len(others) && topology.Diff(c.Wanted, c.Live).Empty() {
					t.Errorf("the next plan is empty; bindings:\n%s", now)
				}
				if _, err := a.Update(t.Context(), c); err != nil {
					t.Fatal(err)
				}
				now := bindings(t, a, b)
				for _, binding := range others {
					if !strings.Contains(now, binding.String()) {
						t.Errorf("%s is gone", binding)
					}
				}
				if c := noting(t, a, p, &p); !topology.Diff(c.Wanted, c.Live).Empty() {
					t.Errorf("the change is not finished; bindings:\n%s", now)
				}
			})
		}
	}
}

// damage re-creates an exchange of the pipeline by hand, with other properties, and binds others to it.
func damage(t *testing.T, b *brokertest.Broker, a *Applier, p pipeline.Pipeline, exchange string) []topology.Binding {
	t.Helper()
	const key = "key of others"
	b.DeclareQueue(t, "listener", "quorum", nil)
	others := []topology.Binding{
		{Source: exchange, Destination: "listener", RoutingKey: key, Arguments: topology.Arguments{"weight": int64(3)}},
		{Source: exchange, Destination: "amq.fanout", ToExchange: true, RoutingKey: key},
		{Source: "amq.topic", Destination: exchange, ToExchange: true, RoutingKey: key},
	}
	b.Call(t, http.MethodDelete, b.Path("exchanges", exchange), nil, nil)
	b.Call(t, http.MethodPut, b.Path("exchanges", exchange), map[string]any{"type": "topic"}, nil)
	for _, binding := range others {
		require.NoError(t, a.client.Bind(t.Context(), b.Vhost, binding))
	}
	for _, own := range pipeline.Expand(p).Bindings {
		require.NoError(t, a.client.Bind(t.Context(), b.Vhost, own))
	}
	return others
}

// An exchange of others that deletes itself with its last binding would be gone for good.
func TestReplacementKeepsExchangesThatDeleteThemselves(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	p, a := small(b), quickApplier(t, b, b.Endpoint)
	require.NoError(t, create(t, a, p))
	damage(t, b, a, p, "orders.failed")
	b.Call(t, http.MethodPut, b.Path("exchanges", "fleeting"), map[string]any{"type": "topic", "auto_delete": true}, nil)
	only := topology.Binding{Source: "fleeting", Destination: "orders.failed", ToExchange: true, RoutingKey: "a"}
	second := topology.Binding{Source: "fleeting", Destination: "orders.failed", ToExchange: true, RoutingKey: "b"}
	elsewhere := topology.Binding{Source: "fleeting", Destination: "amq.fanout", ToExchange: true}
	for _, binding := range []topology.Binding{only, second} {
		require.NoError(t, a.client.Bind(t.Context(), b.Vhost, binding))
	}
	before := bindings(t, a, b)
	_, err := a.Update(t.Context(), noting(t, a, p, &p))
	if err == nil || !strings.Contains(err.Error(), `"fleeting"`) || bindings(t, a, b) != before {
		t.Fatalf("got %v; bindings:\n%s", err, bindings(t, a, b))
	}
	require.NoError(t, a.client.Bind(t.Context(), b.Vhost, elsewhere))
	if _, err := a.Update(t.Context(), noting(t, a, p, &p)); err != nil {
		t.Fatal(err)
	}
	if now := bindings(t, a, b); !strings.Contains(now, only.String()) || !strings.Contains(now, second.String()) {
		t.Errorf("bindings:\n%s", now)
	}
}

// quickApplier is for what happens while no message is on its way.
func quickApplier(t *testing.T, b *brokertest.Broker, endpoint string) *Applier {
	t.Helper()
	a := newApplier(t, b, endpoint)
	a.times.Settle, a.times.Between = 50*time.Millisecond, 50*time.Millisecond
	return a
}
