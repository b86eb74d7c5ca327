package apply

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/stored"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// If a note records a binding that the provider never deletes, the note is deleted and nothing is bound.
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
		require.NoError(t, a.client.Bind(t.Context(), b.Vhost, p.Names().Notes().Of(forged, "")))
		if now := update(t, a, p); strings.Contains(now, "\n"+forged.String()) || strings.Contains(now, stored.UnboundArgument) {
			t.Errorf("%s: bindings:\n%s", name, now)
		}
	}
}

// Bindings of others are deleted with an exchange that is re-created. If the provider dies at any write, the next plan
// shows a difference, and the next change restores these bindings.
func TestBindingsOfOthersSurviveReplacements(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"orders.dlx", "orders.retry", "orders.return", "orders.failed"} {
		for killedAt := 1; killedAt <= 18; killedAt++ {
			t.Run(fmt.Sprintf("%s, write %d", kind, killedAt), func(t *testing.T) {
				t.Parallel()
				b := brokertest.New(t)
				p, a := created(t, b), quickApplier(t, b, b.Endpoint)
				others := damage(t, b, a, p, kind)
				var writes atomic.Int32
				dying := quickApplier(t, b, b.Through(t, func(r *http.Request) (forward, answer bool) {
					if r.Method == http.MethodGet || strings.HasSuffix(r.URL.Path, "/get") {
						return writes.Load() < int32(killedAt), true
					}
					write := writes.Add(1)
					return write <= int32(killedAt), write < int32(killedAt)
				}))
				if _, err := dying.Update(t.Context(), changeTo(t, a, p, &p)); err == nil {
					t.Skipf("the change has fewer than %d writes", killedAt) //nolint:forbidigo // not of the broker
				}
				c := changeTo(t, a, p, &p)
				if now := bindings(t, a, b.Vhost); strings.Count(now, "key of others") < len(others) && topology.Diff(c.Wanted, c.Live).Empty() {
					t.Errorf("the next plan is empty; bindings:\n%s", now)
				}
				now := update(t, a, p)
				for _, binding := range others {
					require.Contains(t, now, binding.String(), binding)
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
	for _, own := range p.Expand().Bindings {
		require.NoError(t, a.client.Bind(t.Context(), b.Vhost, own))
	}
	return others
}

// Another owner's auto-delete exchange would be deleted for good with its last binding.
func TestReplacementKeepsExchangesThatDeleteThemselves(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	p, a := created(t, b), quickApplier(t, b, b.Endpoint)
	damage(t, b, a, p, "orders.failed")
	b.Call(t, http.MethodPut, b.Path("exchanges", "fleeting"), map[string]any{"type": "topic", "auto_delete": true}, nil)
	only := topology.Binding{Source: "fleeting", Destination: "orders.failed", ToExchange: true, RoutingKey: "a"}
	second := topology.Binding{Source: "fleeting", Destination: "orders.failed", ToExchange: true, RoutingKey: "b"}
	elsewhere := topology.Binding{Source: "fleeting", Destination: "amq.fanout", ToExchange: true}
	for _, binding := range []topology.Binding{only, second} {
		require.NoError(t, a.client.Bind(t.Context(), b.Vhost, binding))
	}
	before := bindings(t, a, b.Vhost)
	_, err := a.Update(t.Context(), changeTo(t, a, p, &p))
	if err == nil || !strings.Contains(err.Error(), `"fleeting"`) || bindings(t, a, b.Vhost) != before {
		t.Fatalf("got %v; bindings:\n%s", err, bindings(t, a, b.Vhost))
	}
	require.NoError(t, a.client.Bind(t.Context(), b.Vhost, elsewhere))
	if now := update(t, a, p); !strings.Contains(now, only.String()) || !strings.Contains(now, second.String()) {
		t.Errorf("bindings:\n%s", now)
	}
}

// An exchange is not re-created if a binding of others has an argument that the management API shows inexactly. Any
// other binding routes as before. Its arguments can have any AMQP type, and line breaks.
func TestArgumentsOfOthersOnABroker(t *testing.T) {
	t.Parallel()
	for name, argument := range map[string]struct {
		value   any
		refused bool
	}{
		"text":                  {"a", false},
		"empty text":            {"", false},
		"text with line breaks": {"a\r\nb\n", false},
		"text of a number":      {"1", false},
		"text beyond ASCII":     {"é\u2028", false},
		"yes":                   {true, false},
		"no":                    {false, false},
		"32 bits and more":      {int64(1 << 32), false},
		"negative":              {int64(-1), false},
		"32 bits":               {int32(1), false},
		"16 bits":               {int16(1), false},
		"8 bits":                {int8(1), false},
		"bytes of a text":       {[]byte("a"), false},
		"whole double":          {2.0, false},
		"time":                  {time.Unix(1_700_000_000, 0), false},
		"64 bits":               {int64(math.MaxInt64), false},
		"text like nothing":     {"undefined", true},
		"text like bytes":       {"Not UTF-8, base64 is: //4=", true},
		"float":                 {float32(2.5), true},
		"double":                {2.5, true},
		"decimal":               {amqp.Decimal{Scale: 1, Value: 25}, true},
		"whole decimal":         {amqp.Decimal{Value: 25}, true},
		"nothing":               {nil, true},
		"bytes":                 {[]byte{0xff, 0xfe}, true},
		"table":                 {amqp.Table{"a": int64(1)}, true},
		"empty table":           {amqp.Table{}, true},
		"array":                 {[]any{int64(1)}, true},
		"empty array":           {[]any{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := brokertest.New(t)
			p, a := created(t, b), quickApplier(t, b, b.Endpoint)
			damage(t, b, a, p, "orders.failed")
			const key = "key\nwith a break"
			b.DeclareQueue(t, "bound likewise", "classic", nil)
			b.DeclareQueue(t, "always", "classic", nil)
			ch, arguments := b.Channel(t), amqp.Table{"x-match": "any", key: argument.value}
			for _, err := range []error{
				ch.ExchangeBind("orders.failed", "k\r\n/%+ é", "amq.headers", false, arguments),
				ch.QueueBind("bound likewise", "k\r\n/%+ é", "amq.headers", false, arguments),
				ch.QueueBind("always", "", "amq.headers", false, amqp.Table{"x-match": "any", "always": "yes"}),
			} {
				require.NoError(t, err)
			}
			before := bindings(t, a, b.Vhost)
			_, err := a.Update(t.Context(), changeTo(t, a, p, &p))
			if refused := err != nil && strings.Contains(err.Error(), "the management API does not show the exact type"); refused != argument.refused {
				t.Errorf("refused: %t, %v", refused, err)
			}
			require.Equal(t, before, bindings(t, a, b.Vhost))
			b.Publish(t, "amq.headers", "", amqp.Publishing{Headers: amqp.Table{key: argument.value, "always": "yes"}, Body: []byte("after")})
			_, likewise := b.Get(t, "bound likewise") // not all releases route by all types
			if _, routed := b.Get(t, "orders.failed"); !argument.refused && routed != likewise {
				t.Errorf("routed to the exchange: %t, to a queue that is bound likewise: %t", routed, likewise)
			}
		})
	}
}

// Others bind all queues just before any one of the steps. Queues that still exist stay, with these bindings, the
// owner's bindings and the policies, and a later removal succeeds. Only a binding that is made between a queue's last
// check and its deletion is lost.
func TestQueuesThatOthersBindMeanwhileStay(t *testing.T) {
	t.Parallel()
	for name, scenario := range map[string]struct {
		change func(*testing.T, *Applier, pipeline.Pipeline) error
		goes   []string
	}{
		"destroy": {func(t *testing.T, a *Applier, p pipeline.Pipeline) error {
			t.Helper()
			return a.Remove(t.Context(), changeTo(t, a, p, nil))
		}, []string{"declared", "orders.inbox", "orders.retry.1s", "orders.failed"}},
		"update": {func(t *testing.T, a *Applier, p pipeline.Pipeline) error {
			t.Helper()
			wanted := p
			wanted.WorkQueues, wanted.Delays = nil, []pipeline.Delay{{Wait: 2 * time.Second, Spelling: "2s"}}
			_, err := a.Update(t.Context(), changeTo(t, a, p, &wanted))
			return err
		}, []string{"declared", "orders.retry.1s"}},
		"rollback": {createRefused, []string{"declared", "orders.inbox", "orders.retry.1s", "orders.failed"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := brokertest.New(t)
			for step := 1; bindAtStep(t, b, step, name == "rollback", scenario.goes, scenario.change); step++ {
			}
		})
	}
}

// createRefused runs a creation that fails at its last policy and is rolled back.
func createRefused(t *testing.T, a *Applier, p pipeline.Pipeline) error {
	t.Helper()
	c := creation(t, a, p)
	c.Wanted.Policies["refused"] = topology.Policy{Pattern: "^other$", ApplyTo: "queues", Definition: topology.Arguments{"nonsense": int64(1)}}
	return a.Create(t.Context(), c)
}

// bindAtStep makes a change and binds its queues just before the given step. It returns false if the change has fewer
// steps.
func bindAtStep(
	t *testing.T, b *brokertest.Broker, step int, creates bool, goes []string,
	change func(*testing.T, *Applier, pipeline.Pipeline) error,
) bool {
	t.Helper()
	direct, p := quickApplier(t, b, b.Endpoint), small(b)
	p.WorkQueues = map[string]pipeline.WorkQueue{"declared": {Type: topology.Quorum, Declare: true}}
	if !creates {
		require.NoError(t, create(t, direct, p))
	}
	var bound []topology.Binding
	at := ""
	endpoint := atStep(t, b, step, creates, func(r *http.Request) {
		at = r.Method + " " + r.URL.Path
		for _, queue := range goes {
			binding := topology.Binding{Source: "amq.topic", Destination: queue, RoutingKey: "of others", Arguments: topology.Arguments{"team": "b"}}
			if isDeletionOf(r, queue) {
				continue
			}
			switch err := direct.client.Bind(t.Context(), b.Vhost, binding); {
			case err == nil:
				bound = append(bound, binding)
			case !broker.IsNotFound(err): // a deleted queue is no error
				t.Error(err)
			}
		}
	})
	err := change(t, quickApplier(t, b, endpoint), p)
	var refused *BoundError
	if errors.As(err, &refused) != (len(bound) > 0) {
		t.Errorf("%d, before %s: got %v", step, at, err)
	}
	var left *NotUndoneError
	if creates && len(bound) > 0 && !errors.As(err, &left) {
		t.Errorf("%d, before %s: nothing is said to be left: %v", step, at, err)
	}
	named := func(binding topology.Binding) bool { return strings.Contains(refused.Error(), binding.String()) }
	if refused != nil && !slices.ContainsFunc(bound, named) {
		t.Errorf("%d, before %s: the error names none of %v: %v", step, at, bound, err)
	}
	now := list(t, direct, b.Vhost)
	for _, binding := range bound {
		require.Truef(t, slices.ContainsFunc(now.Bindings, binding.Equal), "%d, before %s: gone: %s", step, at, binding)
		require.NoError(t, direct.client.Unbind(t.Context(), b.Vhost, binding))
	}
	if len(bound) > 0 && !creates {
		requirePutBack(t, at, bound, p.Expand(), now.Topology)
	}
	require.NoError(t, direct.ForceRemove(t.Context(), changeTo(t, direct, p, nil)))
	if left := list(t, direct, b.Vhost); len(left.Queues)+len(left.Policies) > 0 {
		t.Fatalf("%d, before %s: left: %v, %v", step, at, slices.Collect(maps.Keys(left.Queues)), left.Policies)
	}
	return at != ""
}

// requirePutBack fails the test if a bound queue lacks one of the pipeline's bindings, or if a policy is missing.
func requirePutBack(t *testing.T, at string, bound []topology.Binding, before, now topology.Topology) {
	t.Helper()
	for _, own := range before.Bindings {
		leadsThere := func(of topology.Binding) bool { return !own.ToExchange && of.Destination == own.Destination }
		if slices.ContainsFunc(bound, leadsThere) && !slices.ContainsFunc(now.Bindings, own.Equal) {
			t.Errorf("before %s: not bound again: %s", at, own)
		}
	}
	for name := range before.Policies {
		require.Contains(t, now.Policies, name, at)
	}
}

func isDeletionOf(r *http.Request, queue string) bool {
	return r.Method == http.MethodDelete && strings.Contains(r.URL.Path, "/api/queues/") && strings.HasSuffix(r.URL.Path, "/"+queue)
}

// atStep returns the endpoint of a management API whose statistics report every queue as empty. It makes the call once,
// just before the given step. Steps are writes, and reads of messages or of a queue's bindings. With afterRefusal, it
// counts only steps after a refused policy.
func atStep(t *testing.T, b *brokertest.Broker, step int, afterRefusal bool, call func(*http.Request)) (endpoint string) {
	t.Helper()
	var mutex sync.Mutex
	steps, counting, looked := 0, !afterRefusal, false
	empty := &brokertest.Broker{Vhost: b.Vhost, Endpoint: emptyStatistics(t, b)}
	return empty.Before(t, func(r *http.Request) {
		mutex.Lock()
		defer mutex.Unlock()
		looks := r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/bindings")
		if counting && (r.Method != http.MethodGet || looks && !looked) {
			if steps++; steps == step {
				call(r)
			}
		}
		looked = looks
		counting = counting || strings.HasSuffix(r.URL.Path, "/refused")
	})
}

// While messages of another pipeline return to a queue, the queue stays. Later, the return binding is deleted with it.
func TestReturnBindingsOfOthers(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	p, other := declaring(t, b), pipeline.Names("other")
	var unbound atomic.Bool
	a := quickApplier(t, b, b.Before(t, func(r *http.Request) {
		if r.Method == http.MethodDelete && strings.Contains(r.URL.Path, "/other.return/") {
			unbound.Store(true)
		}
	}))
	b.Call(t, http.MethodPut, b.Path("exchanges", other.ReturnExchange()), map[string]any{"type": "direct"}, nil)
	b.DeclareQueue(t, "other.retry.1h", "quorum", map[string]any{"x-dead-letter-exchange": other.ReturnExchange()})
	returns := other.ReturnBinding("declared")
	require.NoError(t, a.client.Bind(t.Context(), b.Vhost, returns))
	b.Publish(t, "", "other.retry.1h", amqp.Publishing{DeliveryMode: amqp.Persistent, Body: []byte("comes back")})
	brokertest.Eventually(t, func() error {
		if found, err := a.Contents(t.Context(), b.Vhost, []string{"other.retry.1h"}, nil); err != nil || len(found) == 0 {
			return fmt.Errorf("found: %v, %w", found, err)
		}
		return nil
	})
	err := a.Remove(t.Context(), changeTo(t, a, p, nil))
	var kept *KeptError
	if !errors.As(err, &kept) || kept.Queues["other.retry.1h"] == "" || !strings.Contains(bindings(t, a, b.Vhost), returns.String()) {
		t.Fatalf("got %v", err)
	}
	b.Get(t, "other.retry.1h")
	if err := a.Remove(t.Context(), changeTo(t, a, p, nil)); err != nil || unbound.Load() {
		t.Fatalf("got %v, unbound: %t", err, unbound.Load())
	}
}

// Others bind an exchange to the owner's exchange, before or during a proof. Then all of the owner's exchanges stay:
// their messages would be dropped from then on, or until a refused destroy ends.
func TestExchangesThatOthersBindStay(t *testing.T) {
	t.Parallel()
	for name, moment := range map[string]string{"before": "", "during the proof": http.MethodDelete} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := brokertest.New(t)
			direct, p := quickApplier(t, b, b.Endpoint), created(t, b)
			binding := topology.Binding{Source: "amq.fanout", Destination: "orders.dlx", ToExchange: true}
			bind := sync.OnceFunc(func() {
				if err := direct.client.Bind(t.Context(), b.Vhost, binding); err != nil {
					t.Error(err)
				}
			})
			if moment == "" {
				bind()
			}
			a := quickApplier(t, b, b.Before(t, func(r *http.Request) {
				if r.Method == moment {
					bind()
				}
			}))
			before := list(t, direct, b.Vhost)
			var refused *BoundError
			if err := a.Remove(t.Context(), changeTo(t, a, p, nil)); !errors.As(err, &refused) || !strings.Contains(refused.Error(), binding.String()) {
				t.Fatalf("got %v", err)
			}
			bind()
			before.Bindings = append(before.Bindings, binding)
			now := list(t, direct, b.Vhost)
			for _, was := range before.Bindings {
				require.Truef(t, slices.ContainsFunc(now.Bindings, was.Equal), "gone: %s", was)
			}
			require.NoError(t, direct.client.Unbind(t.Context(), b.Vhost, binding))
			require.NoError(t, direct.Remove(t.Context(), changeTo(t, direct, p, nil)))
		})
	}
}
