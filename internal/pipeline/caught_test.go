package pipeline

import (
	"regexp"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Whatever somebody has set for the source of a binding stays as it is.
func TestCatchOverridesNothing(t *testing.T) {
	t.Parallel()
	p := Pipeline{Name: "orders", Vhost: "/", QueueType: topology.Quorum, PolicyPriority: DefaultPolicyPriority}
	policy := func(pattern, applyTo string) func(*topology.Topology) {
		return func(v *topology.Topology) {
			v.Policies["of others"] = topology.Policy{Pattern: pattern, ApplyTo: applyTo, Definition: topology.Arguments{"federation-upstream-set": "all"}}
		}
	}
	exchange := func(e topology.Exchange) func(*topology.Topology) {
		return func(v *topology.Topology) { v.Exchanges["shop.v1"] = e }
	}
	for name, c := range map[string]struct {
		change  func(*topology.Topology)
		catches bool
	}{
		"topic":              {func(*topology.Topology) {}, true},
		"headers":            {exchange(topology.Exchange{Type: "headers"}), true},
		"of a plugin":        {exchange(topology.Exchange{Type: "x-delayed-message"}), false},
		"gone":               {func(v *topology.Topology) { delete(v.Exchanges, "shop.v1") }, false},
		"alternate exchange": {exchange(topology.Exchange{Type: "topic", Arguments: topology.Arguments{"alternate-exchange": "x"}}), false},
		"policy":             {policy("^shop", "exchanges"), false},
		"policy for all":     {policy(".*", "all"), false},
		"unreadable policy":  {policy("(?<!x)(?R)?", "exchanges"), false},
		"policy of queues":   {policy(".*", "queues"), true},
		"policy of another":  {policy("^shopping$", "exchanges"), true},
		"led to": {func(v *topology.Topology) {
			v.Bindings = []topology.Binding{{Source: "all", Destination: "shop.v1", ToExchange: true}}
		}, false},
		"a queue of its name": {func(v *topology.Topology) { v.Bindings = []topology.Binding{{Source: "all", Destination: "shop.v1"}} }, true},
	} {
		vhost := topology.New()
		vhost.Exchanges["shop.v1"] = topology.Exchange{Type: "topic"}
		c.change(&vhost)
		caught := p.Catch(topology.Binding{Source: "shop.v1", Destination: "declared", RoutingKey: "order.*"}, vhost)
		if caught.Empty() == c.catches {
			t.Errorf("%s: %+v", name, caught)
		}
		for _, policy := range caught.Policies {
			if !regexp.MustCompile(policy.Pattern).MatchString("shop.v1") || regexp.MustCompile(policy.Pattern).MatchString("shop-v1") {
				t.Errorf("%s: %s", name, policy.Pattern)
			}
		}
	}
	vhost := topology.New()
	vhost.Exchanges["orders.dlx"] = topology.Exchange{Type: "fanout"}
	if caught := p.Catch(topology.Binding{Source: "orders.dlx", Destination: "declared"}, vhost); !caught.Empty() {
		t.Errorf("one of the pipeline's own: %+v", caught)
	}
}

// What catches is the pipeline's, within the names that its policy and the permissions of its user have, and is found
// again; what somebody else has made under the name of the queue is not.
func TestWhatCatchesIsThePipelines(t *testing.T) {
	t.Parallel()
	p := Pipeline{Name: "orders", Vhost: "/", QueueType: topology.Quorum, PolicyPriority: DefaultPolicyPriority}
	n, vhost := p.Names(), topology.New()
	vhost.Exchanges["shop"] = topology.Exchange{Type: "topic"}
	caught := p.Catch(topology.Binding{Source: "shop", Destination: "declared"}, vhost)
	permitted := regexp.MustCompile(`^orders\.(dlx|inbox|retry(\..+)?|return|failed(\.route)?)$`)
	for name := range caught.Exchanges {
		if !permitted.MatchString(name) {
			t.Errorf("no permission for %s", name)
		}
	}
	if !permitted.MatchString(n.CaughtQueue()) || !n.CoversQueue(n.CaughtQueue()) || !n.OwnsQueue(n.CaughtQueue()) {
		t.Errorf("%s is not covered", n.CaughtQueue())
	}
	if _, isRetry := n.DelayOf(n.CaughtQueue()); isRetry {
		t.Errorf("%s is a retry queue", n.CaughtQueue())
	}
	if owned := Owned(p, caught); !topology.Diff(caught, owned).Empty() {
		t.Errorf("owned: %+v", owned)
	}
	left := n.Catching(Owned(p, caught))
	if len(left.Exchanges) != 1 || len(left.Policies) != 1 || len(left.Bindings) != 1 || len(left.Queues) != 0 {
		t.Errorf("left: %+v", left)
	}
	if n.IsOwnQueue(n.CaughtQueue(), topology.Queue{Type: topology.Quorum}) {
		t.Error("somebody else's queue is the pipeline's")
	}
	if owned := Owned(Pipeline{Name: "other"}, caught); !owned.Empty() {
		t.Errorf("owned by another: %+v", owned)
	}
}
