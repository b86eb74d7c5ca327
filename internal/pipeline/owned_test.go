package pipeline

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/stored"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// liveVhost returns a broker's objects of the pipeline, among objects of others.
func liveVhost(p Pipeline) topology.Topology {
	live := p.Expand()
	for name, workQueue := range p.WorkQueues {
		if !workQueue.Declare {
			live.Queues[name] = topology.Queue{Type: workQueue.Type}
		}
	}
	live.Exchanges["bills.dlx"] = topology.Exchange{Type: "fanout"}
	live.Queues["orders.retry.9s"] = topology.Queue{Type: topology.Quorum, Arguments: topology.Arguments{"x-dead-letter-exchange": "elsewhere"}}
	live.Queues["audit"] = topology.Queue{Type: topology.Classic}
	live.Policies["retry/bills/queues"] = topology.Policy{Pattern: "^(x)$"}
	live.Policies["ha"] = topology.Policy{Pattern: ".*"}
	live.Bindings = append(live.Bindings,
		topology.Binding{Source: "orders.dlx", Destination: "audit"},
		topology.Binding{Source: "bills.dlx", Destination: "orders.failed"},
		topology.Binding{Source: "orders.return", Destination: "created", RoutingKey: "return:created", Arguments: topology.Arguments{AttachmentArgument: true}},
		topology.Binding{Source: "orders.return", Destination: "audit", RoutingKey: "order.created"},
	)
	return live
}

func TestOwnedLeavesOutWhatOthersMade(t *testing.T) {
	t.Parallel()
	p := orders()
	want := topology.Render(p.Expand())
	require.Empty(t, cmp.Diff(want, topology.Render(p.Owned(liveVhost(p)))))
}

// One work queue's messages return to another, or somebody changed a binding.
func TestOwnedFindsReturnsGoneWrong(t *testing.T) {
	t.Parallel()
	p := orders()
	live := liveVhost(p)
	wrong := []topology.Binding{
		{Source: "orders.return", Destination: "audit", RoutingKey: "return:created"},
		{Source: "orders.return", Destination: "created", RoutingKey: "return:created", Arguments: topology.Arguments{"by": "hand"}},
	}
	live.Bindings = append(live.Bindings, wrong...)
	require.Empty(t, cmp.Diff(wrong, topology.Diff(p.Expand(), p.Owned(live)).Delete.Bindings))
	recovered, err := Recover("orders", "/", live)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(p, recovered))
}

func TestOwnedFindsRetiredQueues(t *testing.T) {
	t.Parallel()
	p := orders()
	p.Retired = []time.Duration{time.Hour}
	live := liveVhost(p)
	p.Retired = nil
	require.Contains(t, p.Owned(live).Queues, "orders.retry.1h", "a retry queue that left the schedule was not found")
}

func TestRecoverGivesBackTheSpecification(t *testing.T) {
	t.Parallel()
	p := orders()
	got, err := Recover("orders", "/", liveVhost(p))
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(p, got))
	_, err = Recover("other", "/", liveVhost(p))
	require.Error(t, err, "a pipeline that does not exist was recovered")
}

func TestDiffFindsEveryAttribute(t *testing.T) {
	t.Parallel()
	p := orders()
	for name, alter := range map[string]func(topology.Topology){
		"exchange type": func(l topology.Topology) { l.Exchanges["orders.retry"] = topology.Exchange{Type: "topic"} },
		"exchange transient": func(l topology.Topology) {
			l.Exchanges["orders.retry"] = topology.Exchange{Type: "direct", Transient: true}
		},
		"exchange internal": func(l topology.Topology) {
			l.Exchanges["orders.retry"] = topology.Exchange{Type: "direct", Internal: true}
		},
		"queue type":     func(l topology.Topology) { l.Queues["orders.retry.5s"].Arguments["x-message-ttl"] = "5000" },
		"number as text": func(l topology.Topology) { l.Queues["paid"].Arguments["x-single-active-consumer"] = "true" },
		"policy priority": func(l topology.Topology) {
			policy := l.Policies["retry/orders/queues"]
			policy.Priority++
			l.Policies["retry/orders/queues"] = policy
		},
	} {
		live := p.Expand()
		alter(live)
		require.False(t, topology.Diff(p.Expand(), live).Empty(), name)
		if cmp.Diff(topology.Render(p.Expand()), topology.Render(live)) == "" {
			t.Errorf("%s: the difference does not show", name)
		}
	}
	require.True(t, topology.Diff(p.Expand(), p.Expand()).Empty(), "a topology differs from itself")
}

