package pipeline

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// AttachmentArgument marks the return binding of a queue that is attached from outside of the
// pipeline's configuration, so that the pipeline and its attachments never take each other's bindings
// for their own.
const AttachmentArgument = "retry-attachment"

// Attachment joins one work queue to a pipeline that is configured elsewhere.
type Attachment struct {
	Pipeline string
	Vhost    string
	// Engine is the pipeline's, that of the worker if it is empty.
	Engine         string
	Queue          string
	WorkQueue      WorkQueue
	PolicyPriority int
}

// Names of the pipeline's objects.
func (a Attachment) Names() Names { return Names(a.Pipeline) }

// AsPipeline is the attachment as a pipeline of this one work queue.
func (a Attachment) AsPipeline() Pipeline {
	return Pipeline{
		Name: a.Pipeline, Vhost: a.Vhost, Engine: a.Engine, PolicyPriority: a.PolicyPriority,
		WorkQueues: map[string]WorkQueue{a.Queue: a.WorkQueue},
	}
}

// Expand returns every object that the attachment owns.
func (a Attachment) Expand() topology.Topology {
	t, n, p := topology.New(), a.Names(), a.AsPipeline()
	t.Bindings = append(t.Bindings, a.WorkQueue.takeOver(AttachmentBinding(n, a.Queue)))
	if a.WorkQueue.ByPolicy() {
		t.Policies[n.AttachmentPolicy(a.Queue)] = p.policyOf(a.Queue)
	}
	if a.WorkQueue.FailedQueue != "" {
		t.Bindings = append(t.Bindings, a.failedBinding(a.WorkQueue.DeclaresFailedQueue()))
	}
	if a.WorkQueue.DeclaresFailedQueue() {
		t.Queues[a.WorkQueue.FailedQueue] = failedQueueOf(n, a.WorkQueue.Type, a.WorkQueue.FailedQueue)
		t.Policies[n.AttachmentFailedPolicy(a.Queue)] = p.policy(
			WorkQueue{Type: a.WorkQueue.Type}.deadLettering(p.engine().guardedExchange(n)), ExactPattern([]string{a.WorkQueue.FailedQueue}))
	}
	topology.SortBindings(t.Bindings)
	return t
}

// failedBinding leads the failed messages of the queue to a queue of their own.
func (a Attachment) failedBinding(declared bool) topology.Binding {
	return marked(a.Names().FailedBinding(a.Queue, a.WorkQueue.FailedQueue, declared), AttachmentArgument, true)
}

// AttachmentBinding brings messages back to a queue that an attachment joined.
func AttachmentBinding(n Names, queue string) topology.Binding {
	return marked(n.ReturnBinding(queue), AttachmentArgument, true)
}

// attaches reports whether a binding is that of an attachment of the queue, taken over or not.
func (n Names) attaches(b topology.Binding, queue string) bool {
	_, plain := takenOverFrom(b)
	return plain.Equal(AttachmentBinding(n, queue))
}

// Owned picks out of a whole vhost what belongs to the attachment.
func (a Attachment) Owned(vhost topology.Topology) topology.Topology {
	owned, n := topology.New(), a.Names()
	for _, name := range []string{n.AttachmentPolicy(a.Queue), n.AttachmentFailedPolicy(a.Queue)} {
		if policy, exists := vhost.Policies[name]; exists {
			owned.Policies[name] = policy
		}
	}
	for _, b := range vhost.Bindings {
		if n.attaches(b, a.Queue) || n.parksForAttachment(b, a.Queue) {
			owned.Bindings = append(owned.Bindings, b)
		}
	}
	topology.SortBindings(owned.Bindings)
	if queue, exists := vhost.Queues[a.WorkQueue.FailedQueue]; exists && a.WorkQueue.DeclaresFailedQueue() {
		owned.Queues[a.WorkQueue.FailedQueue] = queue
	}
	return owned
}

// parksForAttachment reports whether a binding leads failed messages of an attached queue to a queue of their own.
func (n Names) parksForAttachment(b topology.Binding, queue string) bool {
	_, marked := b.Arguments[AttachmentArgument]
	workQueue, parks := n.parkedFrom(b)
	return marked && parks && workQueue == queue
}

