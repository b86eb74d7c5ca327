package preflight

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// events returns a delayed exchange with three levels.
func events() delayed.Exchange {
	return delayed.Exchange{
		Name: "events", Vhost: "/", Type: "topic", PolicyPriority: delayed.DefaultPolicyPriority,
		MaxDelay: pipeline.Delay{Wait: 7 * time.Second, Spelling: "7s"}, Precision: pipeline.Delay{Wait: time.Second, Spelling: "1s"},
	}
}

func TestCheckDelayedExchange(t *testing.T) {
	t.Parallel()
	spelled := func(spelling string) pipeline.Delay {
		wait, err := pipeline.ParseDelay(spelling)
		require.NoError(t, err)
		return pipeline.Delay{Wait: wait, Spelling: spelling}
	}
	require.Empty(t, CheckDelayedExchange(events()), "a good one")
	for want, change := range map[string]func(*delayed.Exchange){
		"max_delay: Invalid duration":                             func(e *delayed.Exchange) { e.MaxDelay = spelled("0s") },
		"precision: Invalid duration":                             func(e *delayed.Exchange) { e.Precision = spelled("0s") },
		"precision: Precision too coarse":                         func(e *delayed.Exchange) { e.Precision = spelled("8s") },
		"precision: Precision out of range":                       func(e *delayed.Exchange) { e.MaxDelay, e.Precision = spelled("87600h"), spelled("70000h") },
		"name: Reserved character in the delayed exchange's name": func(e *delayed.Exchange) { e.Name = "a/b" },
		"name: Reserved delayed exchange name":                    func(e *delayed.Exchange) { e.Name = "amq.events" },
		"name: Empty delayed exchange name":                       func(e *delayed.Exchange) { e.Name = "" },
		"name: Line break in the delayed exchange's name":         func(e *delayed.Exchange) { e.Name = "a\nb" },
		"name: Name too long":                                     func(e *delayed.Exchange) { e.Name = strings.Repeat("n", 240) },
		"max_delay: Definition too long":                          func(e *delayed.Exchange) { e.MaxDelay.Spelling = "7s" + strings.Repeat("0ms", 1500) },
	} {
		e := events()
		change(&e)
		require.Equal(t, want, headings(CheckDelayedExchange(e)))
	}
}

// problems returns the problems of the findings with one of the causes.
func (f Findings) problems(causes ...Cause) []Problem {
	var all []Problem
	for _, found := range f.Of(causes...) {
		all = append(all, found.Problem)
	}
	return all
}

// headings lists paths and summaries.
func headings(problems []Problem) string {
	var all []string
	for _, p := range problems {
		all = append(all, fmt.Sprintf("%v: %s", p.Path, p.Summary))
	}
	return strings.Join(all, ", ")
}

// liveEvents returns a vhost with the delayed exchange and a queue for due messages.
func liveEvents(e delayed.Exchange) topology.Vhost {
	v := topology.Vhost{Topology: e.Expand(), Version: topology.Version{Major: 4, Minor: 3}, Nodes: 1}
	v.Queues["mails"] = topology.Queue{Type: topology.Quorum}
	v.Bindings = append(v.Bindings, topology.Binding{Source: "events.deliver", Destination: "mails", RoutingKey: "mail.#"})
	return v
}

