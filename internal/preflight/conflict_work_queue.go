package preflight

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// liveWorkQueue is a configured work queue and its state on the broker.
type liveWorkQueue struct {
	pipeline.WorkQueue
	pipeline pipeline.Pipeline
	name     string
	// at returns the path of the queue's configuration, or of one of its attributes.
	at func(attributes ...any) Path
	// attachment means that the queue belongs to an attachment.
	attachment bool
	// had means that the pipeline or attachment already had the queue. attachedBefore means that it had the queue by a
	// policy.
	had, attachedBefore bool
	// takenOverFrom is the earlier value of TakeOverFrom.
	takenOverFrom string

	live   topology.Queue
	exists bool
	vhost  liveVhost
	// policies of others, and operator policies, match the queue, strongest first.
	policies, operator []topology.NamedPolicy
	// doubtful are the policies whose pattern cannot be evaluated.
	doubtful []topology.NamedPolicy
}

// liveVhost is a vhost with indexes for the checks of work queues. They are built once, because a vhost can have many
// queues and bindings.
type liveVhost struct {
	topology.Vhost

	others pipeline.Foreign
	// policies are the policies of others, and all are the policies of all owners.
	policies, operator topology.Matcher
	all                func() topology.Matcher
	// attached are the queues that attachments joined to the pipeline, and delayed are the delayed exchanges.
	attached, delayed []string
	// parked has the pipelines that park failed messages in a queue. bindings has the bindings to a queue.
	parked   map[string][]string
	bindings map[string][]topology.Binding
}

func newLiveVhost(n pipeline.Names, vhost topology.Vhost) liveVhost {
	others := pipeline.ForeignTo(vhost, []string{string(n)})
	v := liveVhost{
		Vhost: vhost, others: others,
		policies: topology.NewMatcher(others.Policies), operator: topology.NewMatcher(vhost.OperatorPolicies),
		all:      sync.OnceValue(func() topology.Matcher { return topology.NewMatcher(vhost.Policies) }),
		attached: pipeline.Attached(n, vhost.Topology), delayed: delayed.Found(vhost.Topology),
		parked: pipeline.ParkedExcept(n.OwnsBinding, vhost.Topology), bindings: map[string][]topology.Binding{},
	}
	for _, b := range vhost.Bindings {
		if !b.ToExchange {
			v.bindings[b.Destination] = append(v.bindings[b.Destination], b)
		}
	}
	return v
}

func newLiveWorkQueue(p, prior pipeline.Pipeline, name string, vhost liveVhost) liveWorkQueue {
	before, had := prior.WorkQueues[name]
	q := liveWorkQueue{
		WorkQueue: p.WorkQueues[name], pipeline: p, name: name, at: workQueuePlace(name), vhost: vhost,
		had: had, attachedBefore: had && before.ByPolicy(), takenOverFrom: before.TakeOverFrom,
	}
	q.live, q.exists = vhost.Queues[name]
	if !q.exists || q.Declare { // the queue will be as declared
		q.live = topology.Queue{Type: q.Type, Arguments: q.Arguments}
	}
	var doubtful []topology.NamedPolicy
	q.policies, q.doubtful = vhost.policies.Queue(name, q.live.Type, vhost.Version)
	q.operator, doubtful = vhost.operator.Queue(name, q.live.Type, vhost.Version)
	q.doubtful = append(q.doubtful, doubtful...)
	return q
}

// write returns the HCL for this configuration of the queue.
func (q liveWorkQueue) write(w pipeline.WorkQueue) string {
	parts := attributes(w)
	if q.attachment {
		return cmp.Or(strings.Join(parts, "\n  "), "# leave out type, attach and dead_letter_strategy, so that their defaults apply")
	}
	return writeWorkQueue(q.name, w)
}

func (q liveWorkQueue) check(f *Findings) {
	if delays, found := delayed.OwnerOf(q.name, q.vhost.delayed, q.vhost.Topology); found {
		f.refuse(q.at(), "Queue of a delayed exchange",
			"Queue %q is one of the own queues of the delayed exchange %q. "+
				"Name a queue that is bound to the exchange %q instead.", q.name, delays, delays.DeliverExchange())
		return
	}
	if !q.checkOwners(f) {
		return
	}
	if _, joined := slices.BinarySearch(q.vhost.attached, q.name); joined && !q.attachment {
		q.warnOfTwo(f, "Queue %q is also attached to this pipeline by a rabbitmq_retry_attachment.", q.name)
		theirs, exists := q.vhost.Policies[q.pipeline.Names().AttachmentPolicy(q.name)]
		q.checkHandOver(f, theirs, exists, "a rabbitmq_retry_attachment")
	}
	if q.exists && !q.Declare && !q.checkKind(f) {
		return
	}
	q.checkLoop(f)
	if q.ByPolicy() {
		q.checkOwnArguments(f)
		q.checkPolicies(f)
	} else {
		q.checkDeclaration(f)
	}
	q.checkExpires(f)
	q.checkLimits(f)
	q.checkClientDeaths(f)
	q.checkParkedIn(f)
	q.checkFailedQueue(f)
}

// checkLoop refuses a work queue that is bound to its own dead letters. A broker looped such a message 1,500 times in two
// seconds.
func (q liveWorkQueue) checkLoop(f *Findings) {
	n := q.pipeline.Names()
	for _, b := range q.vhost.bindings[q.name] {
		if b.Source == q.pipeline.DeadLetterExchange() || b.Source == n.FailedExchange() {
			f.refuse(q.at(), "Work queue is bound to its own dead letters",
				"Queue %q is bound to %q: its rejected messages would come back at once, thousands of times a second. "+
					"Remove that binding.", q.name, b.Source)
		}
	}
}

