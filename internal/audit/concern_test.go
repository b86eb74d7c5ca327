package audit

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/nearby"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// For a pipeline or a delayed exchange, the audit finds the same faults in the part of a vhost as in the whole.
func TestNothingIsOverlookedInThePartThatConcerns(t *testing.T) {
	t.Parallel()
	found, smaller := map[string]bool{}, 0
	for seed := range uint64(500) {
		r := random{rand.New(rand.NewPCG(seed, 1))}
		vhost := r.vhost()
		for _, n := range []pipeline.Names{"orders", "mail"} {
			queues := []string{r.name("q"), r.name("q")}
			alone := pipeline.WithoutOthers(vhost, string(n))
			part := nearby.NewIndex(alone).Near(nearby.Center{Pipelines: []string{string(n)}, Queues: queues})
			whole := ofPipeline(newGraph(alone), n, queues)
			compare(t, seed, whole, ofPipeline(newGraph(part), n, queues))
			for _, f := range whole {
				found[f.Rule] = true
			}
			if len(part.Queues) < len(vhost.Queues) {
				smaller++
			}
		}
		compare(t, seed, newGraph(vhost).concerning(Object{"delayed_exchange", "later"}, delayed.Names("later").OwnsQueue), DelayedExchange(vhost, "later"))
		if t.Failed() {
			return
		}
	}
	t.Logf("%d parts are smaller than their vhosts; rules: %q", smaller, slices.Sorted(maps.Keys(found)))
	if smaller < 500 || len(found) < 20 {
		t.Errorf("too few: %d parts, %d rules", smaller, len(found))
	}
}

// What random vhosts rarely have.
func TestRoutesOfOthersThatConcern(t *testing.T) {
	t.Parallel()
	queue := func(exchange string) topology.Queue {
		return topology.Queue{Type: topology.Classic, Arguments: topology.Arguments{"x-dead-letter-exchange": exchange}}
	}
	bind := func(source, destination, key string) topology.Binding {
		return topology.Binding{Source: source, Destination: destination, RoutingKey: key}
	}
	plain := topology.Queue{Type: topology.Classic}
	for name, objects := range map[string]topology.Topology{
		"keys that come by an alternate exchange": {
			Exchanges: map[string]topology.Exchange{
				"shop": {Type: "topic"}, "in": {Type: "direct", Arguments: topology.Arguments{"alternate-exchange": "rest"}},
				"rest": {Type: "fanout"}, "dead": {Type: "topic"},
			},
			Queues: map[string]topology.Queue{"work": queue("dead"), "parked": plain},
			Bindings: []topology.Binding{
				{Source: "shop", Destination: "in", ToExchange: true, RoutingKey: "order.*"}, bind("rest", "work", ""), bind("dead", "parked", "order.*"),
			},
		},
		"a key that only another binding shows": {
			Exchanges: map[string]topology.Exchange{"shop": {Type: "topic"}, "dead": {Type: "direct"}},
			Queues:    map[string]topology.Queue{"work": queue("dead"), "other": plain, "parked": plain},
			Bindings:  []topology.Binding{bind("shop", "work", "order.*"), bind("shop", "other", "order.created"), bind("dead", "parked", "order.paid")},
		},
		"another target of dead letters": {
			Exchanges: map[string]topology.Exchange{"shop": {Type: "direct"}, "dead": {Type: "direct"}},
			Queues:    map[string]topology.Queue{"source": queue("dead"), "work": {Type: "stream"}, "other": plain},
			Bindings:  []topology.Binding{bind("shop", "source", "a"), bind("shop", "source", "b"), bind("dead", "work", "a"), bind("dead", "other", "b")},
		},
	} {
		vhost := topology.Vhost{Name: "/", Topology: objects, Nodes: 1, Version: topology.Version{Major: 3, Minor: 10}}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			compare(t, 0, ofPipeline(newGraph(vhost), "orders", []string{"work"}), Pipeline(vhost, "orders", []string{"work"}))
		})
	}
}

func compare(t *testing.T, seed uint64, whole, part []Finding) {
	t.Helper()
	short := func(findings []Finding) (texts []string) {
		for _, f := range findings {
			if f.Object.Kind == "vhost" || f.Object.Kind == "policy" { // they list other queues, too
				f.Message = ""
			}
			texts = append(texts, fmt.Sprint(f.Severity, f.Rule, f.Object, f.Message))
		}
		return texts
	}
	if diff := cmp.Diff(short(whole), short(part)); diff != "" {
		t.Errorf("vhost %d: %s", seed, diff)
	}
}

// random makes vhosts with small numbers of everything, so that much is connected.
type random struct{ *rand.Rand }

func (r random) name(kind string) string { return fmt.Sprint(kind, r.IntN(6)) }

func (r random) one(of ...string) string { return of[r.IntN(len(of))] }

func (r random) likely(percent int) bool { return r.IntN(100) < percent }

func (r random) exchange() string {
	return r.one(r.name("e"), r.name("e"), r.name("e"), "orders.dlx", "orders.return", "mail.failed", "mail.dlx", "later", "later.deliver")
}

func (r random) queue() string {
	return r.one(r.name("q"), r.name("q"), r.name("q"), r.name("q"), "orders.inbox", "orders.failed", "mail.failed", "mail.retry.1s", "later.delay.inbox")
}

func (r random) key() string {
	return r.one("", "a", "b", "a.b", "a.c", "a.*", "*.b", "#", "a.#", r.name("q"), "q1")
}

