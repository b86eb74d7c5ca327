package pipeline

import (
	"strconv"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

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

// covers is how many queues a policy of a kind is for.
type covers int

const (
	oneObject covers = iota
	severalQueues
)

var policyKinds = map[policyKind]covers{
	queuesPolicy:     severalQueues,
	quorumPolicy:     severalQueues,
	classicPolicy:    severalQueues,
	queuePolicy:      oneObject,
	attachmentPolicy: oneObject,

	failedQueuesPolicy:     severalQueues,
	attachmentFailedPolicy: oneObject,
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
	case policyKinds[n.kind] == oneObject:
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
	switch each, known := policyKinds[parsed.kind]; {
	case !known || parsed.pipeline == "":
		return policyName{}, false
	case each == oneObject:
		parsed.object = rest
	default:
		parsed.number, _ = strconv.Atoi(rest)
	}
	return parsed, parsed.String() == name && (parsed.object != "" || policyKinds[parsed.kind] == severalQueues)
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
	return is && parsed.pipeline == n && policyKinds[parsed.kind] == severalQueues
}

// namesPolicy reports whether a policy of this name is the pipeline's or one of its attachments'. Whatever
// somebody changed in such a policy, it is not taken for another's.
func (n Names) namesPolicy(policy string) bool {
	parsed, is := parsePolicyName(policy)
	return is && parsed.pipeline == n
}
