package pipeline

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// DefaultPolicyPriority is the priority of a pipeline's policies if none is configured.
const DefaultPolicyPriority = 1000

// addPolicies attaches the work queues, and keeps other policies off the pipeline's own queues: only one policy applies
// to a queue. There are few policies, because brokers match every policy of a vhost against every queue at each change.
// One policy covers the own queues and all work queues with the same content. Work queues of a type with the same other
// content share a policy too. A queue gets its own policy only if it has its own settings.
func addPolicies(t topology.Topology, p Pipeline) {
	n, shared := p.Names(), map[string][]string{}
	maps.Copy(t.Policies, p.Guard())
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
		// The scope is quorumPolicy or classicPolicy.
		maps.Copy(t.Policies, p.groupPolicies(policyScope(queueType+"-queues"), 0, queues, content))
	}
	slices.Sort(withOwn)
	if pattern := n.pattern(withOwn); len(pattern) <= maxPattern {
		t.Policies[n.groupPolicy(queuesPolicy, 0)] = p.policy(p.ownContent(), pattern)
		return
	}
	// Number 0 still covers only the own queues, so that adding or removing a work queue never uncovers them.
	maps.Copy(t.Policies, p.groupPolicies(queuesPolicy, 1, withOwn, p.ownContent()))
}

// Guard returns the policies, by name, that keep other policies off the pipeline's own queues. They cover only these
// queues. The failed queues of work queues have their own policies, because the length of a pattern is limited.
func (p Pipeline) Guard() map[string]topology.Policy {
	guard := p.groupPolicies(failedQueuesPolicy, 0, p.DeclaredFailedQueues(), p.ownContent())
	guard[p.Names().groupPolicy(queuesPolicy, 0)] = p.policy(p.ownContent(), p.Names().pattern(nil))
	return guard
}

// groupPolicies returns policies with this content for as many groups of queues as the patterns need, numbered from
// first on.
func (p Pipeline) groupPolicies(
	scope policyScope, first int, queues []string, content topology.Arguments,
) map[string]topology.Policy {
	policies := map[string]topology.Policy{}
	for i, group := range spread(queues) {
		policy := p.policy(content, ExactPattern(group))
		policy.Rank = first + i // queues move from a lower number to a higher one
		policies[p.Names().groupPolicy(scope, first+i)] = policy
	}
	return policies
}

func (p Pipeline) policy(content topology.Arguments, pattern string) topology.Policy {
	// RabbitMQ before 3.12 has no value of ApplyTo for one queue type.
	return topology.Policy{Pattern: pattern, ApplyTo: "queues", Priority: p.PolicyPriority, Definition: content}
}

// policyOf returns the policy for one work queue.
func (p Pipeline) policyOf(workQueue string) topology.Policy {
	policy := p.policy(p.PolicyContent(workQueue), ExactPattern([]string{workQueue}))
	policy.Priority = p.PriorityOf(workQueue)
	return policy
}

// precedence returns how far a work queue's policy is above the pipeline's other policies. Brokers differ if two
// policies have the same priority. RabbitMQ 3.10 and 4.0 apply the one created last, and 4.3 applies the first by name
// (seen on 3.10.8, 4.0.5 and 4.3.6). A queue that is taken over therefore needs a higher priority than the other
// pipeline gives it.
func (w WorkQueue) precedence() int {
	if w.TakeOverFrom != "" {
		return 1
	}
	return 0
}

// AttachedByPolicy lists the work queues that are attached by a policy.
func (p Pipeline) AttachedByPolicy() []string {
	names := slices.Sorted(maps.Keys(p.WorkQueues))
	return slices.DeleteFunc(names, func(name string) bool { return !p.WorkQueues[name].ByPolicy() })
}

// ownContent is the policy content for the pipeline's own queues. The dead-letter exchange and strategy in their
// arguments take precedence over the policy's. The policy's overflow takes precedence over their arguments, so it sets
// the same value.
func (p Pipeline) ownContent() topology.Arguments {
	return WorkQueue{Type: p.QueueType}.deadLettering(p.engine().guardedExchange(p.Names()))
}

// typeContent is the policy content for work queues of a type without their own settings.
func (p Pipeline) typeContent(queueType string) topology.Arguments {
	return p.contentFor("", WorkQueue{Type: queueType})
}

// PolicyContent returns the policy content that a work queue needs.
func (p Pipeline) PolicyContent(workQueue string) topology.Arguments {
	return p.contentFor(workQueue, p.WorkQueues[workQueue])
}

func (p Pipeline) contentFor(name string, w WorkQueue) topology.Arguments {
	content := p.ExtraKeys(w)
	maps.Copy(content, p.neededKeys(name, w))
	return content
}

// neededKeys returns the keys that a work queue needs to take part in the pipeline.
func (p Pipeline) neededKeys(name string, w WorkQueue) topology.Arguments {
	keys := w.deadLettering(p.DeadLetterExchangeOf(w))
	maps.Copy(keys, p.engine().workQueueKeys(p, name, w))
	return keys
}

// BrokerKeys returns the policy keys that make the broker itself retry a work queue's messages. If a worker retries,
// they are empty.
func (p Pipeline) BrokerKeys(workQueue string) topology.Arguments {
	return p.engine().workQueueKeys(p, workQueue, p.WorkQueues[workQueue])
}