func TestDeadLettersAtRiskInWorkQueues(t *testing.T) {
	t.Parallel()
	prior, next := orders(), orders()
	require.Nil(t, atRisk(prior, next.Expand()))
	next.WorkQueues = map[string]WorkQueue{"created": {Type: topology.Quorum}, "paid": {Type: topology.Classic, Declare: true}}
	require.Equal(t, []string{"a|b.c", "paid"}, atRisk(prior, next.Expand()))
	require.Equal(t, []string{"a|b.c", "created", "paid"}, atRisk(prior, topology.Topology{}))
}

// atRisk calls topology.DeadLettersAtRisk for a pipeline that is completely on the broker.
func atRisk(p Pipeline, wanted topology.Topology) []string {
	vhost := topology.Vhost{Topology: p.Expand(), Version: topology.Version{Major: 4, Minor: 3}}
	for name, w := range p.WorkQueues {
		if w.Declare {
			continue
		}
		vhost.Queues[name] = topology.Queue{Type: w.Type}
		if !w.ByPolicy() {
			vhost.Queues[name] = topology.Queue{Type: w.Type, Arguments: p.DeadLetterArguments(name)}
		}
	}
	return topology.DeadLettersAtRisk(p.Owned(vhost.Topology), wanted, vhost, declaredBy(p))
}

func declaredBy(p Pipeline) []string {
	var names []string
	for name, w := range p.WorkQueues {
		if w.Declare {
			names = append(names, name)
		}
	}
	return names
}

// The state on the broker decides. An update that failed half-way leaves policies that no configuration has.
func TestDeadLettersAtRiskByWhatIsLive(t *testing.T) {
	t.Parallel()
	strong, weak := one(WorkQueue{Type: topology.Quorum}), one(WorkQueue{Type: topology.Quorum, DeadLetterStrategy: topology.AtMostOnce})
	vhost := func(live Pipeline) topology.Vhost {
		v := topology.Vhost{Topology: live.Expand(), Version: topology.Version{Major: 4, Minor: 3}}
		v.Queues["work"], v.Queues["other"] = topology.Queue{Type: topology.Quorum}, topology.Queue{Type: topology.Quorum}
		return v
	}
	foreign := vhost(strong)
	delete(foreign.Policies, "retry/orders/queues")
	foreign.Policies["org"] = topology.Policy{Pattern: "^work$", ApplyTo: "all", Definition: topology.Arguments{"dead-letter-exchange": "x", "dead-letter-strategy": topology.AtLeastOnce, "overflow": "reject-publish"}}
	handed := vhost(strong)
	maps.Copy(handed.Policies, Attachment{Pipeline: "orders", Queue: "work", WorkQueue: WorkQueue{Type: topology.Quorum}, PolicyPriority: 1000}.Expand().Policies)
	for name, test := range map[string]struct {
		vhost  topology.Vhost
		wanted topology.Topology
		want   int
	}{
		"attached although no state says so":         {vhost(strong), orders().Expand(), 1},
		"stronger than the configuration":            {vhost(strong), weak.Expand(), 1},
		"weaker than the configuration":              {vhost(weak), strong.Expand(), 0},
		"not weaker than what it takes the place of": {foreign, strong.Expand(), 0},
		"weaker than what it takes the place of":     {foreign, weak.Expand(), 1},
		"attached by an attachment, too":             {handed, orders().Expand(), 0},
	} {
		require.Len(t, topology.DeadLettersAtRisk(strong.Owned(test.vhost.Topology), test.wanted, test.vhost, nil), test.want, name)
	}
}

