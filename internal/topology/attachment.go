package topology

import (
	"fmt"
	"slices"
	"strings"
)

// AttachmentArgument marks the return binding of a queue that is attached from outside of the
// pipeline's configuration, so that the pipeline and its attachments never take each other's bindings
// for their own.
const AttachmentArgument = "retry-attachment"

// Attachment joins one work queue to a pipeline that is configured elsewhere.
type Attachment struct {
	Pipeline       string
	Vhost          string
	Queue          string
	WorkQueue      WorkQueue
	PolicyPriority int
}

// Names of the pipeline's objects.
func (a Attachment) Names() Names { return Names(a.Pipeline) }

// pipeline is the attachment as a pipeline of this one work queue.
func (a Attachment) pipeline() Pipeline {
	return Pipeline{
		Name: a.Pipeline, Vhost: a.Vhost, Shield: true, PolicyPriority: a.PolicyPriority,
		WorkQueues: map[string]WorkQueue{a.Queue: a.WorkQueue},
	}
}

// ExpandAttachment returns every object that the attachment owns.
func ExpandAttachment(a Attachment) Topology {
	t, n, p := newTopology(), a.Names(), a.pipeline()
	t.Bindings = append(t.Bindings, attachmentBinding(n, a.Queue))
	if !a.WorkQueue.byPolicy() {
		return t
	}
	t.Policies[n.AttachmentPolicy(a.Queue)] = exactPolicy(p.policyDefinition(a.Queue), a.PolicyPriority, a.Queue)
	if len(p.needFallback()) > 0 {
		t.Policies[n.AttachmentFallbackPolicy(a.Queue)] = exactPolicy(fallbackDefinition(n), fallbackPriority(a.PolicyPriority), a.Queue)
	}
	return t
}

func attachmentBinding(n Names, queue string) Binding {
	return Binding{Source: n.ReturnExchange(), Destination: queue, RoutingKey: ReturnKey(queue), Arguments: Arguments{AttachmentArgument: true}}
}

// OwnedByAttachment picks out of a whole vhost what belongs to the attachment.
func OwnedByAttachment(a Attachment, vhost Topology) Topology {
	owned, n := newTopology(), a.Names()
	for _, name := range []string{n.AttachmentPolicy(a.Queue), n.AttachmentFallbackPolicy(a.Queue)} {
		if policy, exists := vhost.Policies[name]; exists {
			owned.Policies[name] = policy
		}
	}
	for _, b := range vhost.Bindings {
		if b.equal(attachmentBinding(n, a.Queue)) {
			owned.Bindings = append(owned.Bindings, b)
		}
	}
	return owned
}

// RecoverAttachment reads an attachment's specification back from a vhost that holds it, or what a
// failed creation left of it: the policy is written first, and may be kept for what the queue holds.
func RecoverAttachment(pipeline, vhostName, queue string, vhost Topology) (Attachment, error) {
	a := Attachment{Pipeline: pipeline, Vhost: vhostName, Queue: queue, PolicyPriority: DefaultPolicyPriority}
	if !slices.Contains(Attached(a.Names(), vhost), queue) {
		return a, fmt.Errorf("no binding from %q to %q has the argument %s, and there is no policy of an attachment: the queue is not attached to the pipeline, or by the pipeline's own work_queues",
			a.Names().ReturnExchange(), queue, AttachmentArgument)
	}
	policy, hasPolicy := vhost.Policies[a.Names().AttachmentPolicy(queue)]
	if hasPolicy {
		a.PolicyPriority = policy.Priority
	}
	a.WorkQueue = recoverFrom(a.pipeline(), vhost.Queues[queue], policy, hasPolicy)
	a.WorkQueue.Declare, a.WorkQueue.Arguments = false, nil
	return a, nil
}

// Attached lists the queues that attachments joined to the pipeline. The binding of a queue goes with it
// when an application makes it anew, the policy stays.
func Attached(n Names, vhost Topology) []string {
	var queues []string
	for name := range vhost.Policies {
		if queue, isAttachment := strings.CutPrefix(name, n.AttachmentPolicy("")); isAttachment {
			queues = append(queues, queue)
		}
	}
	for _, b := range vhost.Bindings {
		if _, marked := b.Arguments[AttachmentArgument]; marked && b.Source == n.ReturnExchange() && strings.HasPrefix(b.RoutingKey, ReturnKeyPrefix) {
			queues = append(queues, b.Destination)
		}
	}
	slices.Sort(queues)
	return slices.Compact(queues)
}

// CheckLiveAttachment compares an attachment with a live vhost. Prior is the attachment as it was,
// nil if it is new. Leaving are pipelines that the queue belongs to no more when the same apply comes
// to it.
func CheckLiveAttachment(a Attachment, prior *Attachment, vhost Vhost, leaving ...string) Findings {
	var f Findings
	n := a.Names()
	if !slices.Contains(Pipelines(vhost.Topology), a.Pipeline) {
		f.MissingPipeline = true
	}
	p, before := a.pipeline(), (*Pipeline)(nil)
	if prior != nil {
		was := prior.pipeline()
		before = &was
	}
	q := newLiveWorkQueue(p, before, a.Queue, vhost, othersIn(vhost, append(leaving, a.Pipeline)))
	q.attachment = true
	if !q.exists {
		f.Missing = append(f.Missing, a.Queue)
	}
	if slices.ContainsFunc(vhost.Bindings, n.returnBinding(a.Queue).equal) {
		f.warn(Path{"queue"}, "Queue is attached twice",
			"Queue %q is one of the work_queues of the pipeline %q too. That is the way to hand it over without losing a message, but remove one of the two in the end.", a.Queue, a.Pipeline)
		theirs, exists := policyOf(n, a.Queue, vhost.Topology)
		q.checkHandOver(&f, theirs, exists, "the pipeline")
	}
	q.check(&f)
	if prior == nil {
		f.Exists = appendCommon(nil, "policy", ExpandAttachment(a).Policies, vhost.Policies)
		if slices.Contains(Attached(n, vhost.Topology), a.Queue) {
			f.Exists = append(f.Exists, fmt.Sprintf("binding %q", attachmentBinding(n, a.Queue)))
		}
	}
	return f
}

// CheckAttachment checks an attachment by itself.
func CheckAttachment(a Attachment) []Problem {
	problems := CheckName(a.Pipeline)
	for i := range problems {
		problems[i].Path = Path{"pipeline"}
	}
	problems = append(problems, checkPriority(a.PolicyPriority)...)
	problems = append(problems, checkWorkQueueAt(func(attributes ...any) Path {
		if len(attributes) == 0 {
			return Path{"queue"}
		}
		return attributes
	}, Names(a.Pipeline), a.Queue, a.WorkQueue)...)
	if strings.Contains(a.Queue, "~") {
		// rabbit_mgmt_format:pack_binding_props joins them to a list that is none.
		problems = append(problems, problem(Path{"queue"}, "Queue cannot be attached from outside",
			"The name %q has a ~. RabbitMQ's management API fails for the whole vhost over a binding that has both such a routing key and arguments, which mark what belongs to an attachment. "+
				"List the queue in the work_queues of the pipeline itself, whose bindings have none.", a.Queue))
	}
	return append(problems, CheckPolicyDefinition(Path{"policy_definition"}, a.WorkQueue, a.WorkQueue.PolicyDefinition)...)
}
