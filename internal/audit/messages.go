package audit

import (
	"fmt"
	"strconv"
	"strings"
)

// Dead-letter exchanges. These messages end with the consequence for the dead letters.
const (
	exchangeMissing       = "The dead-letter exchange %q of %s does not exist. %s"
	exchangeMissingRemedy = "Create the exchange %q and bind a queue to it, or name an exchange that exists."

	exchangeUnset       = "There is a %s for %s, but no dead-letter exchange, so every message that dies is dropped."
	exchangeUnsetRemedy = "Set dead-letter-exchange as well. " +
		`Write "" for the default exchange, where the name of a queue is the routing key.`

	unroutable       = "The dead-letter exchange %q of %s leads to no queue%s, and no alternate exchange receives what it cannot route. %s"
	unroutableKey    = " for the dead-letter routing key %q"
	unroutableRemedy = "Bind a queue to the exchange, with that key if the exchange routes by keys, " +
		"or give the exchange an alternate exchange."

	keyUnbound = "Messages arrive in %s with the routing key %s and keep it when they die, " +
		"but the dead-letter exchange %q routes it nowhere. %s"
	keyUnboundRemedy = "Bind the dead-letter queue with these keys as well, make the exchange a fanout, " +
		"or set dead-letter-routing-key to a key that is bound."

	deadLettersDropped = "Messages that die there are dropped silently."
	deadLettersPending = "Messages that die there stay in the queue as pending dead letters, " +
		"neither delivered nor released, and the broker tries again every three minutes."
	deadLettersDroppedOrPending = "Messages that die there are dropped silently, " +
		"or stay pending dead letters indefinitely where the queue dead-letters at least once."
)

// Cycles.
const (
	cycle = "Messages that expire or are displaced go round in a cycle: %s. " +
		"The broker drops a message that returns to a queue without having been rejected in between; " +
		"a queue that dead-letters at least once keeps it indefinitely."
	cycleRemedy = "Route messages that expire or are displaced elsewhere than rejected ones: " +
		"remove message-ttl or max-length from the work queue, or have a process of your own publish messages back."

	loop = "Queue %q gets its rejected messages back at once and without end: its dead-letter exchange leads to the queue itself. " +
		"One message that always fails keeps the broker and its consumers busy."
	loopRemedy = "Remove the binding, or let the queue dead-letter to an exchange to which it is not bound."

	fanOut = "Messages that wait in queue %q come back to all of %s, not only to the one that rejected them. " +
		"Each retry of one is a new message for the others, and they multiply if more than one fails."
	fanOutRemedy = "Return messages to their own queue alone: a waiting queue for each of them, " +
		`with dead-letter-exchange = "" and the name of the queue as dead-letter-routing-key.`

	limitCycle = "A message that is returned to queue %q more than %d times dead-letters and goes round in a cycle: %s. " +
		"Nobody has rejected it, so the broker drops it when it comes back; " +
		"a queue that dead-letters at least once keeps it indefinitely."
	limitCycleRemedy = "Have consumers reject what they cannot process (requeue = false) before the delivery limit is reached, " +
		"and raise the limit. " +
		"Or route by reason, so that only rejected messages come back."
)

// Delivery limits.
const (
	limitDrops       = "There is a delivery limit of %d for %s, and no dead-letter exchange: a message that is returned more often is dropped."
	limitDropsRemedy = "Set a dead-letter exchange as well."

	defaultLimit = "From RabbitMQ 4.0 on, quorum queues have a delivery limit of %d unless another one is set. " +
		"Without a dead-letter exchange, a message that is returned more often is dropped. " +
		"This concerns %s."
	defaultLimitRemedy = "Give the queues a dead-letter exchange, for instance by one policy for all quorum queues."

	negativeLimit = "The delivery limit of %s is negative, which means no limit from RabbitMQ 4.0 on only. " +
		"Before, every message that is returned once has exceeded it."
	negativeLimitRemedy = "Leave the limit out, or set a large number if the broker will be upgraded."
)

