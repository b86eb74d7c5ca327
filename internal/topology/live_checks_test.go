package topology

import (
	"strings"
	"testing"
	"time"
)

// one is a pipeline of a single work queue.
func one(w WorkQueue) Pipeline {
	return Pipeline{
		Name: "orders", Vhost: "/", MaxAttempts: 2, RetryOn: []string{ReasonRejected}, QueueType: Quorum,
		Delays: []Delay{{time.Second, "1s"}}, Shield: true, PolicyPriority: DefaultPolicyPriority,
		WorkQueues: map[string]WorkQueue{"work": w},
	}
}

func two(w WorkQueue) Pipeline {
	p := one(w)
	p.WorkQueues["other"] = WorkQueue{Type: Quorum}
	return p
}

func with(queue Queue, policies map[string]Policy) Vhost {
	return Vhost{
		Topology: Topology{Queues: map[string]Queue{"work": queue, "other": {Type: Quorum}}, Policies: policies},
		Version:  Version{4, 3}, Nodes: 1,
	}
}

func everything(definition Arguments) map[string]Policy {
	return map[string]Policy{"org": {Pattern: ".*", ApplyTo: "all", Definition: definition}}
}

func limited(queueType, overflow string) Queue {
	q := Queue{Type: queueType, Arguments: Arguments{"x-max-length": int64(5)}}
	if overflow != "" {
		q.Arguments["x-overflow"] = overflow
	}
	return q
}