func TestCheckLiveDelayedExchange(t *testing.T) {
	t.Parallel()
	bound := func(source, destination string, toExchange bool) func(*topology.Vhost, *delayed.Exchange) {
		return func(v *topology.Vhost, _ *delayed.Exchange) {
			v.Bindings = append(v.Bindings, topology.Binding{Source: source, Destination: destination, ToExchange: toExchange})
		}
	}
	policy := func(pattern string, priority int, applyTo string, definition topology.Arguments) func(*topology.Vhost, *delayed.Exchange) {
		return func(v *topology.Vhost, _ *delayed.Exchange) {
			v.Policies["org"] = topology.Policy{Pattern: pattern, ApplyTo: applyTo, Priority: priority, Definition: definition}
		}
	}
	ttl := topology.Arguments{"message-ttl": int64(5)}
	for name, c := range map[string]struct {
		change   func(v *topology.Vhost, next *delayed.Exchange)
		refused  string
		warned   string
		mentions string
	}{
		"as it was": {change: func(*topology.Vhost, *delayed.Exchange) {}},
		"a tap":     {change: bound("events", "mails", false), refused: "name: Binding that gets messages at once", mentions: `"events.deliver"`},
		"an exchange that taps": {
			change: bound("events", "amq.fanout", true), refused: "name: Binding that gets messages at once", mentions: "amq.fanout",
		},
		"into a level's queue":    {change: bound("app", "events.delay.1s.0", false), refused: "name: Binding that bypasses the sidecar"},
		"into a level's exchange": {change: bound("app", "events.delay.1s.2", true), refused: "name: Binding that bypasses the sidecar"},
		"out of a level":          {change: bound("events.delay.1s.2", "mails", false), warned: "name: Unmanaged binding on the delayed exchange's levels"},
		"a second unrouted queue": {change: bound("events.delay.unrouted", "mails", false), warned: "name: Unmanaged binding on the exchange of unrouted messages"},
		"what is to be delayed":   {change: bound("app", "events", true)},
		"past the delay":          {change: bound("app", "events.deliver", true)},
		"into the inbox":          {change: bound("app", "events.delay.inbox", false)},
		"another type":            {change: func(_ *topology.Vhost, e *delayed.Exchange) { e.Type = "direct" }, refused: "type: Bindings would mean something else", mentions: "mail.#"},
		"another type, nothing bound": {change: func(v *topology.Vhost, e *delayed.Exchange) {
			e.Type = "direct"
			v.Bindings = slices.DeleteFunc(v.Bindings, func(b topology.Binding) bool { return b.Destination == "mails" })
		}},
		"another type, a note of a binding": {change: func(v *topology.Vhost, e *delayed.Exchange) {
			e.Type = "direct"
			i := slices.IndexFunc(v.Bindings, func(b topology.Binding) bool { return b.Destination == "mails" })
			v.Bindings[i] = e.Names().Notes().Of(v.Bindings[i], "events.deliver")
		}, refused: "type: Bindings would mean something else", mentions: "mail.#"},
		"a garbled note": {change: func(v *topology.Vhost, e *delayed.Exchange) {
			note := e.Names().Notes().Of(topology.Binding{Source: "events.deliver", Destination: "mails"}, "")
			note.RoutingKey += "0"
			v.Bindings = append(v.Bindings, note)
		}, refused: "name: Unreadable note of a deleted binding"},
		"a stronger policy":               {change: policy("^events", 1000, "queues", ttl), refused: "policy_priority: A higher-priority policy overrides the delayed exchange's", mentions: "policy_priority = 1001"},
		"a weaker policy":                 {change: policy("^events", 999, "queues", ttl)},
		"a harmless policy":               {change: policy("^events", 2000, "queues", topology.Arguments{"overflow": "reject-publish"})},
		"a policy of undecidable pattern": {change: policy(`^events\.(delay)++`, 2000, "queues", ttl), warned: "name: Policy whose pattern cannot be evaluated"},
		"an alternate exchange": {
			change:  policy(`1s\.1$`, 0, "exchanges", topology.Arguments{"alternate-exchange": "amq.fanout"}),
			refused: "name: A policy gives the delayed exchange's exchange an alternate exchange", mentions: "events.delay.1s.1",
		},
		"an alternate exchange of the deliver exchange": {change: policy(`^events\.deliver$`, 0, "exchanges", topology.Arguments{"alternate-exchange": "amq.fanout"})},
		"an operator policy": {change: func(v *topology.Vhost, _ *delayed.Exchange) {
			v.OperatorPolicies = map[string]topology.Policy{"org": {Pattern: "inbox$", ApplyTo: "queues", Definition: topology.Arguments{"max-length": int64(5)}}}
		}, refused: "name: Operator policy on the delayed exchange's own queue", mentions: "events.delay.inbox"},
		"a queue like a level": {change: func(v *topology.Vhost, _ *delayed.Exchange) {
			v.Queues["events.delay.5m.3"] = topology.Queue{Type: topology.Classic}
		}, refused: "name: Queue of others under the delayed exchange's policy", mentions: "No other policy applies to it"},
		"a retired level": {change: func(v *topology.Vhost, e *delayed.Exchange) {
			old := *e
			old.Precision = pipeline.Delay{Wait: 2 * time.Second, Spelling: "2s"}
			v.Topology = topology.Merge(v.Topology, old.Expand())
			v.Bindings = slices.DeleteFunc(v.Bindings, func(b topology.Binding) bool {
				return b.Arguments[delayed.DefinitionArgument] == old.Definition().String()
			})
		}},
		"a damaged definition": {change: func(v *topology.Vhost, _ *delayed.Exchange) {
			for i, b := range v.Bindings {
				if _, defines := b.Arguments[delayed.DefinitionArgument]; defines {
					v.Bindings[i].Arguments = topology.Arguments{delayed.DefinitionArgument: "{"}
				}
			}
		}, warned: "name: Damaged definition"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			prior, next := events(), events()
			v := liveEvents(prior)
			c.change(&v, &next)
			f := CheckLiveDelayedExchange(next, &prior, v)
			require.Equal(t, c.refused, headings(f.problems(Wrong)), "refused")
			require.Equal(t, c.warned, headings(f.problems(Notice)), "warned")
			require.Empty(t, f.Of(InTheWay), "exists")
			require.Contains(t, fmt.Sprint(f.Of(Wrong, Notice)), c.mentions)
		})
	}
}