func (r random) deadLetters(prefix string) topology.Arguments {
	arguments := topology.Arguments{}
	if r.likely(60) {
		arguments[prefix+"dead-letter-exchange"] = r.exchange()
	}
	if r.likely(20) {
		arguments[prefix+"dead-letter-exchange"] = ""
	}
	if r.likely(50) || arguments[prefix+"dead-letter-exchange"] == "" && r.likely(70) {
		arguments[prefix+"dead-letter-routing-key"] = r.one(r.queue(), r.key())
	}
	if r.likely(40) {
		arguments[prefix+"message-ttl"] = int64(1000)
	}
	if r.likely(20) {
		arguments[prefix+"max-length"] = int64(10)
		arguments[prefix+"overflow"] = r.one("drop-head", "reject-publish", "reject-publish-dlx")
	}
	if r.likely(20) {
		arguments[prefix+"delivery-limit"] = int64(5)
	}
	if r.likely(20) {
		arguments[prefix+"dead-letter-strategy"] = topology.AtLeastOnce
	}
	return arguments
}

func (r random) vhost() topology.Vhost {
	v := topology.Vhost{Name: "/", Topology: topology.New(), OperatorPolicies: map[string]topology.Policy{}, Nodes: 1, Version: topology.Version{Major: 4, Minor: 3}}
	if r.likely(30) {
		v.Version = topology.Version{Major: 3, Minor: 10}
	}
	v.Exchanges[""] = topology.Exchange{Type: "direct"}
	for i := range r.IntN(6) {
		exchange := topology.Exchange{Type: r.one("direct", "topic", "fanout", "headers", "topic")}
		if r.likely(25) {
			exchange.Arguments = topology.Arguments{"alternate-exchange": r.exchange()}
		}
		v.Exchanges[fmt.Sprint("e", i)] = exchange
	}
	for i := range r.IntN(7) {
		v.Queues[fmt.Sprint("q", i)] = topology.Queue{Type: r.one(topology.Classic, topology.Quorum, "stream"), Arguments: r.some(70, r.deadLetters("x-")), AutoDelete: r.likely(5)}
	}
	for i := range r.IntN(4) {
		v.Policies[fmt.Sprint("policy", i)] = topology.Policy{
			Pattern: r.one("^q1", "^q", "q3", "^e", "^orders", "^q[0-5]"), ApplyTo: r.one("all", "queues", "exchanges", "classic_queues"), Priority: r.IntN(3),
			Definition: r.either(r.deadLetters(""), topology.Arguments{"alternate-exchange": r.exchange()}),
		}
	}
	v.Topology = topology.Merge(v.Topology, r.owned())
	for range r.IntN(20) {
		b := topology.Binding{Source: r.exchange(), Destination: r.queue(), RoutingKey: r.key()}
		if r.likely(25) {
			b.Destination, b.ToExchange = r.exchange(), true
		}
		v.Bindings = append(v.Bindings, b)
	}
	v.Bindings = slices.DeleteFunc(v.Bindings, func(b topology.Binding) bool {
		_, source := v.Exchanges[b.Source]
		_, exchange := v.Exchanges[b.Destination]
		_, queue := v.Queues[b.Destination]
		return !source || b.ToExchange && !exchange || !b.ToExchange && !queue
	})
	return v
}

func (r random) some(percent int, arguments topology.Arguments) topology.Arguments {
	if r.likely(percent) {
		return arguments
	}
	return nil
}

func (r random) either(a, b topology.Arguments) topology.Arguments {
	if r.likely(70) {
		return a
	}
	return b
}

// owned returns pipelines and a delayed exchange. Some lack objects.
func (r random) owned() topology.Topology {
	all := topology.New()
	for _, name := range []string{"orders", "mail"} {
		if r.likely(60) {
			continue
		}
		p := pipeline.Pipeline{
			Name: name, Vhost: "/", Engine: r.one(pipeline.EngineWorker, pipeline.EngineConsumer), MaxAttempts: 3,
			RetryOn: []string{pipeline.ReasonRejected}, QueueType: r.one(topology.Classic, topology.Quorum), PolicyPriority: pipeline.DefaultPolicyPriority,
			Delays:     []pipeline.Delay{{Wait: time.Second, Spelling: "1s"}},
			WorkQueues: map[string]pipeline.WorkQueue{r.name("q"): {Type: r.one(topology.Classic, topology.Quorum), Attach: pipeline.AttachPolicy, FailedQueue: r.one("", r.name("q"))}},
		}
		all = topology.Merge(all, p.Expand())
	}
	if r.likely(25) {
		all = topology.Merge(all, delayed.Exchange{
			Name: "later", Vhost: "/", MaxDelay: pipeline.Delay{Wait: 5 * time.Second, Spelling: "5s"}, Precision: pipeline.Delay{Wait: time.Second, Spelling: "1s"},
		}.Expand())
	}
	lose(r, all.Exchanges)
	lose(r, all.Queues)
	lose(r, all.Policies)
	all.Bindings = slices.DeleteFunc(all.Bindings, func(topology.Binding) bool { return r.likely(2) })
	return all
}

// lose deletes some objects.
func lose[T any](r random, objects map[string]T) {
	for _, name := range slices.Sorted(maps.Keys(objects)) {
		if r.likely(2) {
			delete(objects, name)
		}
	}
}
