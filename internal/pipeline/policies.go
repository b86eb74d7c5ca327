package pipeline

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// DefaultPolicyPriority is the priority of a pipeline's policies unless it is configured.
const DefaultPolicyPriority = 1000

// addPolicies attaches the work queues, and keeps the policies of others off the pipeline's own queues: only
// one policy applies to a queue. Brokers match every policy of a vhost against every queue at each change,
// so there are few. One covers the own queues and all work queues that need the same content. Queues of a
// type that need another content share one, too; only what a queue has of its own takes a policy of its own.
func addPolicies(t topology.Topology, p Pipeline) {
	n, shared := p.Names(), map[string][]string{}
	maps.Copy(t.Policies, p.failedQueuesPolicies())
	for _, name := range p.AttachedByPolicy() {
		w := p.WorkQueues[name]
		if w.TakeOverFrom != "" || p.PolicyContent(name).Key() != p.typeContent(w.Type).Key() {
			t.Policies[n.QueuePolicy(name)] = p.policyOf(name)
			continue
		}
		shared[w.Type] = append(shared[w.Type], name)
	}
	var withOwn []string
	for queueType, queues := range shared {
		content := p.typeContent(queueType)
		if content.Key() == p.ownContent().Key() {
			withOwn = append(withOwn, queues...)
			continue
		}
		for i, group := range spread(queues) {
			t.Policies[n.TypePolicy(queueType, i)] = ranked(p.policy(content, ExactPattern(group)), i)
		}
	}
	addQueuesPolicies(t, p, slices.Sorted(slices.Values(withOwn)))
}

// addQueuesPolicies adds the policy of the own queues and of these work queues, or several where one pattern
// cannot hold them: the first then has the own queues alone, so that a work queue that comes or goes never
// uncovers them.
func addQueuesPolicies(t topology.Topology, p Pipeline, workQueues []string) {
	n := p.Names()
	if pattern := n.pattern(workQueues); len(workQueues) == 0 || len(pattern) <= maxPattern {
		t.Policies[n.QueuesPolicy(0)] = p.policy(p.ownContent(), pattern)
		return
	}
	maps.Copy(t.Policies, p.Guard())
	for i, group := range spread(workQueues) {
		t.Policies[n.QueuesPolicy(i+1)] = ranked(p.policy(p.ownContent(), ExactPattern(group)), i+1)
	}
}

// Guard returns the policies that keep those of others off the pipeline's own queues, by name, in the form
// that covers these queues alone.
func (p Pipeline) Guard() map[string]topology.Policy {
	guard := p.failedQueuesPolicies()
	guard[p.Names().QueuesPolicy(0)] = p.policy(p.ownContent(), p.Names().pattern(nil))
	return guard
}

func (p Pipeline) policy(content topology.Arguments, pattern string) topology.Policy {
	return topology.Policy{
		Pattern: pattern,
		// RabbitMQ before 3.12 knows no finer word.
		ApplyTo:    "queues",
		Priority:   p.PolicyPriority,
		Definition: content,
	}
}

// policyOf is the policy of one work queue alone.
func (p Pipeline) policyOf(workQueue string) topology.Policy {
	policy := p.policy(p.PolicyContent(workQueue), ExactPattern([]string{workQueue}))
	policy.Priority = p.PriorityOf(workQueue)
	return policy
}

// precedence is by how much the priority of a work queue's policy is higher than that of the pipeline's others. Of two
// policies of equal priority, RabbitMQ 3.10 and 4.0 obey the one created last, 4.3 the first by name (seen on 3.10.8, 4.0.5 and
// 4.3.6); so a queue that is taken over needs more than the pipeline that has it.
func (w WorkQueue) precedence() int {
	if w.TakeOverFrom != "" {
		return 1
	}
	return 0
}

// ranked is a policy of which those with a higher number receive queues from those with a lower one.
func ranked(policy topology.Policy, number int) topology.Policy {
	policy.Rank = number
	return policy
}

// AttachedByPolicy lists the work queues that a policy attaches.
func (p Pipeline) AttachedByPolicy() []string {
	names := slices.Sorted(maps.Keys(p.WorkQueues))
	return slices.DeleteFunc(names, func(name string) bool { return !p.WorkQueues[name].ByPolicy() })
}

