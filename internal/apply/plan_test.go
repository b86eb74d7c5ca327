package apply

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/stored"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

const (
	wide   = "^(work|in|caught)$"
	narrow = "^(in|caught)$"
)

// owned has a policy for its own queues and a work queue, and another policy for the other work queue.
func owned() topology.Topology {
	return topology.Topology{
		Exchanges: map[string]topology.Exchange{"catch": {Type: "fanout"}, "dlx": {Type: "fanout"}},
		Queues:    map[string]topology.Queue{"in": quorum("catch"), "caught": quorum("")},
		Bindings:  []topology.Binding{binding("dlx", "in"), binding("catch", "caught"), binding("dlx", "work")},
		Policies:  map[string]topology.Policy{"own": atLeastOnce(wide), "own/other": atLeastOnce("^other$")},
	}
}

// identity returns an exchange and a queue of the wanted objects.
func identity(wanted topology.Topology) topology.Topology {
	return topology.Topology{
		Exchanges: map[string]topology.Exchange{"dlx": wanted.Exchanges["dlx"]},
		Queues:    map[string]topology.Queue{"in": wanted.Queues["in"]},
		Bindings:  []topology.Binding{binding("dlx", "in")},
	}
}

func quorum(deadLetterExchange string) topology.Queue {
	q := topology.Queue{Type: topology.Quorum}
	if deadLetterExchange != "" {
		q.Arguments = topology.Arguments{"x-dead-letter-exchange": deadLetterExchange}
	}
	return q
}

func binding(source, queue string) topology.Binding {
	return topology.Binding{Source: source, Destination: queue}
}

func atLeastOnce(pattern string) topology.Policy {
	return topology.Policy{Pattern: pattern, ApplyTo: "queues", Priority: 10, Definition: topology.Arguments{
		"dead-letter-exchange": "dlx", "dead-letter-strategy": topology.AtLeastOnce, "overflow": "reject-publish",
	}}
}

// around returns a vhost with two work queues, and another owner's binding to an own queue.
func around(live topology.Topology) topology.Vhost {
	others := topology.New()
	others.Exchanges["foreign"] = topology.Exchange{Type: "fanout"}
	others.Queues["work"], others.Queues["other"] = quorum(""), quorum("")
	if _, exists := live.Queues["in"]; exists {
		others.Bindings = []topology.Binding{binding("foreign", "in")}
	}
	return topology.Vhost{Topology: topology.Merge(live, others), Version: topology.Version{Major: 4}}
}

// owner guards its own queues, and has one for messages without another target.
func owner() stored.Owner {
	return stored.Owner{Guard: map[string]topology.Policy{"own": atLeastOnce(narrow)}, CatchAll: "caught"}
}

func change(live, wanted topology.Topology) Change {
	return Change{Owner: owner(), Vhost: "v", All: around(live), Live: live, Wanted: wanted}
}

func stepsOf(t *testing.T) func([]step, error) []step {
	t.Helper()
	return func(steps []step, err error) []step {
		t.Helper()
		require.NoError(t, err)
		return steps
	}
}

// String lists the objects.
func (s step) String() string {
	var objects []string
	for _, name := range slices.Sorted(maps.Keys(s.exchanges)) {
		objects = append(objects, "exchange "+name)
	}
	for _, name := range slices.Sorted(maps.Keys(s.queues)) {
		objects = append(objects, "queue "+name)
	}
	for _, b := range s.bindings {
		objects = append(objects, "binding "+b.String())
	}
	for _, p := range s.policies {
		objects = append(objects, fmt.Sprintf("policy %s %s", p.Name, p.Pattern))
	}
	for _, queue := range slices.Sorted(maps.Keys(s.checks)) {
		objects = append(objects, string(s.checks[queue])+" of "+queue)
	}
	return s.do.name + ": " + strings.Join(objects, ", ")
}

func assertSteps(t *testing.T, steps []step, want ...string) {
	t.Helper()
	var got []string
	for _, s := range steps {
		got = append(got, s.String())
	}
	require.Equal(t, want, got)
}

