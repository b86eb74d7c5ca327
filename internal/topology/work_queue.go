package topology

import "cmp"

// Ways in which a work queue gets its dead-letter exchange.
const (
	// AttachPolicy writes a policy, which needs no redeclaration.
	AttachPolicy = "policy"
	// AttachArguments leaves it to whoever declares the queue.
	AttachArguments = "arguments"
)

// Strategies of dead-lettering.
const (
	// AtLeastOnce keeps a dead letter until its targets have taken it. Quorum queues only, together
	// with overflow = reject-publish (rabbit_quorum_queue:dead_letter_handler).
	AtLeastOnce = "at-least-once"
	// AtMostOnce drops a dead letter whose target does not take it.
	AtMostOnce = "at-most-once"
)

// WorkQueue is a queue whose rejected messages the pipeline retries.
type WorkQueue struct {
	Type string
	// Declare makes the pipeline create and own the queue, with Arguments.
	Declare   bool
	Arguments Arguments
	// Attach is AttachPolicy, also if it is empty, or AttachArguments.
	Attach string
	// DeadLetterStrategy is AtLeastOnce for quorum queues and AtMostOnce for others if it is empty.
	DeadLetterStrategy string
	// MaxAttempts takes the place of the pipeline's for messages that fail in this queue, 0 if there
	// is none.
	MaxAttempts int
	// PolicyDefinition has more keys for the queue's policy. They win over those of the pipeline; nil
	// takes a key away.
	PolicyDefinition Arguments
}

func (w WorkQueue) byPolicy() bool { return w.Attach != AttachArguments }

// Strategy is how the queue dead-letters.
func (w WorkQueue) Strategy() string {
	if w.Type == Quorum {
		return cmp.Or(w.DeadLetterStrategy, AtLeastOnce)
	}
	return cmp.Or(w.DeadLetterStrategy, AtMostOnce)
}

// deadLettering is what the queue needs to dead-letter into a pipeline, as keys of a policy.
func (w WorkQueue) deadLettering(n Names) Arguments {
	keys := Arguments{"dead-letter-exchange": n.DeadLetterExchange()}
	if w.Strategy() == AtLeastOnce {
		keys["dead-letter-strategy"] = AtLeastOnce
		keys["overflow"] = "reject-publish"
	}
	return keys
}

// deadLetterArguments are the same as a queue's arguments.
func (w WorkQueue) deadLetterArguments(n Names) Arguments {
	arguments := Arguments{}
	for key, value := range w.deadLettering(n) {
		arguments["x-"+key] = value
	}
	return arguments
}
