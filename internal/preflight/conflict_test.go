package preflight

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

func two(w pipeline.WorkQueue) pipeline.Pipeline {
	p := one(w)
	p.WorkQueues["other"] = pipeline.WorkQueue{Type: topology.Quorum}
	return p
}

func with(queue topology.Queue, policies map[string]topology.Policy) topology.Vhost {
	return topology.Vhost{
		Topology: topology.Topology{Queues: map[string]topology.Queue{"work": queue, "other": {Type: topology.Quorum}}, Policies: policies},
		Version:  topology.Version{Major: 4, Minor: 3}, Nodes: 1,
	}
}

func everything(definition topology.Arguments) map[string]topology.Policy {
	return map[string]topology.Policy{"org": {Pattern: ".*", ApplyTo: "all", Definition: definition}}
}

func limited(queueType, overflow string) topology.Queue {
	q := topology.Queue{Type: queueType, Arguments: topology.Arguments{"x-max-length": int64(5)}}
	if overflow != "" {
		q.Arguments["x-overflow"] = overflow
	}
	return q
}

func TestCheckLiveFinds(t *testing.T) {
	t.Parallel()
	quorum, classic := pipeline.WorkQueue{Type: topology.Quorum}, pipeline.WorkQueue{Type: topology.Classic}
	atMostOnce := pipeline.WorkQueue{Type: topology.Quorum, DeadLetterStrategy: topology.AtMostOnce}
	byArguments := pipeline.WorkQueue{Type: topology.Quorum, Attach: pipeline.AttachArguments}
	cluster := with(topology.Queue{Type: topology.Quorum}, nil)
	cluster.Nodes = 3
	classicPipeline := one(atMostOnce)
	classicPipeline.QueueType = topology.Classic
	operator := with(topology.Queue{Type: topology.Quorum}, nil)
	operator.OperatorPolicies = everything(topology.Arguments{"message-ttl": int64(200)})
	boundedByOperator := with(topology.Queue{Type: topology.Quorum}, nil)
	boundedByOperator.OperatorPolicies = map[string]topology.Policy{"op": {Pattern: "^work$", ApplyTo: "queues", Definition: topology.Arguments{"max-length": int64(9)}}}
	expiredByOperator := with(topology.Queue{Type: topology.Quorum}, nil)
	expiredByOperator.OperatorPolicies = map[string]topology.Policy{"op": {Pattern: "^work$", ApplyTo: "queues", Definition: topology.Arguments{"expires": int64(9)}}}
	undecidable := with(topology.Queue{Type: topology.Quorum}, nil)
	undecidable.OperatorPolicies = map[string]topology.Policy{"op": {Pattern: `^orders\.(failed|inbox)++$`, ApplyTo: "queues", Definition: topology.Arguments{"message-ttl": int64(200)}}}
	old := with(topology.Queue{Type: topology.Quorum, Arguments: topology.Arguments{"x-message-ttl": int64(1000)}}, nil)
	old.Version = topology.Version{Major: 3, Minor: 13, Patch: 7}
	listening := with(topology.Queue{Type: topology.Quorum}, nil)
	listening.Bindings = []topology.Binding{{Source: "orders.dlx", Destination: "tap"}}
	looping := with(topology.Queue{Type: topology.Quorum}, nil)
	looping.Bindings = []topology.Binding{{Source: "orders.failed", Destination: "work"}}
	taken := with(topology.Queue{Type: topology.Quorum}, nil)
	taken.Bindings = []topology.Binding{
		{Source: "bills.failed", Destination: "bills.failed", Arguments: topology.Arguments{pipeline.DefinitionArgument: "{}"}},
		{Source: "bills.return", Destination: "work", RoutingKey: "return:work"},
	}

	// takenBy returns a vhost where the pipeline "bills" has the queue, by a policy of this priority.
	takenBy := func(priority int, arguments topology.Arguments) topology.Vhost {
		v := with(topology.Queue{Type: topology.Quorum}, map[string]topology.Policy{
			"retry/bills/queues": {Pattern: "^(work)$", ApplyTo: "queues", Priority: priority, Definition: topology.Arguments{"dead-letter-exchange": "bills.dlx"}},
		})
		v.Bindings = slices.Clone(taken.Bindings)
		v.Bindings[1].Arguments = arguments
		return v
	}
	takesOver := pipeline.WorkQueue{Type: topology.Quorum, TakeOverFrom: "bills"}
	takenWithKeys := takenBy(1000, nil)
	takenWithKeys.Policies["retry/bills/queues"].Definition["delivery-limit"] = int64(5)
	declaredByBills := takenBy(1000, topology.Arguments{pipeline.DeclaredArgument: "bills"})
	declaredByBills.Queues["work"] = topology.Queue{Type: topology.Quorum, Arguments: topology.Arguments{pipeline.DeclaredByArgument: "bills"}}

	tapped := with(topology.Queue{Type: topology.Quorum}, nil)
	tapped.Bindings = []topology.Binding{{Source: "orders.retry", Destination: "work", RoutingKey: "delay:1s"}}
	attachedTwice := with(topology.Queue{Type: topology.Quorum}, map[string]topology.Policy{
		"retry/orders/attachment/work": {Pattern: "^(work)$", ApplyTo: "queues", Priority: 1000, Definition: one(atMostOnce).PolicyContent("work")},
	})
	for name, test := range map[string]struct {
		pipeline pipeline.Pipeline
		vhost    topology.Vhost
		// refused and warned are parts of the messages. Empty means that there must be no message.
		refused, warned string
	}{
		"nothing":                            {one(quorum), with(topology.Queue{Type: topology.Quorum}, nil), "", ""},
		"a shadowed policy":                  {one(quorum), with(topology.Queue{Type: topology.Quorum}, everything(topology.Arguments{"consumer-timeout": int64(9)})), `"work" = { policy_definition_json = jsonencode({ "consumer-timeout" = 9 }) }`, ""},
		"a shadowed limit":                   {one(quorum), with(topology.Queue{Type: topology.Quorum}, everything(topology.Arguments{"max-length": int64(9)})), `"work" = { dead_letter_strategy = "at-most-once", policy_definition_json = jsonencode({ "max-length" = 9 }) }`, ""},
		"a shadowed limit of no queue":       {one(quorum), with(topology.Queue{Type: topology.Quorum}, everything(topology.Arguments{"max-length": topology.UnreachableLength + 1})), "", ""},
		"a shadowed dead-letter exchange":    {one(quorum), with(topology.Queue{Type: topology.Quorum}, everything(topology.Arguments{"dead-letter-exchange": "x"})), `jsonencode({ "dead-letter-exchange" = null })`, ""},
		"a shadowed key that cannot be kept": {one(classic), with(topology.Queue{Type: topology.Classic}, everything(topology.Arguments{"queue-leader-locator": "balanced"})), `"queue-leader-locator" = null`, ""},
		"a shadowed limit with its overflow": {one(quorum), with(topology.Queue{Type: topology.Quorum}, everything(topology.Arguments{"max-length": int64(9), "overflow": "drop-head"})), `jsonencode({ "max-length" = 9, "overflow" = "drop-head" })`, ""},
		"a routing key of its own":           {one(quorum), with(topology.Queue{Type: topology.Quorum, Arguments: topology.Arguments{"x-dead-letter-routing-key": "k"}}, nil), "replaces the routing key", ""},
		"a policy that spoils the arguments": {one(byArguments), with(topology.Queue{Type: topology.Quorum, Arguments: one(byArguments).DeadLetterArguments("work")}, everything(topology.Arguments{"overflow": "drop-head"})), "changes how the work queue dead-letters", ""},
		"a policy that does not apply":       {one(quorum), with(topology.Queue{Type: topology.Quorum}, everything(topology.Arguments{"ha-mode": "all", "max-length": int64(9)})), "", ""},
		"a policy that does not apply here":  {one(classic), with(topology.Queue{Type: topology.Classic}, everything(topology.Arguments{"max-in-memory-length": int64(9), "message-ttl": int64(9)})), "", ""},
		"a policy of a pipeline":             {one(quorum), with(topology.Queue{Type: topology.Quorum}, map[string]topology.Policy{"retry/orders/queues": {Pattern: "^(work)$", ApplyTo: "queues", Priority: 1000, Definition: topology.Arguments{"dead-letter-exchange": "orders.dlx"}}}), "", ""},
		"an own policy that was altered":     {one(quorum), with(topology.Queue{Type: topology.Quorum}, map[string]topology.Policy{"retry/orders/queues": {Pattern: "^(work)$", ApplyTo: "queues", Priority: 1000, Definition: topology.Arguments{"dead-letter-exchange": "elsewhere"}}}), "", ""},
		"a policy with such a name":          {one(quorum), with(topology.Queue{Type: topology.Quorum}, map[string]topology.Policy{"retry/org/queues": {Pattern: ".*", ApplyTo: "all", Definition: topology.Arguments{"expires": int64(9)}}}), `"expires" = null`, ""},
		"a policy that overrides ours":       {one(quorum), with(topology.Queue{Type: topology.Quorum}, map[string]topology.Policy{"org": {Pattern: "work", ApplyTo: "all", Priority: 1000}}), "policy_priority = 1001", ""},
		"an undecidable pattern":             {one(quorum), with(topology.Queue{Type: topology.Quorum}, map[string]topology.Policy{"org": {Pattern: "(", ApplyTo: "all"}}), "", "cannot tell whether policy"},
		"a bounded queue":                    {two(quorum), with(limited(topology.Quorum, ""), nil), `"work" = { dead_letter_strategy = "at-most-once" }`, ""},
		"a bounded queue, at most once":      {two(atMostOnce), with(limited(topology.Quorum, ""), nil), "", ""},
		"a queue bounded by an operator":     {two(quorum), boundedByOperator, `dead_letter_strategy = "at-most-once"`, ""},
		"a full queue that stops everybody":  {two(atMostOnce), with(limited(topology.Quorum, "reject-publish"), nil), `policy_definition_json = jsonencode({ "overflow" = "drop-head" })`, ""},
		"a full queue that stops itself":     {one(quorum), with(limited(topology.Quorum, "reject-publish"), nil), "", "While it is full"},
		"a full classic queue":               {one(classic), with(limited(topology.Classic, "reject-publish"), nil), `policy_definition_json = jsonencode({ "overflow" = "reject-publish-dlx" })`, ""},
		"a bounded classic queue":            {one(classic), with(limited(topology.Classic, ""), nil), "", ""},
		"x-death of clients":                 {one(quorum), old, "", `dead_letter_strategy = "at-most-once"`},
		"other arguments":                    {one(byArguments), with(topology.Queue{Type: topology.Quorum, Arguments: topology.Arguments{"x-dead-letter-exchange": "x"}}, nil), `x-overflow = "reject-publish"`, ""},
		"a queue that expires":               {one(quorum), with(topology.Queue{Type: topology.Quorum, Arguments: topology.Arguments{"x-expires": int64(9)}}, nil), `"work" has x-expires`, ""},
		"a queue that an operator expires":   {one(quorum), expiredByOperator, `operator policy "op" sets expires for queue "work"`, ""},
		"a queue that a policy expires":      {one(byArguments), with(topology.Queue{Type: topology.Quorum, Arguments: one(byArguments).DeadLetterArguments("work")}, map[string]topology.Policy{"a": {Pattern: "work", ApplyTo: "queues"}, "org": {Pattern: "work", ApplyTo: "queues", Definition: topology.Arguments{"expires": int64(9)}}}), `The policy "org" sets expires for queue "work"`, ""},
		"arguments as needed":                {one(byArguments), with(topology.Queue{Type: topology.Quorum, Arguments: one(byArguments).DeadLetterArguments("work")}, nil), "", ""},
		"another strategy as argument":       {one(quorum), with(topology.Queue{Type: topology.Quorum, Arguments: topology.Arguments{"x-dead-letter-strategy": topology.AtMostOnce}}, nil), "dead-letter arguments of its own", ""},
		"a policy over the own queues":       {one(quorum), with(topology.Queue{Type: topology.Quorum}, map[string]topology.Policy{"org": {Pattern: `^orders\.`, ApplyTo: "all", Priority: 2000, Definition: topology.Arguments{"expires": int64(9)}}}), "policy_priority = 2001", ""},
		"the same, of our priority":          {one(quorum), with(topology.Queue{Type: topology.Quorum}, map[string]topology.Policy{"org": {Pattern: `^orders\.`, ApplyTo: "all", Priority: 1000, Definition: topology.Arguments{"expires": int64(9)}}}), "policy_priority = 1001", ""},
		"the same, behind a harmless one":    {one(quorum), with(topology.Queue{Type: topology.Quorum}, map[string]topology.Policy{"a": {Pattern: `^orders\.`, ApplyTo: "all", Priority: 2000}, "org": {Pattern: `^orders\.`, ApplyTo: "all", Priority: 2000, Definition: topology.Arguments{"expires": int64(9)}}}), "policy_priority = 2001", ""},
		"the same by a POSIX class":          {one(quorum), with(topology.Queue{Type: topology.Quorum}, map[string]topology.Policy{"org": {Pattern: `^[[:lower:].]+$`, ApplyTo: "all", Priority: 2000, Definition: topology.Arguments{"expires": int64(9)}}}), "policy_priority = 2001", ""},
		"the same, perhaps":                  {one(quorum), with(topology.Queue{Type: topology.Quorum}, map[string]topology.Policy{"org": {Pattern: `^\Qorders\E`, ApplyTo: "all", Priority: 2000, Definition: topology.Arguments{"expires": int64(9)}}}), "", `cannot tell whether policy "org" with the pattern "^\\Qorders\\E" matches the pipeline's own queues`},
		"an undecidable operator policy":     {one(quorum), undecidable, "", "cannot tell whether operator policy \"op\""},
		"a queue named like a retry queue": {
			one(quorum), func() topology.Vhost {
				v := with(topology.Queue{Type: topology.Quorum}, map[string]topology.Policy{"team": {Pattern: `^orders\.retry`, ApplyTo: "queues", Definition: topology.Arguments{"message-ttl": int64(9)}}})
				v.Queues["orders.retry.1h"] = topology.Queue{Type: topology.Quorum}
				return v
			}(), `Queue "orders.retry.1h" has a name like the pipeline's retry queues, but is not one of them. Policy "team" applies to it today`, "",
		},
		"a queue named almost like a retry queue": {
			one(quorum), func() topology.Vhost {
				v := with(topology.Queue{Type: topology.Quorum}, nil)
				v.Queues["orders.retry.5-old"] = topology.Queue{Type: topology.Quorum}
				return v
			}(), `Queue "orders.retry.5-old" has a name like the pipeline's retry queues, but is not one of them. No other policy applies to it`, "",
		},
		"a harmless policy over the own queues": {one(quorum), with(topology.Queue{Type: topology.Quorum}, map[string]topology.Policy{"org": {Pattern: `^orders\.`, ApplyTo: "all", Priority: 2000, Definition: topology.Arguments{"queue-leader-locator": "balanced"}}}), "", ""},
		"an operator policy":                    {one(quorum), operator, "Operator policy on the pipeline's own queue", ""},
		"another listener":                      {one(quorum), listening, "", "Unmanaged binding"},
		"a listener to what waits":              {one(quorum), tapped, "", "it duplicates messages"},
		"an alternate exchange":                 {one(quorum), with(topology.Queue{Type: topology.Quorum}, map[string]topology.Policy{"org": {Pattern: `retry$`, ApplyTo: "exchanges", Definition: topology.Arguments{"alternate-exchange": "lost"}}}), `Policy "org" applies to exchange "orders.retry"`, ""},
		"an alternate exchange of no effect":    {one(quorum), with(topology.Queue{Type: topology.Quorum}, map[string]topology.Policy{"org": {Pattern: `return$`, ApplyTo: "exchanges", Definition: topology.Arguments{"alternate-exchange": "lost"}}}), "", ""},
		"an alternate exchange of others":       {one(quorum), with(topology.Queue{Type: topology.Quorum}, map[string]topology.Policy{"org": {Pattern: `^amq`, ApplyTo: "exchanges", Definition: topology.Arguments{"alternate-exchange": "lost"}}}), "", ""},
		"an attachment that differs":            {one(quorum), attachedTwice, "Queue is attached twice, differently", ""},
		"an attachment that is the same":        {one(atMostOnce), attachedTwice, "", ""},
		"what a pipeline has left":              {one(quorum), with(topology.Queue{Type: topology.Quorum}, map[string]topology.Policy{"retry/aged/queues": {Pattern: "^(work)$", ApplyTo: "queues", Priority: 5000, Definition: topology.Arguments{"dead-letter-exchange": "aged.dlx"}}}), "policy_priority = 5001", ""},
		"a declared queue of another type":      {one(pipeline.WorkQueue{Type: topology.Quorum, Declare: true}), with(topology.Queue{Type: topology.Classic, Arguments: topology.Arguments{pipeline.DeclaredByArgument: "orders"}}, map[string]topology.Policy{"org": {Pattern: "work", ApplyTo: "quorum_queues", Priority: 5000}}), "policy_priority = 5001", ""},
		"a loop":                                {one(quorum), looping, "thousands of times a second", ""},
		"a queue of another pipeline":           {one(quorum), taken, `is a work queue of the pipeline "bills"`, ""},
		"the same, taken over":                  {one(takesOver), takenBy(1000, nil), "", ""},
		"taken over from a stronger one":        {one(takesOver), takenBy(1001, nil), "policy_priority = 1001", ""},
		"taken over from who took it over":      {one(takesOver), takenBy(1001, topology.Arguments{pipeline.TakeOverArgument: "third"}), `Remove take_over_from in "bills" first`, ""},
		"taken over with its keys":              {one(takesOver), takenWithKeys, `Policy "retry/bills/queues"`, ""},
		"taken over from who declares it":       {one(takesOver), declaredByBills, "deletes the queue when it releases it", ""},
		"taken over from another":               {one(pipeline.WorkQueue{Type: topology.Quorum, TakeOverFrom: "bilsl"}), takenBy(1000, nil), `take_over_from = "bills"`, ""},
		"taken over from whom that takes it":    {one(quorum), takenBy(1000, topology.Arguments{pipeline.TakeOverArgument: "orders"}), `is a work queue of the pipeline "bills"`, ""},
		"a queue that the other one let go":     {one(quorum), takenBy(1000, topology.Arguments{pipeline.DetachedArgument: "bills"}), "", ""},
		"a classic pipeline in a cluster":       {classicPipeline, cluster, "", "Classic pipeline in a cluster"},
		"at most once in a cluster":             {one(atMostOnce), cluster, "", "At-most-once dead-lettering in a cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := CheckLive(test.pipeline, nil, test.vhost)
			expectSaid(t, "refused", found.Of(Wrong, Owned), test.refused)
			expectSaid(t, "warned", found.Of(Notice), test.warned)
		})
	}
}

