package audit_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/audit"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// More findings, which are not shown on a broker.
func TestFound(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		vhost part
		rules []string
	}{
		"exchange that leads to a dead end": {
			all(classic("work", args{"x-dead-letter-exchange": "dead"}), exchange("dead", "fanout", nil), exchange("end", "fanout", nil), toExchange("dead", "end")),
			[]string{"dead-letter-unroutable"},
		},
		"alternate exchange that is missing": {
			all(classic("work", args{"x-dead-letter-exchange": "dead"}), exchange("dead", "fanout", args{"alternate-exchange": "none"})),
			[]string{"dead-letter-unroutable"},
		},
		"exchanges that lead to each other": {
			all(classic("work", args{"x-dead-letter-exchange": "a"}), exchange("a", "fanout", args{"alternate-exchange": "b"}), exchange("b", "fanout", args{"alternate-exchange": "a"})),
			[]string{"dead-letter-unroutable"},
		},
		"queue name that does not exist": {classic("work", toQueue("none", nil)), []string{"dead-letter-unroutable"}},
		"default exchange without a key": {
			all(exchange("shop", "direct", nil), bind("shop", "work", "created"), classic("work", args{"x-dead-letter-exchange": ""})),
			[]string{"dead-letter-key-unbound"},
		},
		"queue published to by name": {
			all(exchange("dead", "direct", nil), bind("dead", "parked", "dead"), parked, classic("work", args{"x-dead-letter-exchange": "dead"})),
			[]string{"dead-letter-key-unbound"},
		},
		"key of an earlier death": {
			all(classic("work", args{"x-dead-letter-exchange": "retry", "x-dead-letter-routing-key": "wait"}), exchange("retry", "topic", nil), bind("retry", "retry", "wait"),
				classic("retry", args{"x-dead-letter-exchange": "back", "x-message-ttl": number(9)}), exchange("back", "direct", nil), bind("back", "work", "work")),
			[]string{"dead-letter-key-unbound"},
		},
		"topic for some of the keys": {
			all(exchange("shop", "topic", nil), bind("shop", "work", "order.*"), exchange("dead", "topic", nil), bind("dead", "parked", "order.created"), parked, classic("work", args{"x-dead-letter-exchange": "dead"})),
			[]string{"dead-letter-key-unbound"},
		},
		"topic for none of the keys": {ordersTo("order.*", "direct", "work"), []string{"dead-letter-key-unbound"}},
		"topic for longer keys":      {ordersTo("order.*", "topic", "order.*.#.*"), []string{"dead-letter-key-unbound"}},
		"topic for keys with words":  {ordersTo("#", "topic", "*.#"), []string{"dead-letter-key-unbound"}},
		"all keys to a direct one":   {ordersTo("#", "direct", "work"), []string{"dead-letter-key-unbound"}},
		"the default exchange for any key": {
			all(exchange("shop", "fanout", nil), bind("shop", "work", ""), parked, classic("work", args{"x-dead-letter-exchange": ""})),
			[]string{"dead-letter-key-unbound"},
		},
		"the default exchange for a pattern": {
			all(exchange("shop", "topic", nil), bind("shop", "work", "order.#"), parked, classic("work", args{"x-dead-letter-exchange": ""})),
			[]string{"dead-letter-key-unbound"},
		},
		"another key behind two exchanges": {
			all(ordersTo("*.work", "topic", "none.at.all"), exchange("more", "topic", nil), through("dead", "more", "#.work"), bind("more", "parked", "work")),
			[]string{"dead-letter-key-unbound"},
		},
		"two exchanges for disjoint keys": {
			all(ordersTo("order.#", "direct", "order.paid"), exchange("in", "topic", nil), through("in", "shop", "*.created")),
			[]string{"dead-letter-key-unbound"},
		},
		"keys past an alternate exchange": {
			all(exchange("in", "direct", args{"alternate-exchange": "rest"}), bind("in", "parked", "paid"), exchange("rest", "fanout", nil), bind("rest", "work", ""),
				exchange("dead", "direct", nil), bind("dead", "parked", "paid"), parked, classic("work", args{"x-dead-letter-exchange": "dead"})),
			[]string{"dead-letter-key-unbound"},
		},
		"headers that match nothing": {
			all(exchange("dead", "headers", nil), bindWith("dead", "parked", args{"x-match": "any", "x-death-reason": "a"}), parked, classic("work", args{"x-dead-letter-exchange": "dead"})),
			[]string{"dead-letter-headers-ignored", "dead-letter-unroutable"},
		},
		"headers that match all": {
			all(exchange("dead", "headers", nil), bindWith("dead", "parked", args{"x-death-reason": "a"}), parked, classic("work", args{"x-dead-letter-exchange": "dead"})),
			[]string{"dead-letter-headers-ignored"},
		},
		"exchange that is not durable": {all(ordersTo("#", "topic", "#"), changed("dead", func(e *topology.Exchange) { e.Transient = true })), []string{"dead-letter-route-temporary"}},
		"exchange that is deleted without bindings": {
			all(ordersTo("#", "topic", "order.#"), exchange("more", "fanout", nil), through("dead", "more", "#"), bind("more", "parked", ""), changed("more", func(e *topology.Exchange) { e.AutoDelete = true })),
			[]string{"dead-letter-route-temporary"},
		},
		"exclusive target":                 {all(classic("work", toQueue("reply", nil)), passing("reply")), []string{"dead-letter-route-temporary"}},
		"delay queue that leads to itself": {classic("delay", args{"x-dead-letter-exchange": "", "x-message-ttl": number(9)}), []string{"dead-letter-cycle"}},
		"cycle through a topic": {
			all(quorum("work", args{"x-dead-letter-exchange": "dead", "x-max-length": number(9)}), exchange("dead", "topic", nil), bind("dead", "retry", "#"), classic("retry", toQueue("work", args{"x-message-ttl": number(9)}))),
			[]string{"dead-letter-cycle"},
		},
		"refused publishes that come back": {
			all(classic("work", toQueue("retry", args{"x-max-length": number(9), "x-overflow": "reject-publish-dlx"})), classic("retry", toQueue("work", args{"x-message-ttl": number(9)}))),
			[]string{"dead-letter-cycle"},
		},
		"bytes of a parking queue": {all(classic("work", toParked(nil)), classic("parked", args{"x-max-length-bytes": number(2_000_000_000)})), []string{"parking-queue-length"}},
		"operator policy on a parking queue": {
			all(classic("work", toParked(nil)), parked, operator("op", "^parked$", args{"message-ttl": number(9), "expires": number(9), "max-length": number(9)})),
			[]string{"parking-queue-expires", "parking-queue-length", "parking-queue-ttl"},
		},
		"a policy's overflow over a quorum queue's": {
			all(quorum("work", toParked(args{"x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish"})), parked, policy("head", "^work$", 0, args{"overflow": "drop-head"})),
			[]string{"at-least-once-ineffective"},
		},
		"strategy without an exchange": {quorum("work", args{"x-dead-letter-strategy": "at-least-once", "x-delivery-limit": number(-1)}), []string{"dead-letter-exchange-unset"}},
		"delayed retry without a wait": {quorum("work", toParked(args{"x-delayed-retry-type": "all"})), []string{"native-retry-ignored", "dead-letter-unroutable"}},
		"delayed retry before 4.3": {
			all(quorum("work", toParked(args{"x-delayed-retry-type": "all", "x-delayed-retry-min": number(9)})), parked, version(4, 2)),
			[]string{"native-retry-ignored"},
		},
		"retry queue that expires": {
			all(classic("work", toQueue("retry", nil)), classic("retry", toQueue("work", args{"x-message-ttl": number(9), "x-expires": number(99)}))),
			[]string{"retry-queue-expires"},
		},
		"tied policies": {
			all(classic("work", nil), parked, policy("a", "^work$", 1, toPolicy()), policy("b", "work", 1, args{"max-length": number(9)}), policy("c", "^work$", 0, args{"expires": number(9)})),
			[]string{"policy-tie"},
		},
		"missing exchange in a policy that does not apply": {
			all(classic("work", nil), parked, policy("a", "^work$", 1, args{"dead-letter-exchange": "gone", "max-in-memory-length": number(9)}), policy("b", "^work$", 0, toPolicy())),
			nil,
		},
		"the same where it applies": {
			all(classic("work", nil), parked, policy("a", "^work$", 1, args{"dead-letter-exchange": "gone", "max-in-memory-length": number(9)}), policy("b", "^work$", 0, toPolicy()), version(3, 12)),
			[]string{"dead-letter-exchange-missing"},
		},
		"unreadable policy":        {policy("a", "(?|a|b)", 1, args{"max-length": number(9)}), []string{"policy-pattern-unreadable"}},
		"pipeline without a delay": {all(expanded(topology.Quorum), unbound("orders.retry")), []string{"pipeline-delay-unbound"}},
		"pipeline whose inbox is gone": {
			all(expanded(topology.Classic), unbound("orders.dlx"), func(v *topology.Vhost) { delete(v.Queues, "orders.inbox") }),
			[]string{"pipeline-inbox-unbound"},
		},
		"work queue of another type": {
			all(expanded(topology.Quorum), classic("work", nil)),
			[]string{"policy-not-applicable"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expectRules(t, faultsIn(vhost(c.vhost)), c.rules...)
		})
	}
}