// A queue's own mark cannot be removed, so it is not enough. After an interrupted change there are both bindings.
func TestReleasedQueuesAreNotRecoveredAsDeclared(t *testing.T) {
	t.Parallel()
	declared := liveVhost(orders())
	n := orders().Names()
	released, both := declared, declared
	released.Bindings = slices.DeleteFunc(slices.Clone(declared.Bindings), n.DeclaredBinding("paid").Equal)
	released.Bindings = append(released.Bindings, n.ReturnBinding("paid"))
	both.Bindings = append(slices.Clone(declared.Bindings), n.ReturnBinding("paid"))
	for name, c := range map[string]struct {
		vhost topology.Topology
		want  bool
	}{"declared": {declared, true}, "released": {released, false}, "interrupted": {both, false}} {
		p, err := Recover("orders", "/", c.vhost)
		if w, attached := p.WorkQueues["paid"]; err != nil || !attached || w.Declare != c.want {
			t.Errorf("%s: %+v, %v", name, w, err)
		}
	}
}

// RabbitMQ's management API cannot show a binding with arguments and a ~ in its key.
func TestQueuesWithATildeHaveNoMarkedBinding(t *testing.T) {
	t.Parallel()
	p := orders()
	p.WorkQueues = map[string]WorkQueue{"a~b": {Type: topology.Quorum, Declare: true}}
	vhost := p.Expand()
	if n := p.Names(); !slices.ContainsFunc(vhost.Bindings, n.ReturnBinding("a~b").Equal) || n.Declares("a~b", vhost) {
		t.Errorf("%v", vhost.Bindings)
	}
}

func TestDisowned(t *testing.T) {
	t.Parallel()
	prior := orders()
	live := prior.Owned(liveVhost(prior))
	released := func(next *Pipeline) []string { return prior.Effects(next, live).Released }
	next := orders()
	next.WorkQueues = map[string]WorkQueue{"paid": {Type: topology.Quorum}}
	require.Contains(t, released(&next), "paid", "it is attached but no longer declared")
	next.WorkQueues = nil
	require.NotContains(t, released(&next), "paid", "it was declared and removed")
	live.Queues["paid"] = topology.Queue{Type: topology.Quorum}
	require.Contains(t, released(nil), "paid", "somebody else made it")
}

// attachedVhost returns the queue "work" with this type and arguments, and the attachment's objects.
func attachedVhost(a Attachment, arguments topology.Arguments) topology.Topology {
	vhost := a.Expand()
	vhost.Queues["work"] = topology.Queue{Type: a.WorkQueue.Type, Arguments: arguments}
	vhost.Queues["other"] = topology.Queue{Type: topology.Quorum}
	return vhost
}

// An attachment's objects show its whole specification.
func TestRecoverAttachment(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		workQueue WorkQueue
		priority  int
		arguments topology.Arguments
	}{
		"quorum":        {workQueue: WorkQueue{Type: topology.Quorum, Attach: AttachPolicy}, priority: DefaultPolicyPriority},
		"classic":       {workQueue: WorkQueue{Type: topology.Classic, Attach: AttachPolicy}, priority: DefaultPolicyPriority},
		"priority":      {workQueue: WorkQueue{Type: topology.Quorum, Attach: AttachPolicy}, priority: 7},
		"at most once":  {workQueue: WorkQueue{Type: topology.Quorum, Attach: AttachPolicy, DeadLetterStrategy: topology.AtMostOnce}, priority: 7},
		"user's keys":   {workQueue: WorkQueue{Type: topology.Quorum, Attach: AttachPolicy, PolicyDefinition: topology.Arguments{"delivery-limit": int64(9)}}, priority: 7},
		"own arguments": {workQueue: WorkQueue{Type: topology.Quorum, Attach: AttachPolicy}, priority: 7, arguments: topology.Arguments{"x-max-in-memory-length": int64(5)}},
		"by arguments": {
			workQueue: WorkQueue{Type: topology.Quorum, Attach: AttachArguments}, priority: DefaultPolicyPriority,
			arguments: topology.Arguments{"x-dead-letter-exchange": "orders.dlx", "x-dead-letter-strategy": topology.AtLeastOnce, "x-overflow": "reject-publish"},
		},
		"by arguments, at most once": {
			workQueue: WorkQueue{Type: topology.Quorum, Attach: AttachArguments, DeadLetterStrategy: topology.AtMostOnce}, priority: DefaultPolicyPriority,
			arguments: topology.Arguments{"x-dead-letter-exchange": "orders.dlx"},
		},
		// Only the queue's owner decides how it is declared.
		"declared": {
			workQueue: WorkQueue{Type: topology.Quorum, Attach: AttachPolicy}, priority: DefaultPolicyPriority,
			arguments: topology.Arguments{DeclaredByArgument: "orders", "x-single-active-consumer": true},
		},
	} {
		want := Attachment{Pipeline: "orders", Vhost: "/", Queue: "work", WorkQueue: c.workQueue, PolicyPriority: c.priority}
		vhost := attachedVhost(want, c.arguments)
		got, err := RecoverAttachment("orders", "/", "work", vhost)
		if err != nil || !sameAttachment(got, want) {
			t.Errorf("%s: got %+v, %v, want %+v", name, got, err, want)
		}
		_, err = RecoverAttachment("orders", "/", "other", vhost)
		require.Error(t, err, name)
		_, err = RecoverAttachment("bills", "/", "work", vhost)
		require.Error(t, err, name)
	}
}