// The plan that begins a hand-over does not mention it, because it can also end it.
func TestCheckLiveSaysHowAHandOverEnds(t *testing.T) {
	t.Parallel()
	quorum := pipeline.WorkQueue{Type: topology.Quorum, Attach: pipeline.AttachPolicy}
	a, p := pipeline.Attachment{Pipeline: "orders", Queue: "work", WorkQueue: quorum}, one(quorum)
	vhost := with(topology.Queue{Type: topology.Quorum}, nil)
	vhost.Topology = topology.Merge(vhost.Topology, topology.Merge(p.Expand(), a.Expand()))
	const twice = "Queue is attached twice"
	elsewhere, same, withOwn := a, a, one(pipeline.WorkQueue{Type: topology.Quorum, Attach: pipeline.AttachPolicy, FailedQueue: "f1"})
	elsewhere.WorkQueue.FailedQueue = "f2"
	same.WorkQueue.FailedQueue, same.WorkQueue.ForeignFailedQueue = "f1", true
	parks, attachedParks := vhost, vhost
	parks.Topology = topology.Merge(vhost.Topology, withOwn.Expand())
	attachedParks.Topology = topology.Merge(vhost.Topology, elsewhere.Expand())
	for name, said := range map[string]struct {
		found Findings
		want  string
	}{
		"a new work queue":  {CheckLive(p, nil, vhost).Of(Notice), ""},
		"a work queue":      {CheckLive(p, &p, vhost).Of(Notice), twice},
		"a new attachment":  {CheckLiveAttachment(a, nil, vhost).Of(Notice), ""},
		"an attached queue": {CheckLiveAttachment(a, &a, vhost).Of(Notice), twice},

		"failed queues":             {CheckLiveAttachment(elsewhere, nil, parks).Of(Wrong), "would be parked twice"},
		"failed queues, attached":   {CheckLive(withOwn, nil, attachedParks).Of(Wrong), "would be parked twice"},
		"the same failed queue":     {CheckLiveAttachment(same, nil, parks).Of(Wrong), ""},
		"the pipeline's own, parks": {CheckLiveAttachment(a, nil, parks).Of(Wrong), ""},
	} {
		expectSaid(t, name, said.found, said.want)
	}
}