func TestPlanCreate(t *testing.T) {
	t.Parallel()
	rest := []string{
		"put: queue in",
		"put: binding dlx -> in",
		"put: exchange catch",
		"put: queue caught",
		"put: binding catch -> caught, binding dlx -> work",
		"put: policy own " + wide + ", policy own/other ^other$",
	}
	c := change(topology.New(), owned())
	c.Identity = identity(c.Wanted)
	assertSteps(t, planCreate(c), append([]string{"put: exchange dlx"}, rest...)...)

	// While another owner's policy covers a queue to create, the owner's own policy is written first.
	c.All.Policies["all"] = topology.Policy{Pattern: ".*", ApplyTo: "all", Definition: topology.Arguments{"expires": int64(1)}}
	assertSteps(t, planCreate(c), append([]string{"put: exchange dlx", "put: policy own " + narrow}, rest...)...)

	// A policy that does not cover it makes no difference.
	c.All.Policies["all"] = topology.Policy{Pattern: "^(work|other)$", ApplyTo: "all", Definition: topology.Arguments{"expires": int64(1)}}
	assertSteps(t, planCreate(c), append([]string{"put: exchange dlx"}, rest...)...)

	for _, s := range planCreate(c) {
		require.Equal(t, removeMade, s.ifFails, s)
	}
}

// Without an exchange, the policy shows which run is the creator.
func TestPlanCreateWithoutExchange(t *testing.T) {
	t.Parallel()
	wanted := topology.New()
	wanted.Policies["own"], wanted.Bindings = atLeastOnce("^other$"), []topology.Binding{binding("dlx", "other")}
	assertSteps(t, planCreate(change(topology.New(), wanted)),
		"rehearse: binding dlx -> other", "put: policy own ^other$", "put: binding dlx -> other")
}

// If a policy covered the queue with another dead-letter exchange, dead letters can be pending.
func TestPlanCreateProvesFirst(t *testing.T) {
	t.Parallel()
	wanted := topology.New()
	wanted.Policies["own"] = topology.Policy{Pattern: "^work$", ApplyTo: "queues", Priority: 11, Definition: topology.Arguments{"max-length": int64(1)}}
	c := change(topology.New(), wanted)
	c.All.Policies["foreign"] = atLeastOnce("^work$")
	steps := planCreate(c)
	assertSteps(t, steps, "prove none pending: pending dead letters of work", "put: policy own ^work$")
	require.Equal(t, refuse, steps[0].ifFails, "the proof does not refuse")
}

func TestPlanRemove(t *testing.T) {
	t.Parallel()
	c := change(owned(), topology.Topology{})
	assertSteps(t, planDrain(c), "require unbound: exchange catch, exchange dlx, queue caught, queue in",
		"drain: contents of caught, contents of in, pending dead letters of other, pending dead letters of work")
	for _, ifUnanswered := range []failure{rollBack, goOn} {
		steps := stepsOf(t)(planRemove(c, ifUnanswered))
		assertSteps(t, steps,
			"require unbound: exchange catch, exchange dlx, queue caught, queue in",
			"unbind: binding dlx -> in",
			"prove: contents of caught, contents of in, pending dead letters of other, pending dead letters of work",
			"delete: policy own/other ^other$",
			"put: policy own "+narrow,
			"unbind: binding catch -> caught",
			"prove: contents of caught, contents of in",
			"ask: queue caught, queue in",
			"require unbound: exchange catch, exchange dlx, queue caught, queue in",
			"delete: queue caught, queue in",
			"delete: policy own "+narrow,
			"delete: exchange catch, exchange dlx",
		)
		for i, s := range steps {
			want := rollBack
			switch {
			case i == 0:
				want = stop
			case i > 8:
				want = ifUnanswered
			}
			require.Equal(t, want, s.ifFails, s)
		}
	}
}

// Manual changes of the guard stay, except for the queues that it covers.
func TestPlanRemoveKeepsThePriorityOfTheGuard(t *testing.T) {
	t.Parallel()
	live := owned()
	changed := atLeastOnce(wide)
	changed.Priority, changed.Definition = 99, topology.Arguments{"max-length": int64(7)}
	live.Policies["own"] = changed
	steps := stepsOf(t)(planRemove(change(live, topology.Topology{}), rollBack))
	changed.Pattern = narrow
	for _, s := range steps {
		if s.do == put && !s.policies[0].Equal(changed) {
			t.Errorf("got %+v", s.policies[0])
		}
	}
	// A policy that covers no other queue is not written.
	live.Policies["own"] = changed
	steps = stepsOf(t)(planRemove(change(live, topology.Topology{}), rollBack))
	require.False(t, slices.ContainsFunc(steps, func(s step) bool { return s.do == put }), steps)
}

// Shared queues must have no consumers. They are unbound last and deleted first.
func TestPlanRemoveOfSharedQueues(t *testing.T) {
	t.Parallel()
	live := owned()
	live.Queues["work"] = quorum("")
	c := change(live, topology.Topology{})
	c.SharedQueues = []string{"work"}
	steps := stepsOf(t)(planRemove(c, rollBack))
	assertSteps(t, steps,
		"require unbound: exchange catch, exchange dlx, queue caught, queue in, queue work",
		"unbind: binding dlx -> in",
		"prove: contents of caught, contents of in, pending dead letters of other, use of work",
		"ask: queue work",
		"delete: policy own/other ^other$",
		"put: policy own "+narrow,
		"unbind: binding catch -> caught, binding dlx -> work",
		"prove: contents of caught, contents of in, use of work",
		"ask: queue caught, queue in, queue work",
		"require unbound: exchange catch, exchange dlx, queue caught, queue in, queue work",
		"delete: queue work",
		"delete: queue caught, queue in",
		"delete: policy own "+narrow,
		"delete: exchange catch, exchange dlx",
	)
}