// checkKind refuses queues that cannot be work queues. It reports whether the queue can be one.
func (q liveWorkQueue) checkKind(f *Findings) bool {
	switch {
	case q.live.Type == "stream":
		f.refuse(q.at(), "Streams cannot be retried", "Queue %q is a stream, whose consumers cannot reject messages. Leave it out.", q.name)
	case q.live.Exclusive:
		f.refuse(q.at(), "Exclusive work queue",
			"Queue %q is exclusive: it belongs to one connection, and no other one can bind it. Leave it out.", q.name)
	case q.live.AutoDelete:
		f.refuse(q.at(), "Auto-delete work queue",
			"Queue %q is deleted with its last consumer, and retried messages with it. Declare it without auto-delete, or leave it out.", q.name)
	case q.live.Type != q.Type:
		f.refuse(q.at("type"), "Work queue has another type", "Queue %q is a %s queue, but its type is configured as %q. "+
			"A policy for another type does not apply, and rejected messages would be dropped. Write:\n\n  %s",
			q.name, q.live.Type, q.Type, q.write(withType(q.WorkQueue, q.live.Type)))
	default:
		return true
	}
	return false
}

// checkOwnArguments finds dead-letter arguments of the queue, which take precedence over a policy.
func (q liveWorkQueue) checkOwnArguments(f *Findings) {
	if q.Declare {
		return
	}
	ours := map[string]string{
		"x-dead-letter-exchange": q.pipeline.DeadLetterExchangeOf(q.WorkQueue),
		"x-dead-letter-strategy": q.Strategy(),
	}
	for _, key := range slices.Sorted(maps.Keys(ours)) {
		if value, has := q.live.Arguments[key]; has && value != ours[key] {
			f.refuse(q.at(), "Work queue has dead-letter arguments of its own", "Queue %q was declared with %s = %q. "+
				"Arguments take precedence over policies, so the pipeline would not get the queue's rejected messages as it "+
				"should. Declare the queue without it (which needs a new queue), or with %q, or leave it out.",
				q.name, key, topology.ValueText(value), ours[key])
		}
	}
	q.checkRoutingKey(f)
}

func (q liveWorkQueue) checkRoutingKey(f *Findings) {
	needed := q.pipeline.BrokerKeys(q.name)["dead-letter-routing-key"]
	if key, has := q.live.Arguments["x-dead-letter-routing-key"]; has && key != needed {
		f.refuse(q.at(), "Work queue is declared with a dead-letter routing key",
			"Queue %q has x-dead-letter-routing-key = %q, which replaces the routing key that its consumers know. "+
				"Declare the queue without it.", q.name, topology.ValueText(key))
	}
}

// checkForeignPolicy finds a policy that adds harmful keys to the queue's arguments.
func (q liveWorkQueue) checkForeignPolicy(f *Findings) {
	for _, policy := range strongest(q.policies) {
		overflow := policy.Definition["overflow"]
		spoils := q.Type == topology.Quorum && q.Strategy() == topology.AtLeastOnce && overflow != nil && overflow != "reject-publish"
		if _, replaces := policy.Definition["dead-letter-routing-key"]; replaces || spoils {
			f.refuse(q.at("attach"), "A policy changes how the work queue dead-letters",
				"Policy %q applies to queue %q, and its dead-letter-routing-key or overflow would apply beside the queue's arguments. "+
					"Change its pattern so that the queue does not match, or attach the queue by policy.", policy.Name, q.name)
		}
	}
}

// checkDeclaration compares the queue's arguments with the arguments that the pipeline needs.
func (q liveWorkQueue) checkDeclaration(f *Findings) {
	if !q.exists || q.Declare {
		return
	}
	needed := q.pipeline.DeadLetterArguments(q.name)
	var different []string
	for _, key := range slices.Sorted(maps.Keys(needed)) {
		switch value, has := q.live.Arguments[key]; {
		case !has:
			different = append(different, fmt.Sprintf("%s = %q is missing", key, topology.ValueText(needed[key])))
		case value != needed[key]:
			different = append(different, fmt.Sprintf("%s is %q instead of %q", key, topology.ValueText(value), topology.ValueText(needed[key])))
		}
	}
	if len(different) > 0 {
		f.refuse(q.at("attach"), "Work queue is not declared for the pipeline",
			"Queue %q was declared with other arguments than the pipeline needs:\n%s\n\n"+
				"Declare it with\n%s\n\nwhich needs a new queue, since arguments cannot change%s",
			q.name, Bullets(different), Bullets(assignments(needed)), q.otherThanDeclaration())
	}
	q.checkRoutingKey(f)
	q.checkForeignPolicy(f)
}

// otherThanDeclaration says how to attach the queue by a policy, without a new declaration. A policy does not help if
// the queue has the setting as an argument.
func (q liveWorkQueue) otherThanDeclaration() string {
	var byPolicy Findings
	q.checkOwnArguments(&byPolicy)
	if len(byPolicy) > 0 {
		return ". A policy does not help: the queue's own arguments take precedence over it."
	}
	attached := q.WorkQueue
	attached.Attach = pipeline.AttachPolicy
	return "; or attach it by policy:\n\n  " + q.write(attached)
}

func withType(w pipeline.WorkQueue, queueType string) pipeline.WorkQueue {
	w.Type = queueType
	if queueType == topology.Classic {
		w.DeadLetterStrategy = ""
	}
	return w
}

func assignments(arguments topology.Arguments) []string {
	var lines []string
	for _, key := range slices.Sorted(maps.Keys(arguments)) {
		lines = append(lines, key+" = "+literal(arguments[key]))
	}
	return lines
}