// If a pipeline has the queue already, its plan's message depends on which pipeline means to keep the queue.
func TestCheckLiveOfAQueueThatTwoPipelinesHave(t *testing.T) {
	t.Parallel()
	plain, takesOver := pipeline.WorkQueue{Type: topology.Quorum}, pipeline.WorkQueue{Type: topology.Quorum, TakeOverFrom: "bills"}
	vhost := func(arguments topology.Arguments) topology.Vhost {
		v := topology.Vhost{Name: "/", Nodes: 1, Topology: one(takesOver).Expand()}
		v.Policies["retry/bills/queue/work"] = topology.Policy{Pattern: "^(work)$", ApplyTo: "queues", Priority: 1000, Definition: topology.Arguments{"dead-letter-exchange": "bills.dlx"}}
		if arguments[pipeline.TakeOverArgument] != nil {
			taken := v.Policies["retry/bills/queue/work"]
			taken.Priority = 1001
			v.Policies["retry/bills/queue/work"] = taken
		}
		v.Queues["work"] = topology.Queue{Type: topology.Quorum}
		v.Bindings = append(v.Bindings,
			topology.Binding{Source: "bills.failed", Destination: "bills.failed", Arguments: topology.Arguments{pipeline.DefinitionArgument: "{}"}},
			topology.Binding{Source: "bills.return", Destination: "work", RoutingKey: "return:work", Arguments: arguments})
		return v
	}
	for name, test := range map[string]struct {
		prior, next     pipeline.WorkQueue
		theirs          topology.Arguments
		refused, warned string
	}{
		"being taken over":       {plain, plain, topology.Arguments{pipeline.TakeOverArgument: "orders"}, "", `To cancel the move, remove the queue from "bills" instead.`},
		"taking back":            {plain, takesOver, topology.Arguments{pipeline.TakeOverArgument: "orders"}, `To cancel the move, remove the queue from "bills", and leave take_over_from out here`, ""},
		"taking over":            {takesOver, takesOver, nil, "", ""},
		"taking over no more":    {takesOver, plain, nil, "To cancel the move, remove the queue here.", ""},
		"both without a mark":    {plain, plain, nil, "", `is a work queue of the pipeline "bills"`},
		"taken over, other left": {takesOver, plain, topology.Arguments{pipeline.DetachedArgument: "bills"}, "", ""},
	} {
		prior := one(test.prior)
		found := CheckLive(one(test.next), &prior, vhost(test.theirs))
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expectSaid(t, "refused", found.Of(Wrong, Owned), test.refused)
			expectSaid(t, "warned", found.Of(Notice), test.warned)
		})
	}
}