// Queues that delete their messages.
const (
	parkingExpires = "Dead letters come to rest in %s. " +
		"A queue that nobody has used for %s is deleted with all of them (expires)."
	parkingExpiresRemedy = "Remove expires: by a policy of higher priority that does not set it, " +
		"or by re-creating the queue without the argument."

	parkingTTL       = "Dead letters come to rest in %s, and each is deleted %s later (message-ttl)."
	parkingTTLRemedy = "If they are meant to be kept longer, remove message-ttl, or set a dead-letter exchange. " +
		"If not, ignore this rule."

	parkingLength = "Dead letters come to rest in %s. " +
		"The oldest ones are deleted when a queue is full (max-length or max-length-bytes)."
	parkingLengthRemedy = "Remove the limit and watch the length instead, or set a dead-letter exchange."

	parkingLimit = "Dead letters come to rest in %s with a delivery limit of %d: one that is returned more often is dropped. " +
		"Looking at a message with a management tool returns it."
	parkingLimitRemedy = "Set delivery-limit to a number that is never reached, such as %d, or use a classic queue or a stream."

	retryQueueExpires = "Messages wait %s in queue %q. " +
		"It is deleted with all of them when nobody has consumed from it or declared it for %s (expires). " +
		"Publishing to it does not count as use."
	retryQueueExpiresFirst  = " It is deleted before the first of them is due."
	retryQueueExpiresRemedy = "Remove expires: an empty queue costs little."
)

// Full queues.
const (
	targetFreezes = "Queue %q has a length limit and overflow = reject-publish. " +
		"While it is full, all dead letters of %s stay pending, those for other queues, too, since they are dead-lettered at least once. " +
		"After there is room again, it takes up to six minutes until they are delivered."
	targetRefused       = " What a sidecar parks reaches the other queues, twice at most, and stays in %s for the one that is full."
	targetFreezesRemedy = "Remove the limit from a queue that receives dead letters and watch its length instead, " +
		"or let it drop its oldest messages (overflow = drop-head)."

	targetLoses = "Queue %q has a length limit and overflow = reject-publish. " +
		"While it is full, dead letters from %s are dropped."
	targetLosesRemedy = "Remove the limit from a queue that receives dead letters. " +
		"Or set overflow = reject-publish-dlx and a dead-letter exchange, so that it dead-letters what it rejects."

	streamFreezes = "Stream %q receives dead letters from %s. " +
		"RabbitMQ cannot write a message to a stream if a header is a decimal (BigDecimal in Java, Decimal in Python). " +
		"It tries again and again, and all dead letters of these queues stay pending. The other queues get copy after copy."
	streamFreezesRemedy = "Bind a quorum queue instead, or have publishers write decimals as text."

	atMostOnce = "The dead-letter strategy of %s is at-least-once, " +
		"but without overflow = reject-publish the broker dead-letters at most once. " +
		"Messages that die while a target is missing, full or changing its leader are dropped."
	atMostOnceRemedy = "Set overflow = reject-publish as well. " +
		"A policy's overflow takes precedence over the argument of a quorum queue, so look for such a policy."
)

// Policies.
const (
	policyShadows = "Policy %q applies to %s and sets no dead-letter exchange. " +
		"Policy %q of lower priority does, but only one policy applies to a queue: messages rejected there are dropped."
	policyShadowsRemedy = "Copy the keys of %q into %q, or give %q the higher priority."

	policyTie = "Policies %q and %q have the same priority and both match %s, but dead-letter differently. " +
		"Only one applies, and it is not defined which."
	policyTieRemedy = "Give one of them a higher priority, or make their patterns disjoint."

	policyInapplicable = "Policy %q matches %s and sets a dead-letter exchange, but does not apply at all: " +
		"%s queues do not support %s. " +
		"Messages rejected there are dropped."
	policyInapplicableRemedy = "Add a second policy for %s queues without %s, of a priority of its own."

	policyUnreadable = "The queues that policy %q matches are not known: " +
		"the audit cannot evaluate its pattern %q, or not for each of their names. " +
		"The findings are as if it matched none of those."
	policyUnreadableRemedy = "Write the pattern more simply, without the rarer parts of PCRE. " +
		`For names that are not ASCII, avoid \w, \b, (?i) and POSIX classes.`
)