// If a binding's exchange and queue stay, the binding itself is deleted.
func TestPlanRemoveOfAnAttachment(t *testing.T) {
	t.Parallel()
	live := topology.New()
	live.Policies["attachment"], live.Bindings = atLeastOnce("^other$"), []topology.Binding{binding("return", "other")}
	steps := stepsOf(t)(planRemove(change(live, topology.Topology{}), rollBack))
	assertSteps(t, steps, "prove: pending dead letters of other", "delete: policy attachment ^other$", "unbind: binding return -> other")
}

func TestPlanForce(t *testing.T) {
	t.Parallel()
	live := owned()
	live.Queues["caught"] = topology.Queue{Type: topology.Classic}
	steps := planForce(change(live, topology.Topology{}))
	assertSteps(t, steps,
		"require unbound: exchange catch, exchange dlx, queue caught, queue in",
		"require rights: exchange catch, exchange dlx, queue caught, queue in, binding dlx -> in, binding catch -> caught, binding dlx -> work",
		"delete: policy own "+wide+", policy own/other ^other$",
		"unbind: binding dlx -> in, binding catch -> caught, binding dlx -> work",
		"delete: queue caught, queue in",
		"delete: exchange catch, exchange dlx",
	)
	require.Empty(t, steps[4].queues["caught"].Type, "the broker would refuse to delete a classic queue with messages")
}

// The last work queue is released by a narrower pattern of the same policy.
func TestPlanUpdateReleasesTheLastWorkQueue(t *testing.T) {
	t.Parallel()
	wanted := owned()
	delete(wanted.Policies, "own/other")
	wanted.Policies["own"] = atLeastOnce(narrow)
	wanted.Bindings = wanted.Bindings[:2]
	steps := stepsOf(t)(planUpdate(change(owned(), wanted)))
	assertSteps(t, steps,
		"require rights: binding dlx -> work",
		"prove none pending: pending dead letters of other, pending dead letters of work",
		"put: policy own "+narrow,
		"delete: policy own/other ^other$",
		"unbind: binding dlx -> work",
	)
	require.Equal(t, refuse, steps[1].ifFails, "the proof does not refuse")
}

// Steps that can be refused come first. Missing objects are created before others are deleted. Queues that can be kept
// come last.
func TestPlanUpdate(t *testing.T) {
	t.Parallel()
	live, wanted := owned(), owned()
	live.Exchanges["old"] = topology.Exchange{Type: "fanout"}
	live.Exchanges["catch"] = topology.Exchange{Type: "direct"}
	live.Queues["in"] = quorum("elsewhere")
	live.Queues["retired"], live.Queues["declared"] = quorum(""), quorum("")
	live.Bindings = append(live.Bindings, binding("old", "retired"), binding("old", "work"))
	wanted.Queues["new"] = quorum("")
	wanted.Bindings = append(wanted.Bindings, binding("dlx", "new"))
	wanted.Exchanges["newer"], wanted.Exchanges["newest"] = topology.Exchange{Type: "fanout"}, topology.Exchange{Type: "fanout"}
	wanted.Policies["own/1"] = atLeastOnce("^work$")
	c := change(live, wanted)
	c.SharedQueues, c.RestoresDeadLetterRoute = []string{"declared"}, true
	steps := stepsOf(t)(planUpdate(c))
	assertSteps(t, steps,
		"require unbound: exchange old, queue declared, queue in, queue retired",
		"require rights: exchange old, queue declared, queue in, queue retired, binding old -> retired, binding old -> work, binding dlx -> in",
		"try: exchange catch, queue in",
		"drain: use of declared, contents of in",
		"require unbound: exchange old, queue declared, queue in, queue retired",
		"delete if empty: queue declared, use of declared",
		"replace: queue in, binding dlx -> in, contents of in",
		"alter: policy own "+wide+", policy own/other ^other$",
		"put: exchange newer, exchange newest",
		"put: queue new",
		"replace: exchange catch",
		"put: binding dlx -> new",
		"put: policy own/1 ^work$, policy own "+wide+", policy own/other ^other$",
		"delete if empty: queue retired, binding old -> retired, contents of retired",
		"delete unless kept: exchange old",
	)
	for i, s := range steps {
		want := stop
		switch {
		case s.do == requireUnbound:
		case i < 7:
			want = refuse
		case i < 12 && (s.do == put || s.do == unbind):
			want = rollBack // "declared" comes back
		case s.do == removeIfEmpty:
			want = keep
		}
		require.Equal(t, want, s.ifFails, s)
	}
}