func expectSaid(t *testing.T, what string, found Findings, part string) {
	t.Helper()
	var said strings.Builder
	for _, p := range found {
		said.WriteString(p.Summary + ": " + p.Detail + "\n")
	}
	if part == "" && said.Len() > 0 || !strings.Contains(said.String(), part) {
		t.Errorf("%s: got %s\nwant %q", what, said.String(), part)
	}
}

// The findings that list objects.
const (
	workQueuesMissing   = "Work queues do not exist"
	failedQueuesMissing = "Failed queues do not exist"
	workQueuesExist     = "Work queues exist already"
	failedQueuesExist   = "Failed queues exist already"
	objectsExist        = "Objects exist already"
)

// listed returns the objects in the finding with this summary.
func (f Findings) listed(summary string) []string {
	var objects []string
	for _, found := range f {
		for line := range strings.Lines(found.Detail) {
			if object, isListed := strings.CutPrefix(line, "  "); isListed && found.Summary == summary {
				objects = append(objects, strings.TrimPrefix(strings.TrimSuffix(object, "\n"), "- "))
			}
		}
	}
	return objects
}

// A queue that was attached before has already lost the keys, which is no reason to stop a plan.
func TestShadowedLaterIsAWarning(t *testing.T) {
	t.Parallel()
	p := one(pipeline.WorkQueue{Type: topology.Quorum})
	prior := p
	found := CheckLive(p, &prior, with(topology.Queue{Type: topology.Quorum}, everything(topology.Arguments{"consumer-timeout": int64(9)})))
	expectSaid(t, "refused", found.Of(Wrong), "")
	expectSaid(t, "warned", found.Of(Notice), `"consumer-timeout" = 9`)

	p.PolicyDefinition = topology.Arguments{"consumer-timeout": int64(8)}
	found = CheckLive(p, &prior, with(topology.Queue{Type: topology.Quorum}, everything(topology.Arguments{"consumer-timeout": int64(9)})))
	expectSaid(t, "warned", found.Of(Notice), "consumer-timeout is 9 there, 8 here")

	p.PolicyDefinition = topology.Arguments{"consumer-timeout": nil}
	found = CheckLive(p, nil, with(topology.Queue{Type: topology.Quorum}, everything(topology.Arguments{"consumer-timeout": int64(9)})))
	expectSaid(t, "refused", found.Of(Wrong), "")
	expectSaid(t, "warned", found.Of(Notice), "")
}

