package audit_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/audit"
)

const layers = 40

// diamonds are layers of two exchanges, each bound to both of the next layer: a message has 2^layers ways from x0.0 to the last.
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

// Each exchange is followed once, in however many ways a message comes there.
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
		"delayed messages, perhaps nowhere":  {all(delayed, diamonds("headers"), bind(last, "paid", "")), []string{"delayed-delivery-dead-end"}},
		"delayed messages, out of a circle":  {all(delayed, diamonds("fanout"), toExchange(last, "x0.0"), bind("x3.0", "paid", "")), nil},
		"dead letters, out of a long circle": {all(dead, diamonds("fanout"), toExchange(last, "x0.0"), bind("x3.0", "parked", "")), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expectRules(t, audit.Vhost(vhost(c.vhost)), c.rules...)
		})
	}
}

// A policy that keeps two others away from their queues is told from each of them.
func TestEachShadowedPolicyIsNamed(t *testing.T) {
	t.Parallel()
	dead := args{"dead-letter-exchange": "", "dead-letter-routing-key": "parked"}
	found := audit.Vhost(vhost(classic("a", nil), classic("b", nil), parked,
		policy("dead-a", "^a$", 0, dead), policy("dead-b", "^b$", 0, dead), policy("limit", "^[ab]$", 1, args{"max-length": number(1)})))
	found = slices.DeleteFunc(found, func(f audit.Finding) bool { return f.Rule != "policy-shadows-dead-letter" })
	if len(found) != 2 {
		t.Fatalf("found %+v", found)
	}
	for i, queue := range []string{"a", "b"} {
		f := found[i]
		if f.Object != (audit.Object{Kind: "policy", Name: "limit"}) || !strings.Contains(f.Message, fmt.Sprintf("queue %q", queue)) ||
			!strings.Contains(f.Message, "dead-"+queue) || !strings.Contains(f.Remedy, "dead-"+queue) {
			t.Errorf("%s: %+v", queue, f)
		}
	}
}

// What a policy and an operator policy set alike is found at the same one each time.
func TestOriginIsTheSameEachTime(t *testing.T) {
	t.Parallel()
	v := vhost(events, policy("own", "^events", 1001, args{"message-ttl": number(1000)}), operator("org", "^events", args{"message-ttl": number(1000)}))
	first := audit.Vhost(v)
	for range 50 {
		if next := audit.Vhost(v); fmt.Sprint(next) != fmt.Sprint(first) {
			t.Fatalf("found %+v, then %+v", first, next)
		}
	}
}