func sameAttachment(a, b Attachment) bool {
	same := a.WorkQueue.PolicyDefinition.Equal(b.WorkQueue.PolicyDefinition) && maps.Equal(a.WorkQueue.Arguments, b.WorkQueue.Arguments)
	v, w := a.WorkQueue, b.WorkQueue
	return same && a.Pipeline == b.Pipeline && a.Vhost == b.Vhost && a.Queue == b.Queue && a.PolicyPriority == b.PolicyPriority &&
		v.Type == w.Type && v.Attach == w.Attach && v.Declare == w.Declare && v.DeadLetterStrategy == w.DeadLetterStrategy && v.MaxAttempts == w.MaxAttempts
}

// A failed creation can leave the policy alone, and an application that re-creates its queue deletes the binding.
// Either the policy or the binding is enough.
func TestRecoverAttachmentFromAPart(t *testing.T) {
	t.Parallel()
	a := Attachment{Pipeline: "orders", Vhost: "/", Queue: "work", WorkQueue: WorkQueue{Type: topology.Quorum, Attach: AttachPolicy}, PolicyPriority: 7}
	withoutBinding := attachedVhost(a, nil)
	withoutBinding.Bindings = nil
	if got, err := RecoverAttachment("orders", "/", "work", withoutBinding); err != nil || got.PolicyPriority != 7 {
		t.Errorf("without the binding: %+v, %v", got, err)
	}

	withoutPolicy := attachedVhost(a, nil)
	withoutPolicy.Policies = nil
	if got, err := RecoverAttachment("orders", "/", "work", withoutPolicy); err != nil || got.PolicyPriority != DefaultPolicyPriority {
		t.Errorf("without the policy: %+v, %v", got, err)
	}

	// A pipeline's own binding has no mark.
	withoutPolicy.Bindings = []topology.Binding{{Source: "orders.return", Destination: "work", RoutingKey: ReturnKey("work")}}
	if got, err := RecoverAttachment("orders", "/", "work", withoutPolicy); err == nil {
		t.Errorf("a work queue of the pipeline's was recovered: %+v", got)
	}
}

func TestInterruptedCreation(t *testing.T) {
	t.Parallel()
	p := orders()
	n, whole := p.Names(), p.Expand()
	onlyExchange := func() topology.Topology {
		v := topology.New()
		v.Exchanges[n.FailedExchange()] = whole.Exchanges[n.FailedExchange()]
		return v
	}
	with := func(change func(*topology.Topology)) topology.Topology {
		v := onlyExchange()
		v.Queues[n.FailedQueue()] = whole.Queues[n.FailedQueue()]
		change(&v)
		return v
	}
	for name, test := range map[string]struct {
		vhost topology.Topology
		want  bool
	}{
		"nothing":                {topology.New(), false},
		"the exchange":           {onlyExchange(), true},
		"the failed queue, too":  {with(func(*topology.Topology) {}), true},
		"the guard, too":         {with(func(v *topology.Topology) { v.Policies = p.Guard() }), true},
		"objects of others, too": {with(func(v *topology.Topology) { v.Queues["other"] = topology.Queue{Type: topology.Classic} }), true},
		"the definition, too":    {p.Identity(), false},
		"the inbox, too":         {with(func(v *topology.Topology) { v.Queues[n.Inbox()] = whole.Queues[n.Inbox()] }), false},
		"the final policy":       {with(func(v *topology.Topology) { v.Policies = whole.Policies }), false},
		"another exchange":       {with(func(v *topology.Topology) { v.Exchanges[n.FailedExchange()] = topology.Exchange{Type: "topic"} }), false},
		"another queue":          {with(func(v *topology.Topology) { v.Queues[n.FailedQueue()] = topology.Queue{Type: topology.Classic} }), false},
		"a queue that is bound": {with(func(v *topology.Topology) {
			v.Bindings = []topology.Binding{{Source: n.FailedExchange(), Destination: "other"}}
		}), false},
		"a failed queue that is bound": {with(func(v *topology.Topology) {
			v.Bindings = []topology.Binding{{Source: "other", Destination: n.FailedQueue()}}
		}), false},
		"an exchange that is fed": {with(func(v *topology.Topology) {
			v.Bindings = []topology.Binding{{Source: "other", Destination: n.FailedExchange(), ToExchange: true}}
		}), false},
		"by the default exchange": {with(func(v *topology.Topology) {
			v.Bindings = []topology.Binding{{Destination: n.FailedQueue(), RoutingKey: n.FailedQueue()}}
		}), true},
	} {
		require.Equal(t, test.want, p.InterruptedCreation(test.vhost), name)
	}
}