func TestAttachmentAndPipelineOwnNothingInCommon(t *testing.T) {
	t.Parallel()
	p := one(pipeline.WorkQueue{Type: topology.Quorum})
	a := pipeline.Attachment{Pipeline: "orders", Vhost: "/", Queue: "work", WorkQueue: pipeline.WorkQueue{Type: topology.Quorum}, PolicyPriority: pipeline.DefaultPolicyPriority}
	vhost := topology.Merge(p.Expand(), a.Expand())
	require.True(t, topology.Diff(p.Expand(), p.Owned(vhost)).Empty(), "pipeline")
	require.True(t, topology.Diff(a.Expand(), a.Owned(vhost)).Empty(), "attachment")
	if found := CheckLiveAttachment(a, &a, topology.Vhost{Topology: vhost, Version: topology.Version{Major: 4, Minor: 0}, Nodes: 1}); len(found.Of(Wrong)) > 0 || len(found.Of(Notice)) != 1 {
		t.Errorf("handing over: %+v", found)
	}
}

// An attachment is not alone if the pipeline has other work queues. It does not count itself.
func TestAttachmentIsJudgedWithTheWholePipeline(t *testing.T) {
	t.Parallel()
	a := pipeline.Attachment{Pipeline: "orders", Vhost: "/", Queue: "work", WorkQueue: pipeline.WorkQueue{Type: topology.Quorum, DeadLetterStrategy: topology.AtMostOnce}, PolicyPriority: pipeline.DefaultPolicyPriority}
	vhost := with(limited(topology.Quorum, "reject-publish"), nil)
	vhost.Bindings = []topology.Binding{pipeline.AttachmentBinding("orders", "work")}
	expectSaid(t, "alone", CheckLiveAttachment(a, &a, vhost).Of(Wrong), "")
	vhost.Bindings = append(vhost.Bindings, pipeline.Names("orders").ReturnBinding("other"))
	expectSaid(t, "in company", CheckLiveAttachment(a, nil, vhost).Of(Wrong), "stop all retries")
	vhost.Bindings = append(vhost.Bindings, topology.Binding{Source: "orders.dlx", Destination: "work"})
	expectSaid(t, "in a loop", CheckLiveAttachment(a, nil, vhost).Of(Wrong), "thousands of times a second")
}