// ordersTo publishes to the queue "work" through a topic exchange. Dead letters keep their key.
func ordersTo(in, kind, out string) part {
	return all(exchange("shop", "topic", nil), bind("shop", "work", in), exchange("dead", kind, nil), bind("dead", "parked", out),
		parked, classic("work", args{"x-dead-letter-exchange": "dead"}))
}

func through(source, destination, key string) part {
	return func(v *topology.Vhost) {
		v.Bindings = append(v.Bindings, topology.Binding{Source: source, Destination: destination, ToExchange: true, RoutingKey: key})
	}
}

func changed(name string, change func(*topology.Exchange)) part {
	return func(v *topology.Vhost) {
		e := v.Exchanges[name]
		change(&e)
		v.Exchanges[name] = e
	}
}

func toExchange(source, destination string) part {
	return func(v *topology.Vhost) {
		v.Bindings = append(v.Bindings, topology.Binding{Source: source, Destination: destination, ToExchange: true})
	}
}

func toPolicy() args {
	return args{"dead-letter-exchange": "", "dead-letter-routing-key": "parked"}
}

func operator(name, pattern string, definition args) part {
	return func(v *topology.Vhost) {
		v.OperatorPolicies[name] = topology.Policy{Pattern: pattern, ApplyTo: "queues", Definition: definition}
	}
}