func TestCheckLiveFinds(t *testing.T) {
	t.Parallel()
	quorum, classic := WorkQueue{Type: Quorum}, WorkQueue{Type: Classic}
	atMostOnce := WorkQueue{Type: Quorum, DeadLetterStrategy: AtMostOnce}
	byArguments := WorkQueue{Type: Quorum, Attach: AttachArguments}
	noShield := one(quorum)
	noShield.Shield = false
	cluster := with(Queue{Type: Quorum}, nil)
	cluster.Nodes = 3
	classicPipeline := one(atMostOnce)
	classicPipeline.QueueType = Classic
	operator := with(Queue{Type: Quorum}, nil)
	operator.OperatorPolicies = everything(Arguments{"message-ttl": int64(200)})
	boundedByOperator := with(Queue{Type: Quorum}, nil)
	boundedByOperator.OperatorPolicies = map[string]Policy{"op": {Pattern: "^work$", ApplyTo: "queues", Definition: Arguments{"max-length": int64(9)}}}
	undecidable := with(Queue{Type: Quorum}, nil)
	undecidable.OperatorPolicies = map[string]Policy{"op": {Pattern: `^orders\.(failed|inbox)++$`, ApplyTo: "queues", Definition: Arguments{"message-ttl": int64(200)}}}
	old := with(Queue{Type: Quorum, Arguments: Arguments{"x-message-ttl": int64(1000)}}, nil)
	old.Version = Version{3, 12}
	listening := with(Queue{Type: Quorum}, nil)
	listening.Bindings = []Binding{{Source: "orders.dlx", Destination: "tap"}}
	looping := with(Queue{Type: Quorum}, nil)
	looping.Bindings = []Binding{{Source: "orders.failed", Destination: "work"}}
	taken := with(Queue{Type: Quorum}, nil)
	taken.Bindings = []Binding{
		{Source: "bills.dlx", Destination: "bills.inbox", Arguments: Arguments{DefinitionArgument: "{}"}},
		{Source: "bills.return", Destination: "work", RoutingKey: "return:work"},
	}

	tapped := with(Queue{Type: Quorum}, nil)
	tapped.Bindings = []Binding{{Source: "orders.retry", Destination: "work", RoutingKey: "delay:1s"}}
	attachedTwice := with(Queue{Type: Quorum}, map[string]Policy{
		"retry/orders/attachment/work": {Pattern: "^(work)$", ApplyTo: "queues", Priority: 1000, Definition: one(atMostOnce).policyDefinition("work")},
	})
	for name, test := range map[string]struct {
		pipeline Pipeline
		vhost    Vhost
		// refused and warned are parts of what is said; empty means that nothing may be said.
		refused, warned string
	}{
		"nothing":                            {one(quorum), with(Queue{Type: Quorum}, nil), "", ""},
		"a shadowed policy":                  {one(quorum), with(Queue{Type: Quorum}, everything(Arguments{"consumer-timeout": int64(9)})), `"work" = { policy_definition = jsonencode({ "consumer-timeout" = 9 }) }`, ""},
		"a shadowed limit":                   {one(quorum), with(Queue{Type: Quorum}, everything(Arguments{"max-length": int64(9)})), `"work" = { dead_letter_strategy = "at-most-once", policy_definition = jsonencode({ "max-length" = 9 }) }`, ""},
		"a shadowed dead-letter exchange":    {one(quorum), with(Queue{Type: Quorum}, everything(Arguments{"dead-letter-exchange": "x"})), `jsonencode({ "dead-letter-exchange" = null })`, ""},
		"a shadowed key that cannot be kept": {one(classic), with(Queue{Type: Classic}, everything(Arguments{"queue-leader-locator": "balanced"})), `"queue-leader-locator" = null`, ""},
		"a shadowed limit with its overflow": {one(quorum), with(Queue{Type: Quorum}, everything(Arguments{"max-length": int64(9), "overflow": "drop-head"})), `jsonencode({ "max-length" = 9, "overflow" = "drop-head" })`, ""},
		"a routing key of its own":           {one(quorum), with(Queue{Type: Quorum, Arguments: Arguments{"x-dead-letter-routing-key": "k"}}, nil), "replaces the routing key", ""},
		"a policy that spoils the arguments": {one(byArguments), with(Queue{Type: Quorum, Arguments: byArguments.deadLetterArguments("orders")}, everything(Arguments{"overflow": "drop-head"})), "changes how the work queue dead-letters", ""},
		"a policy that does not apply":       {one(quorum), with(Queue{Type: Quorum}, everything(Arguments{"ha-mode": "all", "max-length": int64(9)})), "", ""},
		"a policy of a pipeline":             {one(quorum), with(Queue{Type: Quorum}, map[string]Policy{"retry/orders/queues": {Pattern: "^(work)$", ApplyTo: "queues", Priority: 1000, Definition: Arguments{"dead-letter-exchange": "orders.dlx"}}}), "", ""},
		"an own policy that was altered":     {one(quorum), with(Queue{Type: Quorum}, map[string]Policy{"retry/orders/queues": {Pattern: "^(work)$", ApplyTo: "queues", Priority: 1000, Definition: Arguments{"dead-letter-exchange": "elsewhere"}}}), "", ""},
		"a policy with such a name":          {one(quorum), with(Queue{Type: Quorum}, map[string]Policy{"retry/org/queues": {Pattern: ".*", ApplyTo: "all", Definition: Arguments{"expires": int64(9)}}}), `"expires" = null`, ""},
		"a policy that beats ours":           {one(quorum), with(Queue{Type: Quorum}, map[string]Policy{"org": {Pattern: "work", ApplyTo: "all", Priority: 1000}}), "policy_priority = 1002", ""},
		"a policy that beats the fallback":   {one(quorum), with(Queue{Type: Quorum}, map[string]Policy{"org": {Pattern: "work", ApplyTo: "all", Priority: 999}}), "policy_priority = 1001", ""},
		"an undecidable pattern":             {one(quorum), with(Queue{Type: Quorum}, map[string]Policy{"org": {Pattern: "(", ApplyTo: "all"}}), "", "cannot be told here"},
		"a bounded queue":                    {two(quorum), with(limited(Quorum, ""), nil), `"work" = { dead_letter_strategy = "at-most-once" }`, ""},
		"a bounded queue, at most once":      {two(atMostOnce), with(limited(Quorum, ""), nil), "", ""},
		"a queue bounded by an operator":     {two(quorum), boundedByOperator, `dead_letter_strategy = "at-most-once"`, ""},
		"a full queue that stops everybody":  {two(atMostOnce), with(limited(Quorum, "reject-publish"), nil), `policy_definition = jsonencode({ "overflow" = "drop-head" })`, ""},
		"a full queue that stops itself":     {one(quorum), with(limited(Quorum, "reject-publish"), nil), "", "While it is full"},
		"a full classic queue":               {one(classic), with(limited(Classic, "reject-publish"), nil), `policy_definition = jsonencode({ "overflow" = "reject-publish-dlx" })`, ""},
		"a bounded classic queue":            {one(classic), with(limited(Classic, ""), nil), "", ""},
		"x-death of clients":                 {one(quorum), old, "", `dead_letter_strategy = "at-most-once"`},
		"other arguments":                    {one(byArguments), with(Queue{Type: Quorum, Arguments: Arguments{"x-dead-letter-exchange": "x"}}, nil), `x-overflow = "reject-publish"`, ""},
		"arguments as needed":                {one(byArguments), with(Queue{Type: Quorum, Arguments: byArguments.deadLetterArguments("orders")}, nil), "", ""},
		"another strategy as argument":       {one(quorum), with(Queue{Type: Quorum, Arguments: Arguments{"x-dead-letter-strategy": AtMostOnce}}, nil), "dead-letter arguments of its own", ""},
		"an unshielded pipeline":             {noShield, with(Queue{Type: Quorum}, map[string]Policy{"org": {Pattern: `^orders\.`, ApplyTo: "all", Definition: Arguments{"expires": int64(9)}}}), "", "shield = true"},
		"a pierced shield":                   {one(quorum), with(Queue{Type: Quorum}, map[string]Policy{"org": {Pattern: `^orders\.`, ApplyTo: "all", Priority: 2000, Definition: Arguments{"expires": int64(9)}}}), "policy_priority = 2002", ""},
		"a shield pierced by a POSIX class":  {one(quorum), with(Queue{Type: Quorum}, map[string]Policy{"org": {Pattern: `^[[:lower:].]+$`, ApplyTo: "all", Priority: 2000, Definition: Arguments{"expires": int64(9)}}}), "policy_priority = 2002", ""},
		"a shield pierced, perhaps":          {one(quorum), with(Queue{Type: Quorum}, map[string]Policy{"org": {Pattern: `^\Qorders\E`, ApplyTo: "all", Priority: 2000, Definition: Arguments{"expires": int64(9)}}}), "", "the pipeline's own cannot be told here"},
		"an undecidable operator policy":     {one(quorum), undecidable, "", "Whether operator policy \"op\""},
		"a harmless policy above the shield": {one(quorum), with(Queue{Type: Quorum}, map[string]Policy{"org": {Pattern: `^orders\.`, ApplyTo: "all", Priority: 2000, Definition: Arguments{"queue-leader-locator": "balanced"}}}), "", ""},
		"an operator policy":                 {one(quorum), operator, "Operator policy on the pipeline's own queue", ""},
		"another listener":                   {one(quorum), listening, "", "Another listener"},
		"a listener to what waits":           {one(quorum), tapped, "", "is there twice"},
		"an alternate exchange":              {one(quorum), with(Queue{Type: Quorum}, map[string]Policy{"org": {Pattern: `retry$`, ApplyTo: "exchanges", Definition: Arguments{"alternate-exchange": "lost"}}}), `Policy "org" applies to exchange "orders.retry"`, ""},
		"an alternate exchange of no effect": {one(quorum), with(Queue{Type: Quorum}, map[string]Policy{"org": {Pattern: `return$`, ApplyTo: "exchanges", Definition: Arguments{"alternate-exchange": "lost"}}}), "", ""},
		"an alternate exchange of others":    {one(quorum), with(Queue{Type: Quorum}, map[string]Policy{"org": {Pattern: `^amq`, ApplyTo: "exchanges", Definition: Arguments{"alternate-exchange": "lost"}}}), "", ""},
		"an attachment that differs":         {one(quorum), attachedTwice, "Queue is attached in two ways", "Queue is attached twice"},
		"an attachment that is the same":     {one(atMostOnce), attachedTwice, "", "Queue is attached twice"},
		"what a pipeline has left":           {one(quorum), with(Queue{Type: Quorum}, map[string]Policy{"retry/aged/queues": {Pattern: "^(work)$", ApplyTo: "queues", Priority: 5000, Definition: Arguments{"dead-letter-exchange": "aged.dlx"}}}), "policy_priority = 5002", ""},
		"a declared queue of another type":   {one(WorkQueue{Type: Quorum, Declare: true}), with(Queue{Type: Classic, Arguments: Arguments{DeclaredByArgument: "orders"}}, map[string]Policy{"org": {Pattern: "work", ApplyTo: "quorum_queues", Priority: 5000}}), "policy_priority = 5002", ""},
		"a loop":                             {one(quorum), looping, "thousands of times a second", ""},
		"a queue of another pipeline":        {one(quorum), taken, `is a work queue of the pipeline "bills"`, ""},
		"a classic pipeline in a cluster":    {classicPipeline, cluster, "", "Classic pipeline in a cluster"},
		"at most once in a cluster":          {one(atMostOnce), cluster, "", "At-most-once dead-lettering in a cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := CheckLive(test.pipeline, nil, test.vhost)
			expectSaid(t, "refused", found.Problems, test.refused)
			expectSaid(t, "warned", found.Warnings, test.warned)
		})
	}
}