func TestQueuesInTheWayOfAnUpdate(t *testing.T) {
	t.Parallel()
	prior, next := one(pipeline.WorkQueue{Type: topology.Quorum}), one(pipeline.WorkQueue{Type: topology.Quorum})
	next.Delays = append(next.Delays, pipeline.Delay{Wait: 7 * time.Second, Spelling: "7s"})
	for name, test := range map[string]struct {
		queue topology.Queue
		want  int
	}{
		"of somebody else":  {topology.Queue{Type: topology.Quorum}, 1},
		"one that returns":  {topology.Queue{Type: topology.Quorum, Arguments: topology.Arguments{"x-dead-letter-exchange": "orders.return"}}, 0},
		"one that was made": {next.Expand().Queues["orders.retry.7s"], 0},
	} {
		vhost := with(topology.Queue{Type: topology.Quorum}, nil)
		vhost.Queues["orders.retry.1s"], vhost.Queues["orders.retry.7s"] = topology.Queue{Type: topology.Classic}, test.queue
		require.Len(t, CheckLive(next, &prior, vhost).listed(objectsExist), test.want, name)
	}
}

func TestAttachmentsAreSeenWithoutTheirBinding(t *testing.T) {
	t.Parallel()
	a := pipeline.Attachment{Pipeline: "orders", Queue: "work", WorkQueue: pipeline.WorkQueue{Type: topology.Quorum}, PolicyPriority: 1000}
	recreated := a.Expand()
	recreated.Bindings = nil
	if got := pipeline.Attached("orders", recreated); len(got) != 1 || got[0] != "work" {
		t.Errorf("got %q", got)
	}
	require.Empty(t, pipeline.Attached("order", recreated), "another pipeline")
	toExchange := topology.Binding{
		Source: "orders.return", Destination: "work", RoutingKey: "return:work", ToExchange: true,
		Arguments: topology.Arguments{pipeline.AttachmentArgument: "{}"},
	}
	require.Empty(t, pipeline.Attached("orders", topology.Topology{Bindings: []topology.Binding{toExchange}}), "a binding to an exchange")
	require.Empty(t, pipeline.Attached("orders", one(pipeline.WorkQueue{Type: topology.Quorum}).Expand()))
}

// A binding with such a key and arguments makes every listing of bindings fail.
func TestTildeCannotBeAttached(t *testing.T) {
	t.Parallel()
	a := pipeline.Attachment{Pipeline: "orders", Queue: "work~1", WorkQueue: pipeline.WorkQueue{Type: topology.Quorum}, PolicyPriority: 1000}
	if got := CheckAttachment(a); len(got) != 1 || got[0].Path[0] != "queue" {
		t.Errorf("got %v", got)
	}
	a.Queue = "work"
	require.Empty(t, CheckAttachment(a))
}

func TestCheckLive(t *testing.T) {
	t.Parallel()
	p := orders()
	found := CheckLive(p, nil, topology.Vhost{Topology: topology.Topology{Queues: map[string]topology.Queue{
		"created": {Type: topology.Classic}, "legacy": {Type: topology.Classic, AutoDelete: true}, "paid": {Type: topology.Quorum},
	}, Policies: map[string]topology.Policy{"retry/orders/queue/gone": {Pattern: "^(gone)$"}}}})
	require.Equal(t, []string{"a|b.c"}, found.listed(workQueuesMissing))
	require.Equal(t, []string{`policy "retry/orders/queue/gone"`}, found.listed(objectsExist))
	if declared := found.listed(workQueuesExist); len(declared) != 1 || !strings.HasPrefix(declared[0], `"paid" = {`) || strings.Contains(declared[0], "declare") {
		t.Errorf("declared: %q", declared)
	}
	var said []string
	for _, problem := range found.Of(Wrong) {
		said = append(said, problem.Detail)
	}
	if text := strings.Join(said, "\n"); len(said) != 2 || !strings.Contains(text, `"created" = { type = "classic" }`) || !strings.Contains(text, "is deleted with its last consumer") {
		t.Errorf("problems: %s", text)
	}
}

// Objects of an interrupted creation are taken over, can be imported, or are listed with the reason against an import.
func TestObjectsOfAnInterruptedCreation(t *testing.T) {
	t.Parallel()
	p := one(pipeline.WorkQueue{Type: topology.Quorum})
	whole := p.Expand()
	for name, test := range map[string]struct {
		left                  topology.Topology
		warned, notImportable bool
	}{
		"before the definition": {topology.Topology{Exchanges: p.Identity().Exchanges, Queues: p.Identity().Queues}, true, false},
		"after the definition":  {p.Identity(), false, false},
		"something else":        {topology.Topology{Exchanges: whole.Exchanges}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			vhost := topology.Vhost{Topology: topology.Merge(test.left, topology.Topology{Queues: map[string]topology.Queue{"work": {Type: topology.Quorum}}})}
			found := CheckLive(p, nil, vhost)
			if test.warned {
				expectSaid(t, "warned", found, "Objects of an interrupted creation: ")
				require.Len(t, found, 1)
				return
			}
			require.Len(t, found.Of(InTheWay), 1)
			inTheWay := found.Of(Notice, InTheWay)[0]
			require.Equal(t, test.notImportable, strings.Contains(inTheWay.OnlyPlan, "They cannot be imported: no binding from"))
			require.Equal(t, test.notImportable, strings.Contains(inTheWay.OnlyApply, "They cannot be imported: no binding from"))
			require.Equal(t, !test.notImportable, strings.Contains(inTheWay.OnlyApply, "import the resource"))
		})
	}
}