// A wrong policy is one finding, however many queues it applies to.
func TestPolicyIsOneFinding(t *testing.T) {
	t.Parallel()
	deadDirect := all(exchange("dead", "direct", nil), bind("dead", "parked", "dead"), parked)
	for rule, wrong := range map[string]part{
		"dead-letter-exchange-missing": policy("wrong", "^work", 0, args{"dead-letter-exchange": "missing"}),
		"dead-letter-exchange-unset":   policy("wrong", "^work", 0, args{"dead-letter-routing-key": "parked"}),
		"dead-letter-unroutable":       all(deadDirect, policy("wrong", "^work", 0, args{"dead-letter-exchange": "dead", "dead-letter-routing-key": "lost"})),
		"dead-letter-key-unbound":      all(deadDirect, policy("wrong", "^work", 0, args{"dead-letter-exchange": "dead"})),
		"delivery-limit-drops":         policy("wrong", "^work", 0, args{"delivery-limit": number(5)}),
		"at-least-once-ineffective":    all(parked, policy("wrong", "^work", 0, args{"dead-letter-exchange": "", "dead-letter-routing-key": "parked", "dead-letter-strategy": "at-least-once"})),
		"policy-shadows-dead-letter":   all(parked, policy("dead", ".*", 0, args{"dead-letter-exchange": "", "dead-letter-routing-key": "parked"}), policy("wrong", "^work", 1, args{"delivery-limit": number(-1)})),
		"parking-queue-length": all(exchange("dead", "fanout", nil), classic("source", args{"x-dead-letter-exchange": "dead"}), bind("dead", "work0", ""), bind("dead", "work1", ""), bind("dead", "work2", ""),
			bind("dead", "work3", ""), bind("dead", "work4", ""), bind("dead", "work5", ""), bind("dead", "work6", ""), policy("wrong", "^work", 0, args{"max-length": number(5), "delivery-limit": number(-1)})),
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			parts := []part{wrong}
			for i := range 7 {
				parts = append(parts, quorum(fmt.Sprint("work", i), nil))
			}
			found := faultsIn(vhost(parts...))
			ours := slices.DeleteFunc(found, func(f audit.Finding) bool { return f.Rule != rule })
			if len(ours) != 1 || ours[0].Object != (audit.Object{Kind: "policy", Name: "wrong"}) || !strings.Contains(ours[0].Message, `"work3", "work4" and 2 more`) {
				t.Errorf("found %+v", found)
			}
		})
	}
}

