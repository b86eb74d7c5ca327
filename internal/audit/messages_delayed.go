package audit

import (
	"fmt"
	"slices"
	"strings"
)

// Delayed exchanges.
const (
	bypassed       = "%q, to which messages are published to be delayed, also leads to %s, which gets every message at once."
	bypassedRemedy = "Remove the binding. Queues for messages that are due are bound to %q."

	delayedInboxUnbound = "Queue %q is not bound to %q: nothing that is published there is delayed. " +
		"It goes to the unrouted queue, as long as the alternate exchange leads there."

	unroutedUnbound = "Queue %q is not bound to %q: what cannot be delayed or, when it is due, routed has nowhere to go. " +
		"It stays in the inbox and in the levels, and stops what comes after it."

	unroutedNoAlternate = "%q is not the alternate exchange of %q. " +
		"A message that is due and for which no queue is bound stays in its level, and 32 of them stop all others."

	levelUnbound = "The levels of delayed exchange %q lack %s. " +
		"Messages that have to go there are kept by the sidecar or in the level above, and are late; none is early."

	levelEntered = "The levels of delayed exchange %q get messages from %s. " +
		"Only the sidecar and the levels themselves should publish there. " +
		"A message that does not say of each level whether it waits there is dropped, or stops the level for all others. " +
		"Before RabbitMQ 4.0, one that was rejected after it had waited in several levels stops them, too."
	levelEnteredRemedy = "Publish to %q instead, or dead-letter to a retry pipeline."

	deliveryFreezes = "Delayed exchange %q delivers to %s, with a length limit and an overflow that rejects. " +
		"While such a queue is full, its messages stay in their level, and 32 of them stop those for all other queues. " +
		"What is delivered at once reaches the other queues, twice at most, and stays in queue %q for the one that is full. " +
		"After there is room again, it takes up to six minutes."
	deliveryFreezesRemedy = "Remove the limit and watch the length instead, " +
		"or let the queue drop its oldest messages (overflow = drop-head). " +
		"The broker's setting dead_letter_worker_publisher_confirm_timeout makes them go on sooner once there is room. " +
		"Keep the queue and its bindings until then: the broker waits for it even when it is gone."

	deadEnd = "Delayed exchange %q delivers through %s, which may have no queue for a message, and no alternate exchange. " +
		"The alternate exchange of %q does not apply, since the binding has matched. " +
		"Such a message stays in its level, and 32 of them stop all others."
	deadEndRemedy = "Give the exchange an alternate exchange, such as %q, or a queue for every routing key."

	deliveryLoop       = "Delayed exchange %q delivers to its own inbox: a message that is due comes back to it at once, again and again."
	deliveryLoopRemedy = "Remove the binding that leads from %q back to %q."

	delayedQueueAltered = "%s of delayed exchange %q: %s. %s"
	delayedQueueRemedy  = "Keep the policy off these queues: write a pattern that does not match them, " +
		"or, unless it is an operator policy, a lower priority."
	delayedQueueOwn = "Run terraform apply: the plan shows the queue, and replaces it once it is empty."

	delayDefinitionUnreadable = "The definition of delayed exchange %q is damaged: %s. " +
		"Its messages are delayed all the same, but it cannot be imported."
)

// What comes of another setting of an own queue of a delayed exchange.
const (
	effectOfType          = "Only quorum queues keep what expires while its target is away."
	effectOfTTL           = "Messages are early, late, or in the unrouted queue without a delay."
	effectOfExpires       = "The broker deletes a queue that nobody uses, with all its messages."
	effectOfLength        = "A queue that is full stops all those that lead to it."
	effectOfDeadLetter    = "Messages go elsewhere, or are lost when their target is away."
	effectOfDeliveryLimit = "Whoever looks at a queue again and again sends its messages on before their time."
)

// quoted is an object by its kind and name.
func quoted(kind, name string) string { return fmt.Sprintf("%s %q", kind, name) }

// listed lists texts; from the sixth on they are only counted.
func listed(texts []string) string {
	text := strings.Join(texts[:min(len(texts), maxListed)], ", ")
	if more := len(texts) - maxListed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// distinct sorts texts, and leaves out those that are there twice.
func distinct(texts []string) []string {
	slices.Sort(texts)
	return slices.Compact(texts)
}

// upperFirst begins a sentence with a list of queues.
func upperFirst(text string) string { return strings.ToUpper(text[:1]) + text[1:] }