// ReleasedQueues is the failed queue of the attachment, if a change does not delete it although it is declared no more: it is still
// used, others use it, or somebody else has re-created it. Next is nil for a destroy.
func (a Attachment) ReleasedQueues(next *Attachment, vhost topology.Topology) []string {
	if !a.WorkQueue.DeclaresFailedQueue() {
		return nil
	}
	name, declares, uses := a.WorkQueue.FailedQueue, false, false
	if next != nil {
		uses = next.WorkQueue.FailedQueue == name
		declares = uses && next.WorkQueue.DeclaresFailedQueue()
	}
	if !declares && (uses || !a.Names().Declared(vhost.Queues[name]) || len(a.othersParkIn(name, vhost)) > 0) {
		return []string{name}
	}
	return nil
}

// othersParkIn lists the pipelines that have failed messages of other work queues in this queue.
func (a Attachment) othersParkIn(queue string, vhost topology.Topology) []Names {
	own := func(b topology.Binding) bool { return a.Names().parksForAttachment(b, a.Queue) }
	return parkedExcept(own, vhost)[queue]
}

// StayingFailedQueues is the failed queue that a change, to nil for a destroy, declares no more and has no use for, and that stays
// since others have failed messages there: with the pipelines of those, or nothing.
func (a Attachment) StayingFailedQueues(next *Attachment, vhost topology.Topology) map[string][]string {
	name := a.WorkQueue.FailedQueue
	if !a.WorkQueue.DeclaresFailedQueue() || next != nil && next.WorkQueue.FailedQueue == name {
		return nil
	}
	if others := a.othersParkIn(name, vhost); len(others) > 0 {
		return map[string][]string{name: texts(others)}
	}
	return nil
}

// RecoverAttachment reads an attachment's specification back from a vhost that holds it, or what a
// failed creation left of it: the policy is written first, and may be kept for what the queue holds.
func RecoverAttachment(pipeline, vhostName, queue string, vhost topology.Topology) (Attachment, error) {
	a := Attachment{Pipeline: pipeline, Vhost: vhostName, Queue: queue, PolicyPriority: DefaultPolicyPriority}
	if !slices.Contains(Attached(a.Names(), vhost), queue) {
		return a, fmt.Errorf("no binding from %q to %q has the argument %s, and there is no policy of an attachment: "+
			"the queue is not attached to the pipeline, or by the pipeline's own work_queues",
			a.Names().ReturnExchange(), queue, AttachmentArgument)
	}
	policy, hasPolicy := vhost.Policies[a.Names().AttachmentPolicy(queue)]
	a.Engine = engineOf(a.Names(), policy.Definition["dead-letter-exchange"], vhost)
	a.WorkQueue = recoverFrom(a.AsPipeline(), queue, vhost.Queues[queue], policy, hasPolicy)
	for _, b := range a.Owned(vhost).Bindings {
		if a.Names().attaches(b, queue) {
			a.WorkQueue.TakeOverFrom, _ = takenOverFrom(b)
			continue
		}
		a.WorkQueue.FailedQueue = b.Destination
		a.WorkQueue.ForeignFailedQueue = !a.Names().isDeclared(b.Destination, a.failedBinding(true), a.failedBinding(false), vhost)
	}
	if hasPolicy {
		a.PolicyPriority = policy.Priority - a.WorkQueue.precedence()
	}
	return a, nil
}

// Attached lists the queues that attachments joined to the pipeline. The binding of a queue goes with it
// when an application re-creates it, the policy stays.
func Attached(n Names, vhost topology.Topology) []string {
	var queues []string
	for name := range vhost.Policies {
		if queue, isAttachment := strings.CutPrefix(name, n.AttachmentPolicy("")); isAttachment {
			queues = append(queues, queue)
		}
	}
	for _, b := range vhost.Bindings {
		_, marked := b.Arguments[AttachmentArgument]
		if marked && b.Source == n.ReturnExchange() && strings.HasPrefix(b.RoutingKey, ReturnKeyPrefix) {
			queues = append(queues, b.Destination)
		}
	}
	return topology.Distinct(queues)
}

// engineOf is the engine of an attachment: that of its pipeline, or of the policy if there is no pipeline.
func engineOf(n Names, deadLetterExchange any, vhost topology.Topology) string {
	if p, err := Defined(n, vhost); err == nil {
		return p.Engine
	}
	if deadLetterExchange == n.RetryExchange() {
		return EngineConsumer
	}
	return ""
}