// A fault that depends on publishers' keys, on a full queue or on what consumers do is no error.
func TestOnlyCertainLossesAreErrors(t *testing.T) {
	t.Parallel()
	dead, byDead := exchange("dead", "direct", nil), args{"x-dead-letter-exchange": "dead"}
	expiring := func(more args) args { maps.Copy(more, args{"x-message-ttl": number(9)}); return more }
	twoKeys := all(classic("work", byDead), parked, exchange("shop", "direct", nil), bind("shop", "work", "a"), bind("shop", "work", "b"), dead,
		bind("dead", "parked", "a"), bind("dead", "work", "b"))
	for name, c := range map[string]struct {
		made func(*topology.Vhost)
		want []string
	}{
		"no room, at times":        {all(classic("work", toQueue("retry", args{"x-max-length": number(9)})), classic("retry", toQueue("work", expiring(args{})))), []string{"warning dead-letter-cycle"}},
		"always expired":           {all(classic("work", toQueue("retry", expiring(args{}))), classic("retry", toQueue("work", expiring(args{})))), []string{"error dead-letter-cycle"}},
		"a copy elsewhere":         {all(classic("work", expiring(args{"x-dead-letter-exchange": "dead"})), exchange("dead", "fanout", nil), bind("dead", "retry", ""), bind("dead", "parked", ""), parked, classic("retry", toQueue("work", expiring(args{})))), []string{"warning dead-letter-cycle"}},
		"one key of two":           {twoKeys, []string{"warning dead-letter-loop"}},
		"length without its x":     {classic("work", args{"max-length": number(9)}), []string{"warning ignored-argument"}},
		"misspelt exchange":        {classic("work", args{"dead-letter-exchange": "dead"}), []string{"error ignored-argument"}},
		"kept for no time":         {all(classic("work", toParked(nil)), classic("parked", args{"x-message-ttl": number(0)})), []string{"error parking-queue-ttl"}},
		"kept for a while":         {all(classic("work", toParked(nil)), classic("parked", args{"x-message-ttl": number(9)})), []string{"warning parking-queue-ttl"}},
		"one policy for all":       {all(classic("work", nil), parked, exchange("dead", "fanout", nil), bind("dead", "parked", ""), policy("all", ".*", 0, args{"dead-letter-exchange": "dead"})), nil},
		"not for parking queues":   {all(quorum("work", nil), parked, exchange("dead", "topic", nil), bind("dead", "parked", "#"), policy("all", ".*", 0, args{"dead-letter-exchange": "dead", "delivery-limit": number(5)})), nil},
		"names like a pipeline's":  {all(exchange("orders.return", "topic", args{"alternate-exchange": "orders.failed"}), exchange("orders.failed", "fanout", nil), classic("lost", nil), bind("orders.failed", "lost", "")), nil},
		"alternate of the default": {all(classic("work", toQueue("missing", nil)), parked, exchange("rest", "fanout", nil), bind("rest", "parked", ""), policy("all", ".*", 0, args{"alternate-exchange": "rest"})), []string{"error dead-letter-unroutable"}},
		"the default as alternate": {all(classic("work", args{"x-dead-letter-exchange": "dead", "x-dead-letter-routing-key": "parked"}), parked, exchange("dead", "direct", args{"alternate-exchange": ""})), []string{"error dead-letter-unroutable"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, f := range faultsIn(vhost(c.made)) {
				got = append(got, fmt.Sprintf("%s %s", f.Severity, f.Rule))
			}
			require.Equal(t, c.want, got)
		})
	}
}

// A pattern can have any number of wildcards before RabbitMQ 4.3.
func TestManyWildcardsTakeNoTime(t *testing.T) {
	t.Parallel()
	v := vhost(exchange("shop", "topic", nil), exchange("dead", "topic", nil), classic("work", args{"x-dead-letter-exchange": "dead"}), parked)
	for i := range 100 {
		all(bind("shop", "work", fmt.Sprintf("#.a%d.#.b.#.c.#", i)), bind("dead", "parked", fmt.Sprintf("#.b%d.#.b.#.c.#", i)))(&v)
	}
	faultsIn(v)
}

// An empty dead-letter routing key is a key. Other queues keep the keys of their messages.
func TestUnroutableWithAnEmptyKey(t *testing.T) {
	t.Parallel()
	found := faultsIn(vhost(exchange("dead", "fanout", nil),
		classic("keeps", args{"x-dead-letter-exchange": "dead"}),
		classic("sets", args{"x-dead-letter-exchange": "dead", "x-dead-letter-routing-key": ""})))
	expectRules(t, found, "dead-letter-unroutable")
	for _, f := range found {
		require.Equal(t, f.Object.Name == "sets", strings.Contains(f.Message, "routing key"), f.Message)
	}
}

