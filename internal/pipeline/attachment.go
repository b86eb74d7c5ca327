package pipeline

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// AttachmentArgument marks the return binding that an attachment makes for its queue. The mark keeps the pipeline from
// taking an attachment's bindings for its own, and the other way round.
const AttachmentArgument = "retry-attachment"

// Attachment joins one work queue to a pipeline that is configured elsewhere.
type Attachment struct {
	Pipeline string
	Vhost    string
	// Engine is the pipeline's engine. Empty means EngineWorker.
	Engine         string
	Queue          string
	WorkQueue      WorkQueue
	PolicyPriority int
}

// Names returns the names of the pipeline's objects.
func (a Attachment) Names() Names { return Names(a.Pipeline) }

// SameQueue reports whether both attach the same queue.
func (a Attachment) SameQueue(b Attachment) bool { return a.Queue == b.Queue && a.Vhost == b.Vhost }

// AsPipeline returns the attachment as a pipeline with this one work queue.
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
		t.Policies[n.queuePolicyOf(attachmentFailedPolicy, a.Queue)] = p.policy(
			WorkQueue{Type: a.WorkQueue.Type}.deadLettering(p.engine().guardedExchange(n)), ExactPattern([]string{a.WorkQueue.FailedQueue}))
	}
	topology.SortByText(t.Bindings)
	return t
}

// failedBinding routes the failed messages of the attached queue to its own failed queue.
func (a Attachment) failedBinding(declared bool) topology.Binding {
	return marked(a.Names().FailedBinding(a.Queue, a.WorkQueue.FailedQueue, declared), AttachmentArgument, true)
}

// AttachmentBinding returns the binding that brings messages back to an attached queue.
func AttachmentBinding(n Names, queue string) topology.Binding {
	return marked(n.ReturnBinding(queue), AttachmentArgument, true)
}

// attaches reports whether the attachment made the binding for its queue, whether or not the queue is taken over.
func (a Attachment) attaches(b topology.Binding) bool {
	_, plain := takenOverFrom(b)
	return plain.Equal(AttachmentBinding(a.Names(), a.Queue))
}

// Owned returns the objects of a whole vhost that belong to the attachment.
func (a Attachment) Owned(vhost topology.Topology) topology.Topology {
	owned, n := topology.New(), a.Names()
	for _, scope := range []policyScope{attachmentPolicy, attachmentFailedPolicy} {
		name := n.queuePolicyOf(scope, a.Queue)
		if policy, exists := vhost.Policies[name]; exists {
			owned.Policies[name] = policy
		}
	}
	for _, b := range vhost.Bindings {
		if a.attaches(b) || a.parks(b) {
			owned.Bindings = append(owned.Bindings, b)
		}
	}
	topology.SortByText(owned.Bindings)
	if queue, exists := vhost.Queues[a.WorkQueue.FailedQueue]; exists && a.WorkQueue.DeclaresFailedQueue() {
		owned.Queues[a.WorkQueue.FailedQueue] = queue
	}
	return owned
}

// parks reports whether the attachment made the binding to route the failed messages of its queue.
func (a Attachment) parks(b topology.Binding) bool {
	_, marked := b.Arguments[AttachmentArgument]
	workQueue, parks := a.Names().parkedFrom(b)
	return marked && parks && workQueue == a.Queue
}

// RecoverAttachment reads an attachment's specification back from its vhost. After a failed creation only the policy
// can be there: it is written first, and stays if the queue holds messages. If the pipeline is gone, the policy also
// shows its engine.
func RecoverAttachment(pipeline, vhostName, queue string, vhost topology.Topology) (Attachment, error) {
	a := Attachment{Pipeline: pipeline, Vhost: vhostName, Queue: queue, PolicyPriority: DefaultPolicyPriority}
	if !slices.Contains(Attached(a.Names(), vhost), queue) {
		return a, fmt.Errorf("no binding from %q to %q has the argument %s, and no policy of an attachment exists. "+
			"The queue is not attached to the pipeline, or is attached by the pipeline's own work_queues",
			a.Names().ReturnExchange(), queue, AttachmentArgument)
	}
	policy, hasPolicy := vhost.Policies[a.Names().AttachmentPolicy(queue)]
	if p, _, err := Defined(pipeline, vhostName, vhost); err == nil {
		a.Engine = p.Engine
	} else if policy.Definition["dead-letter-exchange"] == a.Names().RetryExchange() {
		a.Engine = EngineConsumer
	}
	a.WorkQueue = recoverFrom(a.AsPipeline(), queue, vhost.Queues[queue], policy, hasPolicy)
	for _, b := range a.Owned(vhost).Bindings {
		if a.attaches(b) {
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

// Attached lists the queues that attachments joined to the pipeline. It looks at policies too: when an application
// re-creates a queue, the binding is lost and the policy stays.
func Attached(n Names, vhost topology.Topology) []string {
	var queues []string
	for name := range vhost.Policies {
		if queue, isAttachment := strings.CutPrefix(name, n.AttachmentPolicy("")); isAttachment {
			queues = append(queues, queue)
		}
	}
	for _, b := range vhost.Bindings {
		_, marked := b.Arguments[AttachmentArgument]
		if marked && !b.ToExchange && b.Source == n.ReturnExchange() && strings.HasPrefix(b.RoutingKey, ReturnKeyPrefix) {
			queues = append(queues, b.Destination)
		}
	}
	return topology.Distinct(queues)
}
