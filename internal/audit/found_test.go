package audit_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/audit"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// More of what is found, apart from what is shown on a broker.
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
			all(classic("work", nil), parked, policy("a", "^work$", 1, toPolicy("parked")), policy("b", "work", 1, args{"max-length": number(9)}), policy("c", "^work$", 0, args{"expires": number(9)})),
			[]string{"policy-tie"},
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
			expectRules(t, audit.Vhost(vhost(c.vhost)), c.rules...)
		})
	}
}

func toPolicy(queue string) args {
	return args{"dead-letter-exchange": "", "dead-letter-routing-key": queue}
}

func toExchange(source, destination string) part {
	return func(v *topology.Vhost) {
		v.Bindings = append(v.Bindings, topology.Binding{Source: source, Destination: destination, ToExchange: true})
	}
}

func operator(name, pattern string, definition args) part {
	return func(v *topology.Vhost) {
		v.OperatorPolicies[name] = topology.Policy{Pattern: pattern, ApplyTo: "queues", Definition: definition}
	}
}

// A policy that is wrong is one finding, however many queues it reaches.
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
			found := audit.Vhost(vhost(parts...))
			ours := slices.DeleteFunc(found, func(f audit.Finding) bool { return f.Rule != rule })
			if len(ours) != 1 || ours[0].Object != (audit.Object{Kind: "policy", Name: "wrong"}) || !strings.Contains(ours[0].Message, `"work3", "work4" and 2 more`) {
				t.Errorf("found %+v", found)
			}
		})
	}
}

func TestErrorsComeFirst(t *testing.T) {
	t.Parallel()
	found := audit.Vhost(vhost(quorum("b", nil), classic("a", toParked(nil)), classic("c", toQueue("c", nil)), classic("parked", args{"x-expires": number(1)})))
	var got []string
	for _, f := range found {
		got = append(got, fmt.Sprintf("%s %s %s %s", f.Severity, f.Rule, f.Object.Kind, f.Object.Name))
		if f.Message == "" || f.Remedy == "" {
			t.Errorf("%+v", f)
		}
	}
	want := []string{"error dead-letter-loop queue c", "error parking-queue-expires queue parked", "warning delivery-limit-default vhost /"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q", got)
	}
	if errors, warnings := audit.Count(found); errors != 2 || warnings != 1 {
		t.Errorf("%d errors, %d warnings", errors, warnings)
	}
	expectRules(t, audit.Without(found, []string{"dead-letter-loop", "parking-queue-expires"}), "delivery-limit-default")
}

// A stream stops at-least-once dead letters over a message with a decimal header. On RabbitMQ 3.10 the broker would stop those of all
// other tests, too.
func TestStreamsAsTargets(t *testing.T) {
	t.Parallel()
	stream := func(v *topology.Vhost) { v.Queues["log"] = topology.Queue{Type: "stream"} }
	target := all(exchange("dead", "fanout", nil), stream, bind("dead", "log", ""))
	dead := args{"x-dead-letter-exchange": "dead", "x-delivery-limit": number(-1)}
	once := args{"x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish"}
	maps.Copy(once, dead)
	expectRules(t, audit.Vhost(vhost(target, quorum("work", once))), "stream-target-freezes")
	expectRules(t, audit.Vhost(vhost(target, quorum("work", dead))))
	expectRules(t, audit.Vhost(vhost(events, stream, bind("events.deliver", "log", "paid"))), "stream-target-freezes")
}

// What a pipeline is told is about the ways of its own messages only.
func TestPipeline(t *testing.T) {
	t.Parallel()
	v := vhost(expanded(topology.Quorum), unbound("orders.return"),
		classic("elsewhere", args{"x-dead-letter-exchange": "missing"}),
		policy("elsewhere", "^elsewhere2$", 0, args{"dead-letter-exchange": "missing"}), classic("elsewhere2", nil),
		classic("tap", args{"x-max-length": number(1), "x-overflow": "reject-publish"}), bind("orders.dlx", "tap", ""))
	expectRules(t, audit.Vhost(v), "dead-letter-exchange-missing", "full-target-freezes", "pipeline-return-unbound")
	expectRules(t, audit.Pipeline(v, "orders", []string{"work"}), "full-target-freezes", "pipeline-return-unbound")
	expectRules(t, audit.Pipeline(v, "bills", []string{"elsewhere2"}), "dead-letter-exchange-missing")
	expectRules(t, audit.Pipeline(v, "bills", nil))
}