// ownContent is what the policy over the pipeline's own queues holds. Their own dead-letter exchange takes
// precedence over it. A policy's strategy and overflow take precedence over theirs, so these are as strong.
func (p Pipeline) ownContent() topology.Arguments {
	return WorkQueue{Type: p.QueueType}.deadLettering(p.engine().guardedExchange(p.Names()))
}

// typeContent is the policy that work queues of a type need if nothing is configured for them alone.
func (p Pipeline) typeContent(queueType string) topology.Arguments {
	return p.contentFor("", WorkQueue{Type: queueType})
}

// PolicyContent is the policy that a work queue needs.
func (p Pipeline) PolicyContent(workQueue string) topology.Arguments {
	return p.contentFor(workQueue, p.WorkQueues[workQueue])
}

func (p Pipeline) contentFor(name string, w WorkQueue) topology.Arguments {
	content := p.ExtraKeys(w)
	maps.Copy(content, p.neededKeys(name, w))
	return content
}

// neededKeys are those that a work queue has to have to be retried by the pipeline.
func (p Pipeline) neededKeys(name string, w WorkQueue) topology.Arguments {
	keys := w.deadLettering(p.DeadLetterExchangeOf(w))
	maps.Copy(keys, p.engine().workQueueKeys(p, name, w))
	return keys
}

// BrokerKeys are those of a work queue's policy by which the broker itself retries, none if a worker does.
func (p Pipeline) BrokerKeys(workQueue string) topology.Arguments {
	return p.engine().workQueueKeys(p, workQueue, p.WorkQueues[workQueue])
}

// DeadLetterArguments are what a work queue that is attached by its arguments has to be declared with.
func (p Pipeline) DeadLetterArguments(workQueue string) topology.Arguments {
	arguments := topology.Arguments{}
	for key, value := range p.neededKeys(workQueue, p.WorkQueues[workQueue]) {
		arguments["x-"+key] = value
	}
	return arguments
}

// WrittenKeys are those that the user wrote, those included that are null.
func (p Pipeline) WrittenKeys(w WorkQueue) topology.Arguments {
	keys := topology.Arguments{}
	maps.Copy(keys, p.PolicyDefinition)
	maps.Copy(keys, w.PolicyDefinition)
	return keys
}

// ExtraKeys are those that the user wrote.
func (p Pipeline) ExtraKeys(w WorkQueue) topology.Arguments {
	keys := p.WrittenKeys(w)
	maps.DeleteFunc(keys, func(_ string, value any) bool { return value == nil })
	return keys
}

// OwnQueues are the queues that are the pipeline's alone, the retired ones among them.
func (p Pipeline) OwnQueues() map[string]topology.Queue {
	t := p.Identity()
	p.engine().addQueues(&t, p)
	addFailedQueuesOfWorkQueues(&t, p)
	return t.Queues
}

// policyPrefix begins the name of every policy of a pipeline or an attachment.
const policyPrefix = "retry"

// policyKind is what a policy is for, the third part of its name.
type policyKind string

const (
	// queuesPolicy covers the pipeline's own queues and the work queues that need the same content.
	queuesPolicy policyKind = "queues"
	// quorumPolicy and classicPolicy cover work queues of the type that need another content, the same for all.
	quorumPolicy  policyKind = topology.Quorum + "-queues"
	classicPolicy policyKind = topology.Classic + "-queues"
	// failedQueuesPolicy covers the failed queues of work queues.
	failedQueuesPolicy policyKind = "failed-queues"
	// queuePolicy covers one work queue that needs a content of its own.
	queuePolicy policyKind = "queue"
	// attachmentPolicy covers one queue that is attached from outside of the pipeline's configuration.
	attachmentPolicy policyKind = "attachment"
	// attachmentFailedPolicy covers the failed queue of such a queue.
	attachmentFailedPolicy policyKind = "attachment-failed-queue"
)

// coversSeveral says of each kind whether a policy is for several queues, or for one.
var coversSeveral = map[policyKind]bool{
	queuesPolicy: true, quorumPolicy: true, classicPolicy: true, failedQueuesPolicy: true,
	queuePolicy: false, attachmentPolicy: false, attachmentFailedPolicy: false,
}