// A queue that the pipeline declared before is its own, if the pipeline would declare it unchanged.
func TestDeclaredQueueOfAnInterruptedCreation(t *testing.T) {
	t.Parallel()
	p := one(pipeline.WorkQueue{Type: topology.Quorum, Declare: true})
	declared := p.Expand().Queues["work"]
	other := declared
	other.Arguments = topology.Arguments{pipeline.DeclaredByArgument: "other"}
	for name, test := range map[string]struct {
		queue  topology.Queue
		exists int
	}{
		"the same":       {declared, 0},
		"another type":   {topology.Queue{Type: topology.Classic, Arguments: declared.Arguments}, 1},
		"without a mark": {topology.Queue{Type: topology.Quorum}, 1},
		"another mark":   {other, 1},
	} {
		vhost := topology.Vhost{Topology: topology.Topology{Queues: map[string]topology.Queue{"work": test.queue}}}
		if found := CheckLive(p, nil, vhost); len(found.listed(workQueuesExist)) != test.exists || len(found.Of(InTheWay)) != test.exists {
			t.Errorf("%s: %+v", name, found)
		}
	}
}

// A released queue can be declared again only unchanged, and is never replaced.
func TestReleasedQueueIsDeclaredAgainOnlyAsItIs(t *testing.T) {
	t.Parallel()
	declared := one(pipeline.WorkQueue{Type: topology.Quorum, Declare: true})
	released := one(pipeline.WorkQueue{Type: topology.Quorum})
	vhost := topology.Vhost{Topology: topology.Merge(released.Expand(), topology.Topology{Queues: declared.Expand().Queues})}
	if found := CheckLive(declared, &released, vhost); len(found.Of(InTheWay)) > 0 {
		t.Errorf("as it is: %+v", found)
	}
	other := one(pipeline.WorkQueue{Type: topology.Quorum, Declare: true, Arguments: topology.Arguments{"x-single-active-consumer": true}})
	if found := CheckLive(other, &released, vhost); !slices.Equal(found.listed(workQueuesExist), []string{`"work" = {}`}) {
		t.Errorf("with other arguments: %+v", found)
	}
}

// Missing and existing objects are listed in one finding for each kind.
func TestListsOfObjects(t *testing.T) {
	t.Parallel()
	p := one(pipeline.WorkQueue{Type: topology.Quorum})
	for name, failed := range map[string]pipeline.WorkQueue{
		"a": {FailedQueue: "theirs", ForeignFailedQueue: true}, "b": {FailedQueue: "also", ForeignFailedQueue: true},
		"c": {FailedQueue: "ours"}, "d": {FailedQueue: "other"}, "e": {}, "f": {},
	} {
		failed.Type = topology.Quorum
		p.WorkQueues[name] = failed
	}
	delete(p.WorkQueues, "work")
	vhost := topology.Vhost{Name: "/", Nodes: 1, Topology: topology.New()}
	for _, name := range []string{"a", "b", "c", "d", "ours", "other"} {
		vhost.Queues[name] = topology.Queue{Type: topology.Quorum}
	}
	found := CheckLive(p, nil, vhost)
	require.Len(t, found, 3)
	for summary, want := range map[string][]string{
		workQueuesMissing: {"e", "f"}, failedQueuesMissing: {"theirs", "also"}, failedQueuesExist: {"other", "ours"},
	} {
		require.Equal(t, want, found.listed(summary))
	}
	require.Equal(t, "work_queues", found[1].Path.String())
	attached := CheckLiveAttachment(pipeline.Attachment{Pipeline: "orders", Queue: "a", WorkQueue: p.WorkQueues["a"]}, nil, vhost)
	require.Equal(t, "pipeline: Pipeline does not exist, queue: Failed queues do not exist", headings(attached.problems(NoPipeline, Missing)))
}

// Another pipeline's policy covers queues with names like its retry queues' names, valid delays or not.
func TestQueueUnderAnotherPipelinesPolicyCannotBeAttached(t *testing.T) {
	t.Parallel()
	bills := one(pipeline.WorkQueue{Type: topology.Quorum})
	bills.Name, bills.WorkQueues = "bills", nil
	for queue, covered := range map[string]bool{"bills.retry.5s": true, "bills.retry.2nd-line": true, "bills.inbox": true, "bills.retry.manual": false, "bill.retry.5s": false} {
		vhost := topology.Vhost{Topology: topology.Merge(bills.Expand(), topology.Topology{Queues: map[string]topology.Queue{queue: {Type: topology.Quorum}}})}
		p := one(pipeline.WorkQueue{})
		p.WorkQueues = map[string]pipeline.WorkQueue{queue: {Type: topology.Quorum}}
		a := pipeline.Attachment{Pipeline: "orders", Queue: queue, WorkQueue: pipeline.WorkQueue{Type: topology.Quorum}, PolicyPriority: 1000}
		want := ""
		if covered {
			want = fmt.Sprintf(`Queue %q is one of the own queues of the pipeline "bills"`, queue)
		}
		expectSaid(t, queue, CheckLive(p, nil, vhost).Of(Wrong, Owned), want)
		expectSaid(t, queue+" by an attachment", CheckLiveAttachment(a, nil, vhost).Of(Wrong, Owned), want)
	}
}