func TestErrorsComeFirst(t *testing.T) {
	t.Parallel()
	found := faultsIn(vhost(quorum("b", nil), classic("a", toParked(nil)), classic("c", toQueue("c", nil)), classic("parked", args{"x-expires": number(1)})))
	var got []string
	for _, f := range found {
		got = append(got, fmt.Sprintf("%s %s %s %s", f.Severity, f.Rule, f.Object.Kind, f.Object.Name))
		if f.Message == "" || f.Remedy == "" {
			t.Errorf("%+v", f)
		}
	}
	want := []string{"error dead-letter-loop queue c", "warning delivery-limit-default vhost /", "warning parking-queue-expires queue parked"}
	require.Equal(t, want, got)
	if errors, warnings := audit.Count(found); errors != 1 || warnings != 2 {
		t.Errorf("%d errors, %d warnings", errors, warnings)
	}
	expectRules(t, audit.Without(found, []string{"dead-letter-loop", "parking-queue-expires"}), "delivery-limit-default")
}

// The findings of a pipeline are only about the routes of its own messages.
func TestPipeline(t *testing.T) {
	t.Parallel()
	v := vhost(expanded(topology.Quorum), unbound("orders.return"),
		classic("elsewhere", args{"x-dead-letter-exchange": "missing"}),
		policy("elsewhere", "^elsewhere2$", 0, args{"dead-letter-exchange": "missing"}), classic("elsewhere2", nil),
		classic("tap", args{"x-max-length": number(1), "x-overflow": "reject-publish"}), bind("orders.dlx", "tap", ""))
	expectRules(t, faultsIn(v), "dead-letter-exchange-missing", "full-target-freezes", "pipeline-return-unbound")
	expectRules(t, audit.Pipeline(v, "orders", []string{"work"}), "full-target-freezes", "pipeline-return-unbound")
	expectRules(t, audit.Pipeline(v, "bills", []string{"elsewhere2"}), "dead-letter-exchange-missing")
	expectRules(t, audit.Pipeline(v, "bills", nil))
}