func expectSaid(t *testing.T, what string, problems []Problem, part string) {
	t.Helper()
	var said strings.Builder
	for _, p := range problems {
		said.WriteString(p.Summary + ": " + p.Detail + "\n")
	}
	if part == "" && said.Len() > 0 || !strings.Contains(said.String(), part) {
		t.Errorf("%s: got %s\nwant %q", what, said.String(), part)
	}
}

// A queue that was attached before has lost the keys already: that is no reason to stop a plan.
func TestShadowedLaterIsAWarning(t *testing.T) {
	t.Parallel()
	p := one(WorkQueue{Type: Quorum})
	prior := p
	found := CheckLive(p, &prior, with(Queue{Type: Quorum}, everything(Arguments{"consumer-timeout": int64(9)})))
	expectSaid(t, "refused", found.Problems, "")
	expectSaid(t, "warned", found.Warnings, `"consumer-timeout" = 9`)

	p.PolicyDefinition = Arguments{"consumer-timeout": int64(8)}
	found = CheckLive(p, &prior, with(Queue{Type: Quorum}, everything(Arguments{"consumer-timeout": int64(9)})))
	expectSaid(t, "warned", found.Warnings, "consumer-timeout is 9 there, 8 here")

	p.PolicyDefinition = Arguments{"consumer-timeout": nil}
	found = CheckLive(p, nil, with(Queue{Type: Quorum}, everything(Arguments{"consumer-timeout": int64(9)})))
	expectSaid(t, "refused", found.Problems, "")
	expectSaid(t, "warned", found.Warnings, "")
}

