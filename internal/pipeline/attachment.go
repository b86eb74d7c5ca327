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

// ExpandAttachment returns every object that the attachment owns.
func ExpandAttachment(a Attachment) topology.Topology {
	t, n, p := topology.New(), a.Names(), a.AsPipeline()
	t.Bindings = append(t.Bindings, a.WorkQueue.takeOver(AttachmentBinding(n, a.Queue)))
	if a.WorkQueue.ByPolicy() {
		t.Policies[n.AttachmentPolicy(a.Queue)] = p.policyOf(a.Queue)
	}
	return t
}

// AttachmentBinding brings messages back to a queue that an attachment joined.
func AttachmentBinding(n Names, queue string) topology.Binding {
	b := n.ReturnBinding(queue)
	b.Arguments = topology.Arguments{AttachmentArgument: true}
	return b
}

// attaches reports whether a binding is that of an attachment of the queue, taken over or not.
func (n Names) attaches(b topology.Binding, queue string) bool {
	_, plain := takenOverFrom(b)
	return plain.Equal(AttachmentBinding(n, queue))
}

// OwnedByAttachment picks out of a whole vhost what belongs to the attachment.
func OwnedByAttachment(a Attachment, vhost topology.Topology) topology.Topology {
	owned, n := topology.New(), a.Names()
	if policy, exists := vhost.Policies[n.AttachmentPolicy(a.Queue)]; exists {
		owned.Policies[n.AttachmentPolicy(a.Queue)] = policy
	}
	for _, b := range vhost.Bindings {
		if n.attaches(b, a.Queue) {
			owned.Bindings = append(owned.Bindings, b)
		}
	}
	return owned
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
	for _, b := range OwnedByAttachment(a, vhost).Bindings {
		a.WorkQueue.TakeOverFrom, _ = takenOverFrom(b)
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
	slices.Sort(queues)
	return slices.Compact(queues)
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