// Vhosts without faults, or with unknown facts, have no findings.
func TestQuiet(t *testing.T) {
	t.Parallel()
	deadFanout := all(exchange("dead", "fanout", nil), bind("dead", "parked", ""), parked)
	for name, v := range map[string]part{
		"nothing":                   all(),
		"no dead-lettering":         all(exchange("shop", "topic", nil), classic("work", nil), bind("shop", "work", "#")),
		"limits of a work queue":    classic("work", args{"x-max-length": number(1), "x-message-ttl": number(1), "x-expires": number(1)}),
		"quorum before 4.0":         all(quorum("work", nil), version(3, 13)),
		"no delivery limit":         quorum("work", args{"x-delivery-limit": number(-1)}),
		"a retry loop":              all(classic("work", toQueue("retry", nil)), classic("retry", toQueue("work", args{"x-message-ttl": number(1)}))),
		"a retry loop of exchanges": all(classic("work", args{"x-dead-letter-exchange": "retry"}), exchange("retry", "direct", nil), exchange("shop", "direct", nil), bind("shop", "work", "k"), bind("retry", "retry", "k"), classic("retry", args{"x-dead-letter-exchange": "shop", "x-message-ttl": number(1)})),
		"keys of headers":           all(exchange("dead", "headers", nil), bind("dead", "parked", ""), parked, classic("work", args{"x-dead-letter-exchange": "dead"})),
		"keys of a hash":            all(exchange("dead", "x-consistent-hash", nil), bind("dead", "parked", "1"), parked, classic("work", args{"x-dead-letter-exchange": "dead", "x-dead-letter-routing-key": "k"})),
		"the same topic":            ordersTo("order.#", "topic", "order.#"),
		"a wider topic":             ordersTo("order.*.paid", "topic", "order.#"),
		"topics together":           all(ordersTo("#", "topic", "*.#"), bind("dead", "parked", "")),
		"a key through two":         all(ordersTo("#", "direct", "order.created"), exchange("in", "direct", nil), through("in", "shop", "order.created")),
		"keys that come back":       all(ordersTo("order.created", "topic", "none"), bind("dead", "retry", "#"), classic("retry", args{"x-dead-letter-exchange": "back", "x-message-ttl": number(9)}), exchange("back", "fanout", nil), bind("back", "work", "")),
		"keys of a delayed one":     all(exchange("shop", "x-delayed-message", nil), bind("shop", "work", "a"), exchange("dead", "direct", nil), bind("dead", "parked", "a"), parked, classic("work", args{"x-dead-letter-exchange": "dead"})),
		"keys that choose a wait":   all(ordersTo("1.#", "topic", "*.1.#"), classic("work", args{"x-dead-letter-exchange": "dead", "x-message-ttl": number(9)})),
		"headers by reason":         all(exchange("dead", "headers", nil), bindWith("dead", "parked", args{"x-match": "any-with-x", "x-first-death-reason": "rejected"}), parked, classic("work", args{"x-dead-letter-exchange": "dead"})),
		"headers of others":         all(exchange("shop", "headers", nil), bindWith("shop", "work", args{"x-kind": "a"}), classic("work", nil)),
		"temporary targets besides": all(classic("work", args{"x-dead-letter-exchange": "dead"}), deadFanout, passing("tap"), bind("dead", "tap", "")),
		"temporary sources":         all(passing("reply"), policy("all", "^reply$", 0, args{"dead-letter-exchange": "dead"}), exchange("dead", "fanout", nil), passing("end"), bind("dead", "end", "")),
		"alternate exchange":        all(exchange("dead", "direct", args{"alternate-exchange": "all"}), exchange("all", "fanout", nil), bind("all", "parked", ""), parked, classic("work", args{"x-dead-letter-exchange": "dead"})),
		"alternate by policy":       all(exchange("dead", "direct", nil), exchange("all", "fanout", nil), bind("all", "parked", ""), parked, classic("work", args{"x-dead-letter-exchange": "dead"}), policy("alternate", "^dead$", 0, args{"alternate-exchange": "all"})),
		"delayed delivery":          all(classic("delay", toQueue("work", args{"x-message-ttl": number(1)})), classic("work", args{"x-message-ttl": number(9), "x-max-length": number(9)})),
		"no dead letters of dead":   all(classic("work", nil), deadFanout, policy("dead", ".*", 0, args{"dead-letter-exchange": "dead"}), policy("except", "^parked$", 1, args{"max-length": number(1_000_000_000)})),
		"argument over policy":      all(classic("work", args{"x-dead-letter-exchange": "dead"}), deadFanout, policy("limit", "^work$", 1, args{"max-length": number(5)}), policy("dead", "^work$", 0, args{"dead-letter-exchange": "missing"})),
		"equal policies":            all(classic("work", nil), deadFanout, policy("a", "^work$", 1, args{"dead-letter-exchange": "dead"}), policy("b", "^work$", 1, args{"dead-letter-exchange": "dead", "queue-version": number(2)})),
		"a fallback policy":         all(classic("work", nil), deadFanout, policy("a", "^work$", 1, args{"dead-letter-exchange": "dead", "dead-letter-strategy": "at-least-once"}), policy("b", "^work$", 0, args{"dead-letter-exchange": "dead"})),
		"a quorum target":           all(classic("work", toParked(nil)), quorum("parked", args{"x-max-length": number(1), "x-overflow": "reject-publish", "x-delivery-limit": number(-1)})),
		"a full target goes on":     all(classic("work", toQueue("next", nil)), classic("next", toParked(args{"x-max-length": number(1), "x-overflow": "reject-publish-dlx"})), parked),
		"other arguments":           classic("work", args{"x-max-age": "1D", "x-owner": "me", "x-dead-letter-team": "us", "length": number(1), "version": number(1)}),
		"ignored but set":           all(classic("work", args{"dead-letter-exchange": "x"}), deadFanout, policy("dead", "^work$", 0, args{"dead-letter-exchange": "dead"})),
		"delayed retries":           quorum("work", args{"x-delayed-retry-type": "failed", "x-delayed-retry-min": number(1), "x-delivery-limit": number(-1)}),
		"a stream":                  func(v *topology.Vhost) { v.Queues["log"] = topology.Queue{Type: "stream"} },
		"passing queues":            all(passing("amq.gen"), policy("dead", ".*", 0, args{"dead-letter-exchange": "", "dead-letter-strategy": "at-least-once"})),
		"keys of passing queues":    all(passing("amq.gen"), exchange("dead", "direct", nil), bind("dead", "parked", "dead"), parked, policy("dead", "^amq", 0, args{"dead-letter-exchange": "dead"})),
		"a quorum pipeline":         expanded(topology.Quorum),
		"a classic pipeline":        expanded(topology.Classic),
		"a native pipeline":         expandedWith(pipeline.EngineNative, topology.Quorum, nil),
		"a counting pipeline":       expandedWith(pipeline.EngineConsumer, topology.Quorum, nil),
		"a classic counting one":    expandedWith(pipeline.EngineConsumer, topology.Classic, nil),
		"parking in a native one":   all(expandedWith(pipeline.EngineNative, topology.Quorum, nil), classic("other", args{"x-dead-letter-exchange": "orders.failed"})),
		"a pipeline of 3.10":        all(expanded(topology.Quorum), version(3, 10)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expectRules(t, faultsIn(vhost(v)))
		})
	}
}