func TestAttachmentAndPipelineOwnNothingInCommon(t *testing.T) {
	t.Parallel()
	p := one(WorkQueue{Type: Quorum})
	a := Attachment{Pipeline: "orders", Vhost: "/", Queue: "work", WorkQueue: WorkQueue{Type: Quorum}, PolicyPriority: DefaultPolicyPriority}
	vhost := Merge(Expand(p), ExpandAttachment(a))
	if changes := Diff(Expand(p), Owned(p, vhost)); !changes.Empty() {
		t.Errorf("pipeline: %+v", changes)
	}
	if changes := Diff(ExpandAttachment(a), OwnedByAttachment(a, vhost)); !changes.Empty() {
		t.Errorf("attachment: %+v", changes)
	}
	if found := CheckLiveAttachment(a, &a, Vhost{Topology: vhost, Version: Version{4, 0}, Nodes: 1}); len(found.Problems) > 0 || len(found.Warnings) != 1 {
		t.Errorf("handing over: %+v", found)
	}
}

// An attachment is not alone where the pipeline has other work queues, and is not its own company.
func TestAttachmentIsJudgedWithTheWholePipeline(t *testing.T) {
	t.Parallel()
	a := Attachment{Pipeline: "orders", Vhost: "/", Queue: "work", WorkQueue: WorkQueue{Type: Quorum, DeadLetterStrategy: AtMostOnce}, PolicyPriority: DefaultPolicyPriority}
	vhost := with(limited(Quorum, "reject-publish"), nil)
	vhost.Bindings = []Binding{attachmentBinding("orders", "work")}
	expectSaid(t, "alone", CheckLiveAttachment(a, &a, vhost).Problems, "")
	vhost.Bindings = append(vhost.Bindings, Names("orders").returnBinding("other"))
	expectSaid(t, "in company", CheckLiveAttachment(a, nil, vhost).Problems, "stop everybody's retries")
	vhost.Bindings = append(vhost.Bindings, Binding{Source: "orders.dlx", Destination: "work"})
	expectSaid(t, "in a loop", CheckLiveAttachment(a, nil, vhost).Problems, "thousands of times a second")
}