// policyName is the name of a policy by its parts: retry/<pipeline>/<kind>/<queue or number>. Number 0 is
// not written.
type policyName struct {
	pipeline Names
	kind     policyKind
	object   string
	number   int
}

func (n policyName) String() string {
	parts := []string{policyPrefix, string(n.pipeline), string(n.kind)}
	switch {
	case !coversSeveral[n.kind]:
		parts = append(parts, n.object)
	case n.number > 0:
		parts = append(parts, strconv.Itoa(n.number))
	}
	return strings.Join(parts, Separator)
}

// parsePolicyName reads what String wrote, and nothing else.
func parsePolicyName(name string) (policyName, bool) {
	parts := strings.SplitN(name, Separator, 4)
	if len(parts) < 3 || parts[0] != policyPrefix {
		return policyName{}, false
	}
	parsed, rest := policyName{pipeline: Names(parts[1]), kind: policyKind(parts[2])}, ""
	if len(parts) == 4 {
		rest = parts[3]
	}
	switch several, known := coversSeveral[parsed.kind]; {
	case !known || parsed.pipeline == "":
		return policyName{}, false
	case several:
		parsed.number, _ = strconv.Atoi(rest)
	case rest == "":
		return policyName{}, false
	default:
		parsed.object = rest
	}
	return parsed, parsed.String() == name
}

// QueuesPolicy is the policy of the pipeline's own queues, and of the work queues that need the same content.
// Where one pattern cannot hold all of them, number 0 has the own queues, and the others have the work queues.
func (n Names) QueuesPolicy(number int) string {
	return policyName{pipeline: n, kind: queuesPolicy, number: number}.String()
}

// TypePolicy is the policy of the work queues of a type that need another content than the pipeline's own
// queues, and the same as one another; several, by number, where one pattern cannot hold them.
func (n Names) TypePolicy(queueType string, number int) string {
	return policyName{pipeline: n, kind: policyKind(queueType + "-queues"), number: number}.String()
}

// QueuePolicy is the policy of a work queue that needs a content of its own.
func (n Names) QueuePolicy(workQueue string) string {
	return policyName{pipeline: n, kind: queuePolicy, object: workQueue}.String()
}

// AttachmentPolicy is the policy of a queue that is attached from outside of the pipeline's configuration.
func (n Names) AttachmentPolicy(queue string) string {
	return policyName{pipeline: n, kind: attachmentPolicy, object: queue}.String()
}

// FailedQueuesPolicy is the policy of the failed queues of work queues; several, by number, where one pattern cannot hold them.
func (n Names) FailedQueuesPolicy(number int) string {
	return policyName{pipeline: n, kind: failedQueuesPolicy, number: number}.String()
}

// AttachmentFailedPolicy is the policy of the failed queue of a queue that is attached from outside.
func (n Names) AttachmentFailedPolicy(queue string) string {
	return policyName{pipeline: n, kind: attachmentFailedPolicy, object: queue}.String()
}

// OwnerOfFailedQueues is the pipeline that has a policy over failed queues of work queues, its attachments' included; false
// if the policy is no such one.
func OwnerOfFailedQueues(policy string) (Names, bool) {
	parsed, is := parsePolicyName(policy)
	return parsed.pipeline, is && (parsed.kind == failedQueuesPolicy || parsed.kind == attachmentFailedPolicy)
}

// ownsPolicy reports whether a policy of this name is the pipeline's, and not an attachment's.
func (n Names) ownsPolicy(policy string) bool {
	parsed, is := parsePolicyName(policy)
	return is && parsed.pipeline == n && parsed.kind != attachmentPolicy && parsed.kind != attachmentFailedPolicy
}

// isSharedPolicy reports whether a policy of this name covers work queues of the pipeline together.
func (n Names) isSharedPolicy(policy string) bool {
	parsed, is := parsePolicyName(policy)
	return is && parsed.pipeline == n && coversSeveral[parsed.kind]
}

// namesPolicy reports whether a policy of this name is the pipeline's or one of its attachments'. Whatever
// somebody changed in such a policy, it is not taken for another's.
func (n Names) namesPolicy(policy string) bool {
	parsed, is := parsePolicyName(policy)
	return is && parsed.pipeline == n
}