// passing adds a queue that is deleted with its connection.
func passing(name string) part {
	return func(v *topology.Vhost) {
		v.Queues[name] = topology.Queue{Type: topology.Classic, Exclusive: true}
	}
}

// The audit follows the graph of each engine.
func TestFaultsOfEngines(t *testing.T) {
	t.Parallel()
	native, counting := expandedWith(pipeline.EngineNative, topology.Quorum, nil), expandedWith(pipeline.EngineConsumer, topology.Quorum, nil)
	altered := func(name, key string, value any) part {
		return func(v *topology.Vhost) { v.Policies[name].Definition[key] = value }
	}
	for name, c := range map[string]struct {
		vhost part
		rules []string
	}{
		"nobody is let in":      {all(counting, unbound("orders.retry")), []string{"pipeline-delay-unbound"}},
		"no way back":           {all(counting, unbound("orders.return")), []string{"pipeline-return-unbound"}},
		"a key of others":       {all(counting, altered("retry/orders/queue/work", "dead-letter-routing-key", "else")), []string{"pipeline-retry-ineffective"}},
		"no replay":             {all(native, unbound("orders.return")), []string{"pipeline-return-unbound"}},
		"another delay":         {all(native, altered("retry/orders/quorum-queues", "delayed-retry-min", number(7))), []string{"pipeline-retry-ineffective"}},
		"another type":          {all(native, altered("retry/orders/quorum-queues", "delayed-retry-type", "failed")), []string{"pipeline-retry-ineffective"}},
		"an argument":           {expandedWith(pipeline.EngineNative, topology.Quorum, args{"x-delivery-limit": number(1)}), []string{"pipeline-retry-ineffective"}},
		"a higher argument":     {expandedWith(pipeline.EngineNative, topology.Quorum, args{"x-delivery-limit": number(99)}), nil},
		"all of teams, native":  {teamsOf(pipeline.EngineNative), nil},
		"all of teams, counted": {teamsOf(pipeline.EngineConsumer), nil},
		"no work queue, native": {expandedOf(pipeline.EngineNative, topology.Quorum, nil), nil},
		"an operator's limit":   {all(native, operator("operator", "^work$", args{"delivery-limit": number(1)})), []string{"pipeline-retry-ineffective"}},
		"nowhere to be parked":  {all(native, unbound("orders.failed")), []string{"dead-letter-unroutable", "work-queue-failed-unbound"}},
		"nowhere to be counted": {all(counting, unbound("orders.failed")), []string{"dead-letter-unroutable", "work-queue-failed-unbound"}},
	} {
		found := rulesOf(faultsIn(vhost(c.vhost)))
		if want := slices.Sorted(slices.Values(c.rules)); !slices.Equal(found, want) {
			t.Errorf("%s: found %q, want %q", name, found, want)
		}
	}
}

const layers = 40

// diamonds adds layers of two exchanges, each bound to both exchanges of the next layer. A message has 2^layers routes
// from x0.0 to the last layer.
func diamonds(kind string) part {
	parts := []part{exchange("x0.0", kind, nil)}
	for layer := 1; layer <= layers; layer++ {
		for i := range 2 {
			to := fmt.Sprintf("x%d.%d", layer, i)
			parts = append(parts, exchange(to, kind, nil))
			for j := range min(layer, 2) {
				parts = append(parts, toExchange(fmt.Sprintf("x%d.%d", layer-1, j), to))
			}
		}
	}
	return all(parts...)
}

