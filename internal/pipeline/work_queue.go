package pipeline

import (
	"cmp"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Ways in which a work queue gets its dead-letter exchange.
const (
	// AttachPolicy writes a policy, which needs no redeclaration.
	AttachPolicy = "policy"
	// AttachArguments leaves it to whoever declares the queue.
	AttachArguments = "arguments"
)

// WorkQueue is a queue whose rejected messages the pipeline retries.
type WorkQueue struct {
	Type string
	// Declare makes the pipeline create and own the queue, with Arguments.
	Declare   bool
	Arguments topology.Arguments
	// Attach is AttachPolicy, also if it is empty, or AttachArguments.
	Attach string
	// DeadLetterStrategy is AtLeastOnce for quorum queues and AtMostOnce for others if it is empty.
	DeadLetterStrategy string
	// TakeOverFrom is another pipeline that has the queue too, and lets go of it later; "" for none.
	TakeOverFrom string
	// MaxAttempts takes the place of the pipeline's for messages that fail in this queue, 0 if there
	// is none.
	MaxAttempts int
	// FailedQueue gets the queue's failed messages in place of the pipeline's, "" if none does. The pipeline declares and
	// owns it unless it is ForeignFailedQueue.
	FailedQueue        string
	ForeignFailedQueue bool
	// PolicyDefinition has more keys for the queue's policy. They win over those of the pipeline; nil
	// takes a key away.
	PolicyDefinition topology.Arguments
}

// ByPolicy reports whether a policy attaches the queue.
func (w WorkQueue) ByPolicy() bool { return w.Attach != AttachArguments }

// DeclaresFailedQueue reports whether the queue has a failed queue that is created for it.
func (w WorkQueue) DeclaresFailedQueue() bool { return w.FailedQueue != "" && !w.ForeignFailedQueue }

// Strategy is how the queue dead-letters.
func (w WorkQueue) Strategy() string {
	if w.Type == topology.Quorum {
		return cmp.Or(w.DeadLetterStrategy, topology.AtLeastOnce)
	}
	return cmp.Or(w.DeadLetterStrategy, topology.AtMostOnce)
}

// deadLettering is what the queue needs to dead-letter to an exchange, as keys of a policy.
func (w WorkQueue) deadLettering(exchange string) topology.Arguments {
	keys := topology.Arguments{"dead-letter-exchange": exchange}
	if w.Strategy() == topology.AtLeastOnce {
		keys["dead-letter-strategy"] = topology.AtLeastOnce
		keys["overflow"] = "reject-publish"
	}
	return keys
}