// Existing objects belong to another owner, except for objects of an interrupted creation. Earlier objects that the
// apply restores are the delayed exchange's own.
func TestCheckLiveDelayedExchangeFindsWhatExists(t *testing.T) {
	t.Parallel()
	e := events()
	none := topology.Vhost{Topology: topology.New(), Version: topology.Version{Major: 4, Minor: 3}, Nodes: 1}
	if f := CheckLiveDelayedExchange(e, nil, none); len(f) > 0 {
		t.Errorf("an empty vhost: %+v", f)
	}
	if f := CheckLiveDelayedExchange(e, &e, none); len(f) > 0 {
		t.Errorf("all was deleted: %+v", f)
	}
	importable := CheckLiveDelayedExchange(e, nil, liveEvents(e))
	want := []string{
		`exchange "events"`, `exchange "events.delay.0s.0"`, `exchange "events.delay.0s.1"`, `exchange "events.delay.1s.0"`, `exchange "events.delay.1s.1"`, `exchange "events.delay.1s.2"`,
		`exchange "events.delay.unrouted"`, `exchange "events.deliver"`, `policy "delay/events/queues"`, `queue "events.delay.0s.0"`,
		`queue "events.delay.1s.0"`, `queue "events.delay.1s.1"`, `queue "events.delay.1s.2"`, `queue "events.delay.inbox"`, `queue "events.delay.unrouted"`,
	}
	require.Equal(t, want, importable.listed(objectsExist))
	require.Contains(t, importable[0].OnlyPlan, "To adopt them, import the resource.")
	foreign := none
	foreign.Topology = topology.New()
	foreign.Exchanges["events"] = topology.Exchange{Type: "topic"}
	if f := CheckLiveDelayedExchange(e, nil, foreign); !slices.Equal(f.listed(objectsExist), []string{`exchange "events"`}) || !strings.Contains(f[0].OnlyPlan, "They cannot be imported: ") {
		t.Errorf("an exchange of others: %+v", f)
	}
	interrupted := none
	interrupted.Topology = e.Identity()
	interrupted.Bindings = nil
	if f := CheckLiveDelayedExchange(e, nil, interrupted); headings(f.problems(Notice, InTheWay)) != "name: Objects of an interrupted creation" {
		t.Errorf("an interrupted creation: %+v", f)
	}
	// A level that max_delay adds can belong to another owner.
	higher, v := e, liveEvents(e)
	higher.MaxDelay = pipeline.Delay{Wait: 15 * time.Second, Spelling: "15s"}
	v.Exchanges["events.delay.1s.3"] = topology.Exchange{Type: "topic"}
	if f := CheckLiveDelayedExchange(higher, &e, v); !slices.Equal(f.listed(objectsExist), []string{`exchange "events.delay.1s.3"`}) {
		t.Errorf("an exchange of others in the place of a level: %+v", f)
	}
}

// A queue of a delayed exchange cannot be a work queue, even if no other check refuses it.
func TestCheckLiveFindsQueuesOfDelayedExchanges(t *testing.T) {
	t.Parallel()
	v := liveEvents(events())
	v.Queues["events.delay.9s.0"] = topology.Queue{Type: topology.Quorum} // somebody else's queue with such a name
	for queue, refused := range map[string]bool{
		"events.delay.inbox": true, "events.delay.unrouted": true, "events.delay.1s.2": true, "events.delay.9s.0": false, "mails": false,
	} {
		p := one(pipeline.WorkQueue{})
		p.PolicyPriority = 2000
		p.WorkQueues = map[string]pipeline.WorkQueue{queue: {Type: topology.Quorum}}
		found := headings(CheckLive(p, nil, v).problems(Wrong))
		want := ""
		if refused {
			want = fmt.Sprintf("work_queues[%q]: Queue of a delayed exchange", queue)
		}
		require.Equal(t, want, found, queue)
		a := pipeline.Attachment{Pipeline: "orders", Vhost: "/", Queue: queue, WorkQueue: pipeline.WorkQueue{Type: topology.Quorum}}
		if found := headings(CheckLiveAttachment(a, nil, v).problems(Wrong)); strings.Contains(found, "queue: Queue of a delayed exchange") != refused {
			t.Errorf("%s is attached: %q", queue, found)
		}
	}
}