// onlyWith has the bindings of diamonds look at a header.
func onlyWith(header string) part {
	return func(v *topology.Vhost) {
		for i, b := range v.Bindings {
			if b.ToExchange && strings.HasPrefix(b.Source, "x") {
				v.Bindings[i].Arguments = args{header: "any"}
			}
		}
	}
}

// Each exchange is followed once, however many routes lead to it.
func TestWaysThatPartAndMeet(t *testing.T) {
	t.Parallel()
	dead := all(classic("work", args{"x-dead-letter-exchange": "x0.0"}), parked)
	delayed := all(events, toExchangeOf("events.deliver", "x0.0", "#"))
	last := fmt.Sprintf("x%d.1", layers)
	for name, c := range map[string]struct {
		vhost part
		rules []string
	}{
		"dead letters":                       {all(dead, diamonds("fanout"), bind(last, "parked", "")), nil},
		"dead letters, nowhere":              {all(dead, diamonds("fanout")), []string{"dead-letter-unroutable"}},
		"delayed messages":                   {all(delayed, diamonds("fanout"), bind(last, "paid", "")), nil},
		"delayed messages, nowhere":          {all(delayed, diamonds("fanout")), []string{"delayed-delivery-dead-end"}},
		"delayed messages, in a circle":      {all(delayed, diamonds("fanout"), toExchange(last, "x0.0")), []string{"delayed-delivery-dead-end"}},
		"delayed messages, perhaps nowhere":  {all(delayed, diamonds("headers"), bind(last, "paid", ""), onlyWith("kind")), []string{"delayed-delivery-dead-end"}},
		"delayed messages, out of a circle":  {all(delayed, diamonds("fanout"), toExchange(last, "x0.0"), bind("x3.0", "paid", "")), nil},
		"dead letters, out of a long circle": {all(dead, diamonds("fanout"), toExchange(last, "x0.0"), bind("x3.0", "parked", "")), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expectRules(t, faultsIn(vhost(c.vhost)), c.rules...)
		})
	}
}

// A policy that keeps two others from their queues is reported for each of them.
func TestEachShadowedPolicyIsNamed(t *testing.T) {
	t.Parallel()
	dead := args{"dead-letter-exchange": "", "dead-letter-routing-key": "parked"}
	found := faultsIn(vhost(classic("a", nil), classic("b", nil), parked,
		policy("dead-a", "^a$", 0, dead), policy("dead-b", "^b$", 0, dead), policy("limit", "^[ab]$", 1, args{"max-length": number(1)})))
	found = slices.DeleteFunc(found, func(f audit.Finding) bool { return f.Rule != "policy-shadows-dead-letter" })
	require.Len(t, found, 2)
	for i, queue := range []string{"a", "b"} {
		f := found[i]
		if f.Object != (audit.Object{Kind: "policy", Name: "limit"}) || !strings.Contains(f.Message, fmt.Sprintf("queue %q", queue)) ||
			!strings.Contains(f.Message, "dead-"+queue) || !strings.Contains(f.Remedy, "dead-"+queue) {
			t.Errorf("%s: %+v", queue, f)
		}
	}
}

// If a policy and an operator policy set the same value, the finding always names the same one.
func TestOriginIsTheSameEachTime(t *testing.T) {
	t.Parallel()
	expectTheSame(t, vhost(events, policy("own", "^events", 1001, args{"message-ttl": number(1000)}), operator("org", "^events", args{"message-ttl": number(1000)})))
}

// A pattern and a key can have the same text, and dead letters with them can take other routes.
func TestRouteIsTheSameEachTime(t *testing.T) {
	t.Parallel()
	waits := func(to string) args { return toQueue(to, args{"x-message-ttl": number(1000)}) }
	expectTheSame(t, vhost(
		exchange("patterns", "topic", nil), bind("patterns", "work", "a.*"), exchange("keys", "direct", nil), bind("keys", "work", "a.*"),
		classic("work", args{"x-dead-letter-exchange": "dead", "x-message-ttl": number(1000)}),
		exchange("dead", "topic", nil), bind("dead", "far", "a.*"), through("dead", "exact", "#"), exchange("exact", "direct", nil), bind("exact", "near", "a.*"),
		classic("near", waits("work")), classic("far", waits("farther")), classic("farther", waits("work")),
	))
}

func expectTheSame(t *testing.T, v topology.Vhost) {
	t.Helper()
	first := faultsIn(v)
	for range 50 {
		if next := faultsIn(v); fmt.Sprint(next) != fmt.Sprint(first) {
			t.Fatalf("found %+v, then %+v", first, next)
		}
	}
}