func TestQueuesInTheWayOfAnUpdate(t *testing.T) {
	t.Parallel()
	prior, next := one(WorkQueue{Type: Quorum}), one(WorkQueue{Type: Quorum})
	next.Delays = append(next.Delays, Delay{7 * time.Second, "7s"})
	for name, test := range map[string]struct {
		queue Queue
		want  int
	}{
		"of somebody else":  {Queue{Type: Quorum}, 1},
		"one that returns":  {Queue{Type: Quorum, Arguments: Arguments{"x-dead-letter-exchange": "orders.return"}}, 0},
		"one that was made": {Expand(next).Queues["orders.retry.7s"], 0},
	} {
		vhost := with(Queue{Type: Quorum}, nil)
		vhost.Queues["orders.retry.1s"], vhost.Queues["orders.retry.7s"] = Queue{Type: Classic}, test.queue
		if got := CheckLive(next, &prior, vhost).Exists; len(got) != test.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestAttachmentsAreSeenWithoutTheirBinding(t *testing.T) {
	t.Parallel()
	a := Attachment{Pipeline: "orders", Queue: "work", WorkQueue: WorkQueue{Type: Quorum}, PolicyPriority: 1000}
	anew := ExpandAttachment(a)
	anew.Bindings = nil
	if got := Attached("orders", anew); len(got) != 1 || got[0] != "work" {
		t.Errorf("got %q", got)
	}
	if got := Attached("order", anew); len(got) != 0 {
		t.Errorf("another pipeline has %q", got)
	}
	if got := Attached("orders", Expand(one(WorkQueue{Type: Quorum}))); len(got) != 0 {
		t.Errorf("the pipeline's own are %q", got)
	}
}

// A binding with such a key and arguments makes every listing of bindings fail.
func TestTildeCannotBeAttached(t *testing.T) {
	t.Parallel()
	a := Attachment{Pipeline: "orders", Queue: "work~1", WorkQueue: WorkQueue{Type: Quorum}, PolicyPriority: 1000}
	if got := CheckAttachment(a); len(got) != 1 || got[0].Path[0] != "queue" {
		t.Errorf("got %v", got)
	}
	a.Queue = "work"
	if got := CheckAttachment(a); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}