func TestNotesSayWhatWasUnbound(t *testing.T) {
	t.Parallel()
	n := Names("orders")
	for _, engine := range Engines() {
		p, seen := Pipeline{Name: "orders", Engine: engine}, map[string]bool{}
		for _, b := range []topology.Binding{
			{Source: "shop", Destination: "orders.created"},
			{Source: "shop", Destination: "orders.created", RoutingKey: "order.*"},
			{Source: "shop", Destination: "orders.created", Arguments: topology.Arguments{"x-match": "all", "weight": int64(3)}},
			{Source: "orders.failed", Destination: "orders.created", ToExchange: true},
			{Source: "shop\"é", Destination: "a b", RoutingKey: "#", Arguments: topology.Arguments{"list": []any{int64(1), "two"}}},
		} {
			for _, going := range append(slices.Collect(maps.Keys(ExpandExchanges(p))), "") {
				note := n.Notes().Of(b, going)
				if noted, isNote := n.Notes().Noted(note); !isNote || !noted.Equal(b) {
					t.Errorf("%s: %s became %s, %t", engine, b, noted, isNote)
				}
				if !n.OwnsBinding(note) || Names("other").OwnsBinding(note) {
					t.Errorf("%s: whose is %s?", engine, note)
				}
				if note.Source == going || note.Destination == going {
					t.Errorf("%s: %s goes with %s", engine, note, going)
				}
			}
			note := n.Notes().Of(b, "")
			if seen[note.RoutingKey] {
				t.Errorf("%s has the key of another note", note)
			}
			seen[note.RoutingKey] = true
		}
	}
}

func TestWhatIsNoNote(t *testing.T) {
	t.Parallel()
	n := Names("orders")
	genuine := n.Notes().Of(topology.Binding{Source: "shop", Destination: "orders.created"}, "")
	for name, change := range map[string]func(*topology.Binding){
		"garbage":        func(b *topology.Binding) { b.Arguments = topology.Arguments{stored.UnboundArgument: "{"} },
		"no source":      func(b *topology.Binding) { b.Arguments = topology.Arguments{stored.UnboundArgument: `{"queue":"q"}`} },
		"a number":       func(b *topology.Binding) { b.Arguments = topology.Arguments{stored.UnboundArgument: int64(1)} },
		"no argument":    func(b *topology.Binding) { b.Arguments = nil },
		"another source": func(b *topology.Binding) { b.Source = "orders.dlx" },
		"to a queue":     func(b *topology.Binding) { b.ToExchange = false },
		"two ends": func(b *topology.Binding) {
			b.Arguments = topology.Arguments{stored.UnboundArgument: `{"source":"s","queue":"q","exchange":"e"}`}
		},
		"another destination": func(b *topology.Binding) { b.Destination = "orders.dlx" },
	} {
		b := genuine
		change(&b)
		if noted, isNote := n.Notes().Noted(b); isNote {
			t.Errorf("%s: %s", name, noted)
		}
		if garbled := n.Notes().Garbled(topology.Topology{Bindings: []topology.Binding{b}}, n.OwnsExchange); len(garbled) == 1 == (name == "no argument") {
			t.Errorf("%s: garbled: %v", name, garbled)
		}
	}
}