// Arguments.
const (
	argumentIgnored = "Queue %q was declared with the argument %q, which brokers store and ignore. " +
		"It looks like %q."
	argumentIgnoredRemedy = "Declare the queue with %q, which needs a new queue, or set %q by a policy, which does not."

	delayedRetryIgnored       = "Queue %q was declared with x-delayed-retry-type, but %s: messages returned to it come back at once."
	delayedRetryIgnoredRemedy = "Use a quorum queue on RabbitMQ 4.3 or later, with a type of all, failed or returned, " +
		"and x-delayed-retry-min in milliseconds. " +
		"For other brokers, create a retry pipeline."

	delayedRetryTooOld      = "brokers before 4.3 ignore it"
	delayedRetryQueueType   = "only quorum queues support it"
	delayedRetryUnknownType = "the broker does not support the type %v"
	delayedRetryNoMinimum   = "x-delayed-retry-min is missing"
)

// Retry pipelines.
const (
	runApply = "Run terraform apply: the plan shows what is missing."

	inboxUnbound = "Queue %q is not bound to %q: messages rejected in pipeline %q are not retried. " +
		"They go to the failed queue at once, as long as the alternate exchange leads there."

	failedUnbound = "Queue %q is not bound to %q: messages of pipeline %q that are no longer retried have nowhere to go. " +
		"A sidecar keeps them unacknowledged. " +
		"Messages that the broker itself moves there are dropped, or stay pending dead letters."

	failedQueueUnbound = "Queue %q is declared for the failed messages of some work queues, but %q has no binding that leads there. " +
		"They go to the failed queue of the pipeline %q instead."

	delayUnbound = "Retry queue %q is not bound to %q with the key %q. " +
		"Messages that should wait there wait in another retry queue, or go to the failed queue if there is none."

	rejectedUnbound = "Retry queue %q is not bound to %q as the pipeline makes it. " +
		"What consumers reject in pipeline %q goes to the failed queue without a retry."

	returnUnbound = "Queue %q dead-letters to pipeline %q but is not bound to %q with the key %q. "

	retryIneffective = "Queue %q is a work queue of pipeline %q, whose retries need settings that are not in force there: %s. " +
		"Its messages wait another time than configured, come back at once, or are parked too early."
	retryIneffectiveRemedy = "Run terraform apply: the plan shows a policy that differs. " +
		"If it shows none, look for an argument of the queue, or an operator policy."
	returnUnboundRemedy = "Add the queue to the pipeline's work_queues, or attach it with rabbitmq_retry_attachment. " +
		"If it is there already, run terraform apply."

	returnNowhere = "Queue %q dead-letters to pipeline %q, but %q leads nowhere with the key %q. " +
		"After the delay its messages are dropped, or stay pending dead letters in the retry queues."

	definitionUnreadable = "The definition of pipeline %q is damaged: %s. " +
		"Its messages are retried all the same, but it cannot be imported."
	definitionUnreadableRemedy = "Run terraform apply: the plan shows the binding and restores it. " +
		`If no state has the pipeline, write the definition again, as the guide "Import" says.`
)

// maxListed is the number of names that a message lists.
const maxListed = 5

// quotedList lists names in quotation marks, and counts names beyond the fifth.
func quotedList(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = strconv.Quote(name)
	}
	return listed(quoted)
}

func queueList(names []string) string {
	if len(names) == 1 {
		return "queue " + quotedList(names)
	}
	return "queues " + quotedList(names)
}

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

// Effects of a changed setting on an own queue of a delayed exchange.
const (
	effectOfType          = "Only quorum queues keep what expires while its target is away."
	effectOfTTL           = "Messages are early, late, or in the unrouted queue without a delay."
	effectOfExpires       = "The broker deletes a queue that nobody uses, with all its messages."
	effectOfLength        = "A queue that is full stops all those that lead to it."
	effectOfDeadLetter    = "Messages go elsewhere, or are lost when their target is away."
	effectOfDeliveryLimit = "Whoever looks at a queue again and again sends its messages on before their time."
)

// quoted returns an object's kind and quoted name.
func quoted(kind, name string) string { return fmt.Sprintf("%s %q", kind, name) }

// listed lists texts, and counts texts beyond the fifth.
func listed(texts []string) string {
	text := strings.Join(texts[:min(len(texts), maxListed)], ", ")
	if more := len(texts) - maxListed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// upperFirst starts a sentence with a capital letter.
func upperFirst(text string) string { return strings.ToUpper(text[:1]) + text[1:] }