// A policy that would take precedence when another priority falls is deleted before, and others after.
func TestPlanUpdateOfPriorities(t *testing.T) {
	t.Parallel()
	live, wanted := owned(), owned()
	behind := atLeastOnce("^work$")
	behind.Priority = 9
	live.Policies["own/behind"] = behind
	delete(wanted.Policies, "own/other")
	lower := atLeastOnce(wide)
	lower.Priority = 5
	wanted.Policies["own"] = lower
	steps := stepsOf(t)(planUpdate(change(live, wanted)))
	assertSteps(t, steps,
		"prove none pending: pending dead letters of other",
		"delete: policy own/behind ^work$",
		"put: policy own "+wide,
		"delete: policy own/other ^other$",
	)
}

// A binding of others prevents the deletion or re-creation of its queue. Return bindings of another owner are the
// exception, and that owner's queues must then be empty too.
func TestBound(t *testing.T) {
	t.Parallel()
	replaced := owned()
	replaced.Queues["in"] = quorum("elsewhere")
	kept := owned()
	delete(kept.Queues, "caught")
	for name, test := range map[string]struct {
		wanted topology.Topology
		change func(*Change)
		want   string
	}{
		"removal":     {topology.Topology{}, nil, "foreign -> in"},
		"replacement": {replaced, nil, "foreign -> in"},
		"it stays":    {kept, nil, ""},
		"by force":    {topology.Topology{}, func(c *Change) { c.ForceTakesBindings, c.Forced = true, true }, ""},
		"forced, but": {topology.Topology{}, func(c *Change) { c.Forced = true }, "foreign -> in"},
		"on its way back": {topology.Topology{}, func(c *Change) {
			c.SharedQueues = []string{"in"}
			c.ReturnsFrom = func(b topology.Binding, _ topology.Topology) []string { return []string{"before " + b.Source} }
		}, ""},
	} {
		c := change(owned(), test.wanted)
		c.All.Bindings = append(c.All.Bindings, binding("", "in"), binding("foreign", "work"))
		if test.change != nil {
			test.change(&c)
		}
		bound := c.Bound()
		if (bound != nil) != (test.want != "") || bound != nil && !strings.Contains(bound.Error(), "  - "+test.want+"\n\nRemove") {
			t.Errorf("%s: got %v", name, bound)
		}
		require.Equal(t, name == "on its way back", c.contentChecks(c.delta().going().Queues)["before foreign"] == contents, name)
	}
}

// A binding cannot be restored if JSON hides a type: a decimal becomes a number, and an undefined value the text
// "undefined".
func TestPlansRefuseWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	const refusal = "the management API does not show the exact type"
	for name, test := range map[string]struct {
		value any
		said  string
	}{
		"text":    {"a", ""},
		"integer": {int64(1), ""},
		"boolean": {true, ""},
		"number":  {2.5, refusal},
		"nothing": {"undefined", refusal},
		"bytes":   {"Not UTF-8, base64 is: //4=", refusal},
		"table":   {map[string]any{"a": int64(1)}, refusal},
		"array":   {[]any{int64(1)}, refusal},
	} {
		wanted := owned()
		wanted.Exchanges["dlx"] = topology.Exchange{Type: "direct"}
		c := change(owned(), wanted)
		listener := binding("dlx", "other")
		listener.Arguments = topology.Arguments{"key": test.value}
		c.All.Bindings = append(c.All.Bindings, listener)
		if _, err := planUpdate(c); (err != nil) != (test.said != "") || err != nil && !strings.Contains(err.Error(), test.said) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Objects that an interrupted creation made before its definition are not created again. The guard takes its final
// form.
func TestPlanCreateGoesOnAfterAnInterruption(t *testing.T) {
	t.Parallel()
	c := change(topology.New(), owned())
	c.Identity = identity(c.Wanted)
	c.Live.Exchanges["dlx"] = c.Wanted.Exchanges["dlx"]
	c.Live.Policies["own"] = atLeastOnce(narrow)
	delete(c.Wanted.Policies, "own/other")
	assertSteps(t, planCreate(c),
		"put: queue in",
		"put: binding dlx -> in",
		"put: exchange catch",
		"put: queue caught",
		"put: binding catch -> caught, binding dlx -> work",
		"put: policy own "+wide,
	)
}