// The HCL that is proposed in place of a declaration describes the existing queue, and works.
func TestExistingQueueIsAttachedAsItIs(t *testing.T) {
	t.Parallel()
	p := one(pipeline.WorkQueue{Type: topology.Quorum, Declare: true, Arguments: topology.Arguments{"x-max-priority": 5.0}})
	for kind, want := range map[string]string{topology.Quorum: `"work" = {}`, topology.Classic: `"work" = { type = "classic" }`} {
		vhost := topology.Vhost{Topology: topology.Topology{Queues: map[string]topology.Queue{"work": {Type: kind}}}}
		if found := CheckLive(p, nil, vhost); !slices.Equal(found.listed(workQueuesExist), []string{want}) || len(found.Of(Wrong, InTheWay)) != 1 {
			t.Errorf("%s: %+v", kind, found)
		}
		attached := CheckLive(one(pipeline.WorkQueue{Type: kind}), nil, vhost)
		expectSaid(t, kind+", attached", attached.Of(Wrong, InTheWay), "")
	}
}

// A policy is not proposed if it would not help.
func TestNoPolicyWhereArgumentsTakePrecedence(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		arguments topology.Arguments
		want      string
	}{
		"nothing declared":             {nil, `or attach it by policy`},
		"another dead-letter exchange": {topology.Arguments{"x-dead-letter-exchange": "other"}, "A policy does not help"},
	} {
		vhost := topology.Vhost{Topology: topology.Topology{Queues: map[string]topology.Queue{"work": {Type: topology.Classic, Arguments: test.arguments}}}}
		found := CheckLive(one(pipeline.WorkQueue{Type: topology.Classic, Attach: pipeline.AttachArguments}), nil, vhost)
		if len(found.Of(Wrong)) != 1 || !strings.Contains(found.Of(Wrong)[0].Detail, test.want) {
			t.Errorf("%s: %+v", name, found.Of(Wrong))
		}
	}
}

// If a pipeline lets another pipeline take its queue over, it does not get the queue back by a higher priority.
func TestPriorityOverWhoTakesOver(t *testing.T) {
	t.Parallel()
	prior := one(pipeline.WorkQueue{Type: topology.Quorum})
	taker := one(pipeline.WorkQueue{Type: topology.Quorum, TakeOverFrom: "orders"})
	taker.Name = "bills"
	vhost := topology.Vhost{Name: "/", Nodes: 1, Topology: topology.Merge(prior.Expand(), taker.Expand())}
	vhost.Queues["work"] = topology.Queue{Type: topology.Quorum}
	for priority, refused := range map[int]string{1000: "", 1001: "Keep policy_priority at 1000 or less"} {
		next := prior
		next.PolicyPriority = priority
		expectSaid(t, "refused", CheckLive(next, &prior, vhost).Of(Wrong), refused)
	}
}

// What would prevent the attachment of a queue that is there already is said with the advice to attach it.
func TestQueueInTheWayCannotBeAttached(t *testing.T) {
	t.Parallel()
	declared := one(pipeline.WorkQueue{Type: topology.Quorum, Declare: true})
	vhost := with(topology.Queue{Type: topology.Quorum, Arguments: topology.Arguments{
		"x-dead-letter-exchange": "elsewhere", "x-dead-letter-routing-key": "k",
	}}, nil)
	found := CheckLive(declared, nil, vhost).Of(InTheWay)
	expectSaid(t, "in the way", found, `"work" = {}`)
	expectSaid(t, "in the way", found, `x-dead-letter-exchange = "elsewhere"`)
	expectSaid(t, "in the way", found, `x-dead-letter-routing-key = "k"`)
	vhost.Queues["work"] = topology.Queue{Type: "stream"}
	expectSaid(t, "in the way", CheckLive(declared, nil, vhost).Of(InTheWay), "Streams cannot be retried")
	vhost.Queues["work"] = topology.Queue{Type: topology.Quorum}
	require.Len(t, CheckLive(declared, nil, vhost).Of(InTheWay, Wrong), 1)
}

// A failed queue names the pipeline that has left it, unless that is still there.
func TestFailedQueueThatAPipelineHasLeft(t *testing.T) {
	t.Parallel()
	p := one(pipeline.WorkQueue{Type: topology.Quorum, FailedQueue: "failed"})
	vhost := with(topology.Queue{Type: topology.Quorum}, nil)
	vhost.Queues["failed"] = topology.Queue{Type: topology.Quorum, Arguments: topology.Arguments{pipeline.DeclaredByArgument: "bills"}}
	const gone = `failed, left by the pipeline "bills", which no longer exists`
	expectSaid(t, "left", CheckLive(p, nil, vhost).Of(InTheWay), gone)
	vhost.Bindings = []topology.Binding{{Source: "bills.failed", Destination: "bills.failed", Arguments: topology.Arguments{pipeline.DefinitionArgument: "{}"}}}
	require.Equal(t, []string{"failed"}, CheckLive(p, nil, vhost).listed(failedQueuesExist))
}

// A bullet has the same literal as the line to copy.
func TestLostKeysAreLiterals(t *testing.T) {
	t.Parallel()
	found := CheckLive(one(pipeline.WorkQueue{Type: topology.Quorum}), nil,
		with(topology.Queue{Type: topology.Quorum}, everything(topology.Arguments{"max-length": int64(50000)})))
	expectSaid(t, "bullet", found, "max-length = 50000\n")
}