// DeadLetterArguments returns the arguments that the owner of a work queue must declare it with if no policy attaches
// it.
func (p Pipeline) DeadLetterArguments(workQueue string) topology.Arguments {
	arguments := topology.Arguments{}
	for key, value := range p.neededKeys(workQueue, p.WorkQueues[workQueue]) {
		arguments["x-"+key] = value
	}
	return arguments
}

// WrittenKeys returns the keys that the user wrote, including those with null.
func (p Pipeline) WrittenKeys(w WorkQueue) topology.Arguments {
	keys := topology.Arguments{}
	maps.Copy(keys, p.PolicyDefinition)
	maps.Copy(keys, w.PolicyDefinition)
	return keys
}

// ExtraKeys returns the keys that the user wrote, without those with null.
func (p Pipeline) ExtraKeys(w WorkQueue) topology.Arguments {
	keys := p.WrittenKeys(w)
	maps.DeleteFunc(keys, func(_ string, value any) bool { return value == nil })
	return keys
}

// OwnQueues returns the pipeline's own queues, including retired ones.
func (p Pipeline) OwnQueues() map[string]topology.Queue {
	t := p.Identity()
	p.engine().addQueues(&t, p)
	addFailedQueuesOfWorkQueues(&t, p)
	return t.Queues
}

// policyPrefix begins the name of every policy of a pipeline or an attachment.
const policyPrefix = "retry"

// policyScope is the third part of a policy's name.
type policyScope string

const (
	// queuesPolicy covers the pipeline's own queues and the work queues that need the same content.
	queuesPolicy policyScope = "queues"
	// quorumPolicy and classicPolicy cover the work queues of a type that share another content.
	quorumPolicy  policyScope = topology.Quorum + "-queues"
	classicPolicy policyScope = topology.Classic + "-queues"
	// failedQueuesPolicy covers the failed queues of work queues.
	failedQueuesPolicy policyScope = "failed-queues"
	// queuePolicy covers one work queue with its own content.
	queuePolicy policyScope = "queue"
	// attachmentPolicy covers an attached queue.
	attachmentPolicy policyScope = "attachment"
	// attachmentFailedPolicy covers the failed queue of an attached queue.
	attachmentFailedPolicy policyScope = "attachment-failed-queue"
)

// coversSeveral says whether the policies of a scope cover several queues or one.
var coversSeveral = map[policyScope]bool{
	queuesPolicy: true, quorumPolicy: true, classicPolicy: true, failedQueuesPolicy: true,
	queuePolicy: false, attachmentPolicy: false, attachmentFailedPolicy: false,
}

// groupPolicy names a policy for a group of queues: retry/<pipeline>/<scope>/<number>. Number 0 is left out.
func (n Names) groupPolicy(scope policyScope, number int) string {
	name := strings.Join([]string{policyPrefix, string(n), string(scope)}, Separator)
	if number > 0 {
		name += Separator + strconv.Itoa(number)
	}
	return name
}

// queuePolicyOf names a policy for one queue: retry/<pipeline>/<scope>/<queue>.
func (n Names) queuePolicyOf(scope policyScope, queue string) string {
	return n.groupPolicy(scope, 0) + Separator + queue
}

// QueuePolicy names the policy of a work queue with its own content.
func (n Names) QueuePolicy(workQueue string) string { return n.queuePolicyOf(queuePolicy, workQueue) }

// AttachmentPolicy names the policy of an attached queue.
func (n Names) AttachmentPolicy(queue string) string { return n.queuePolicyOf(attachmentPolicy, queue) }

// parsePolicyName returns the pipeline and the scope of a policy. It accepts only names that are written as above.
func parsePolicyName(name string) (n Names, scope policyScope, is bool) {
	parts := strings.SplitN(name, Separator, 4)
	if len(parts) < 3 || parts[0] != policyPrefix || parts[1] == "" {
		return "", "", false
	}
	n, scope = Names(parts[1]), policyScope(parts[2])
	rest := strings.Join(parts[3:], "") // a queue, a number or nothing
	several, known := coversSeveral[scope]
	if several {
		number, _ := strconv.Atoi(rest)
		return n, scope, n.groupPolicy(scope, number) == name
	}
	return n, scope, known && rest != ""
}

// OwnerOfFailedQueues returns the pipeline whose policy covers failed queues of work queues or of attached queues. It
// returns false for other policies.
func OwnerOfFailedQueues(policy string) (Names, bool) {
	n, scope, is := parsePolicyName(policy)
	return n, is && (scope == failedQueuesPolicy || scope == attachmentFailedPolicy)
}

// ownsPolicy reports whether the name belongs to a policy of the pipeline. It returns false for its attachments.
func (n Names) ownsPolicy(policy string) bool {
	of, scope, is := parsePolicyName(policy)
	return is && of == n && scope != attachmentPolicy && scope != attachmentFailedPolicy
}

// isSharedPolicy reports whether the name belongs to a policy that covers several work queues of the pipeline.
func (n Names) isSharedPolicy(policy string) bool {
	of, scope, is := parsePolicyName(policy)
	return is && of == n && coversSeveral[scope]
}

// NamesPolicy reports whether the name belongs to a policy of the pipeline or one of its attachments. A policy with
// such a name stays theirs even if somebody changed its content.
func (n Names) NamesPolicy(policy string) bool {
	of, _, is := parsePolicyName(policy)
	return is && of == n
}
