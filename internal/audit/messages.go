package audit

import (
	"fmt"
	"strconv"
	"strings"
)

// Dead-letter exchanges. These messages end with the consequence for the dead letters.
const (
	exchangeMissing       = "The dead-letter exchange %q%s of %s does not exist. %s"
	exchangeMissingRemedy = "Create the exchange %q and bind a queue to it, or name an exchange that exists."

	exchangeUnset       = "There is a %s for %s, but no dead-letter exchange, so every message that dies is dropped."
	exchangeUnsetRemedy = "Set dead-letter-exchange as well. " +
		`Write "" for the default exchange, where the name of a queue is the routing key.`

	unroutable       = "The dead-letter exchange %q of %s leads to no queue%s, not even through an alternate exchange. %s"
	unroutableKey    = " for the dead-letter routing key %q"
	unroutableRemedy = "Bind a queue to the exchange, with that key if the exchange routes by keys, " +
		"or give the exchange an alternate exchange."

	keyUnbound = "Messages arrive in %s with the routing key %s and keep it when they die, " +
		"but the dead-letter exchange %q routes it nowhere. %s"
	keyUnboundRemedy = "Bind the dead-letter queue with these keys as well, make the exchange a fanout, " +
		"or set dead-letter-routing-key to a key that is bound."

	keySometimesUnbound = "Messages can arrive in %s with a routing key such as %s. They keep it when they die, " +
		"and the dead-letter exchange %q routes only other keys. %s"
	keySometimesUnboundRemedy = keyUnboundRemedy + " If publishers never use such a key, ignore this rule."

	routeTemporary = "The dead letters of %s go through %s. " +
		"When this is gone, they are dropped silently, or stay pending dead letters."
	routeTemporaryRemedy = "Declare it again, durable, and neither auto-delete nor exclusive. Or bind a durable queue as well."

	headersIgnored = "Exchange %q gets dead letters of %s. Its binding to %s looks only at headers that begin with x-, " +
		"which the broker ignores: it matches %s."
	headersMatchAll      = "every message"
	headersMatchNone     = "no message"
	headersIgnoredRemedy = "Set x-match to all-with-x or any-with-x."

	deadLettersDropped = "Messages that die there are dropped silently."
	deadLettersPending = "Messages that die there stay in the queue as pending dead letters. " +
		"The broker tries to deliver them every three minutes."
	deadLettersDroppedOrPending = deadLettersDropped + " If the queue dead-letters at least once, they stay pending dead letters indefinitely."
)

// Cycles.
const (
	cycle = "Messages that expire or are displaced go round in a cycle: %s. " +
		"If a message returns to a queue without a rejection in between, the broker drops the message. " +
		"A queue that dead-letters at least once keeps it indefinitely."
	cycleRemedy = "Keep messages that expire or are displaced out of the cycle. " +
		"Remove message-ttl or max-length from the work queue, or have a process of your own publish messages back."

	loop = "Queue %q gets its rejected messages back at once, again and again: its dead-letter exchange leads to the queue itself. " +
		"A message that always fails keeps the broker and the consumers busy."
	loopRemedy = "Remove the binding, or set a dead-letter exchange that the queue is not bound to."

	fanOut = "Messages that wait in queue %q come back to all of %s, not only to the queue that rejected them. " +
		"Each retry for one queue is a new message in the others. If consumers of several queues fail, the messages multiply."
	fanOutRemedy = "Declare a waiting queue for each of these queues. " +
		`Set its dead-letter-exchange to "", and its dead-letter-routing-key to the name of the queue.`

	limitCycle = "A message that is returned to queue %q more than %d times is dead-lettered and goes round in a cycle: %s. " +
		"No consumer has rejected it, so the broker drops it when it comes back. " +
		"A queue that dead-letters at least once keeps it indefinitely."
	limitCycleRemedy = "Have consumers reject messages that they cannot process (requeue = false) before the delivery limit is reached, " +
		"and raise the limit. " +
		"Or route by reason, so that only rejected messages come back."
)

// Delivery limits.
const (
	limitDrops       = "There is a delivery limit of %d for %s, and no dead-letter exchange: a message that is returned more often is dropped."
	limitDropsRemedy = "Set a dead-letter exchange as well."

	defaultLimit = "From RabbitMQ 4.0 on, the default delivery limit of quorum queues is %d. " +
		"Without a dead-letter exchange, a message that is returned more often is dropped. " +
		"This concerns %s."
	defaultLimitRemedy = "Give the queues a dead-letter exchange, for instance by one policy for all quorum queues."

	negativeLimit = "The delivery limit of %s is negative. From RabbitMQ 4.0 on, this means no limit. " +
		"Before 4.0, every message exceeds it as soon as it is returned once."
	negativeLimitRemedy = "Remove the limit. If the broker will be upgraded, set a large number instead."
)

// Queues that delete their messages.
const (
	parkingExpires = "Dead letters come to rest in %s. " +
		"A queue that is unused for %s is deleted with all of them (expires)."
	parkingExpiresRemedy = "Remove expires: write a policy of higher priority without it, " +
		"or re-create the queue without the argument."

	parkingTTL       = "Dead letters come to rest in %s, and each is deleted %s later (message-ttl)."
	parkingTTLRemedy = "To keep them longer, remove message-ttl, or set a dead-letter exchange. " +
		"Otherwise, ignore this rule."

	parkingLength = "Dead letters come to rest in %s. " +
		"When a queue is full, its oldest messages are deleted (max-length or max-length-bytes)."
	parkingLengthRemedy = "Remove the limit and watch the length instead, or set a dead-letter exchange."

	parkingLimit = "Dead letters come to rest in %s with a delivery limit of %d: a message that is returned more often is dropped. " +
		"Looking at a message with a management tool returns it."
	parkingLimitRemedy = "Set delivery-limit to a number that is never reached, such as %d, or use a classic queue."

	retryQueueExpires = "Messages wait %s in queue %q. " +
		"If the queue is neither consumed nor declared for %s, it is deleted with all of them (expires). " +
		"Publishing to it does not count as use."
	retryQueueExpiresFirst  = " It is deleted before the first message is due."
	retryQueueExpiresRemedy = "Remove expires: an empty queue costs little."
)

// Full queues.
const (
	targetFreezes = "Queue %q has a length limit and overflow = %s. " +
		"While it is full, at-least-once dead-lettering keeps all dead letters of %s pending, including dead letters for other queues. " +
		"Once there is room again, the broker can take six minutes to deliver them."
	targetRefused       = " Messages that a sidecar parks reach the other queues, twice at most, and stay in %s for the full queue."
	targetFreezesRemedy = "Remove the limit from a queue that receives dead letters and watch its length instead, " +
		"or let it drop its oldest messages (overflow = drop-head)."

	targetLoses = "Queue %q has a length limit and overflow = reject-publish. " +
		"While it is full, dead letters from %s are dropped."
	targetLosesRemedy = "Remove the limit from a queue that receives dead letters. " +
		"Or set overflow = reject-publish-dlx and a dead-letter exchange, so that the queue dead-letters the messages that it rejects."

	streamFreezes = "Stream %q receives dead letters from %s. " +
		"RabbitMQ cannot write a message to a stream if a header is a decimal (BigDecimal in Java, Decimal in Python). " +
		"One such message ends at-least-once dead-lettering on the whole node, of other queues, too. " +
		"Until the node restarts without this binding, their dead letters stay pending, and the other targets get copy after copy."
	streamDrops = "The dead letters of %s go only to stream %q. " +
		"On RabbitMQ 3.10, a stream drops them, because these queues dead-letter at most once."
	streamDropsRemedy = "Bind a quorum queue instead, dead-letter at least once, or upgrade RabbitMQ."

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
		"Policy %q sets one, but has a lower priority, and only one policy applies to a queue. Messages rejected there are dropped."
	policyShadowsRemedy = "Copy the keys of %q into %q, or give %q the higher priority."

	policyTie = "Policies %q and %q have the same priority and both match %s, but dead-letter differently. " +
		"Only one of them applies, and RabbitMQ does not define which one."
	policyTieRemedy = "Give one of them a higher priority, or make their patterns disjoint."

	policyInapplicable = "Policy %q matches %s and sets a dead-letter exchange, but does not apply at all: %s. " +
		"Messages rejected there are dropped."
	policyUnsupported        = "%s queues do not support %s"
	policyUnsupportedRemedy  = "Add a second policy for %s queues without %s, and with a different priority."
	policyForExchanges       = "it applies to exchanges only"
	policyForExchangesRemedy = "Let the policy apply to queues (apply-to = queues)."

	policyUnreadable = "The queues that policy %q matches are unknown: " +
		"the audit cannot evaluate its pattern %q for all names. " +
		"The findings assume that the policy does not match the other names."
	policyUnreadableRemedy = "Write the pattern more simply, without the rarer parts of PCRE. " +
		`For names that are not ASCII, avoid \w, \b, (?i) and POSIX classes.`
)

// Arguments.
const (
	argumentIgnored = "Queue %q was declared with the argument %q, which brokers store and ignore. " +
		"It looks like %q."
	argumentIgnoredRemedy = "Declare a new queue with %q, or set %q by a policy, which also works for the existing queue."

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

	inboxUnserved       = "Queue %q has no consumer. No sidecar serves it, and its messages wait: %d."
	inboxUnservedRemedy = "Give the sidecar its current worker configuration. If it has it, /readyz of the sidecar says what is wrong."

	failedUnbound = "Queue %q is not bound to %q: messages of pipeline %q that are no longer retried have nowhere to go. " +
		"A sidecar keeps them unacknowledged. " +
		"Messages that the broker itself would move there are dropped, or stay pending dead letters."

	failedQueueUnbound = "Queue %q is declared for the failed messages of some work queues, but %q has no binding to it. " +
		"The messages go to the failed queue of the pipeline %q instead."

	delayUnbound = "Retry queue %q is not bound to %q with the key %q. " +
		"Its messages wait in another retry queue. If there is no other, they go to the failed queue."

	rejectedUnbound = "Retry queue %q lacks the pipeline's binding to %q. " +
		"Messages that consumers reject in pipeline %q go to the failed queue without a retry."

	returnUnbound = "Queue %q dead-letters to pipeline %q but is not bound to %q with the key %q. "

	retryIneffective = "Queue %q is a work queue of pipeline %q, but settings that its retries need are not in force: %s. " +
		"Its messages wait too long or too briefly, come back at once, or are parked too early."
	retryIneffectiveRemedy = "Run terraform apply: the plan shows a policy that differs. " +
		"If the plan shows none, look for an argument of the queue, or an operator policy."
	returnUnboundRemedy = "Add the queue to the pipeline's work_queues, or attach it with rabbitmq_retry_attachment. " +
		"If it is there already, run terraform apply."

	returnNowhere = "Queue %q dead-letters to pipeline %q, but %q leads nowhere with the key %q. " +
		"After the delay its messages are dropped, or stay pending dead letters in the retry queues."

	definitionUnreadable = "The definition of pipeline %q cannot be read: %s. " +
		"Messages are still retried, but the pipeline cannot be imported."
	definitionUnreadableRemedy = "Run terraform apply: the plan shows the binding and restores it, or says which release is needed. " +
		`If no state has the pipeline, write the definition again, as the guide "Changing, moving, importing, destroying" says.`
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
	bypassed       = "Exchange %q, where applications publish messages to delay, also leads to %s, which gets every message at once."
	bypassedRemedy = "Remove the binding. For messages that are due, bind the queue to %q."

	delayedInboxUnbound = "Queue %q is not bound to %q: messages that are published there are not delayed. " +
		"They go to the unrouted queue, as long as the alternate exchange leads there."

	unroutedUnbound = "Queue %q is not bound to %q: messages that cannot be delayed, " +
		"or cannot be routed when they are due, have nowhere to go. " +
		"They stay in the inbox and in the levels, and stop later messages."

	unroutedNoAlternate = "%q is not the alternate exchange of %q. " +
		"If no queue is bound for a message that is due, the message stays in its level. 32 such messages stop all others."

	levelUnbound = "The levels of delayed exchange %q lack %s. " +
		"The sidecar or the level above keeps the messages that must go there. They are late, never early."

	levelEntered = "The levels of delayed exchange %q get messages from %s. " +
		"Only the sidecar and the levels themselves should publish there. " +
		"A message must say for each level whether it waits there. Otherwise, it is dropped, or stops the level for all others. " +
		"Before RabbitMQ 3.13, a message that was rejected after it had waited in several levels also stops them."
	levelEnteredRemedy = "Publish to %q instead, or dead-letter to a retry pipeline."

	deliveryFreezes = "Delayed exchange %q delivers to %s, with a length limit and an overflow that rejects. " +
		"While such a queue is full, its messages stay in their level, and 32 of them stop the messages for all other queues. " +
		"Messages without a delay reach the other queues, twice at most, and stay in queue %q for the full queue. " +
		"Once there is room again, delivery takes up to six minutes."
	deliveryFreezesRemedy = "Remove the limit and watch the length instead, " +
		"or let the queue drop its oldest messages (overflow = drop-head). " +
		"The broker's setting dead_letter_worker_publisher_confirm_timeout can shorten the wait once there is room. " +
		"Keep the queue and its bindings until then: the broker waits for the queue even after its deletion."

	deadEnd = "Delayed exchange %q delivers through %s without an alternate exchange, where a message can find no queue. " +
		"The alternate exchange of %q does not apply, since the binding has matched. " +
		"Such a message stays in its level, and 32 of them stop all others."
	deadEndRemedy = "Give the exchange an alternate exchange, such as %q, or a queue for every routing key."

	deliveryLoop       = "Delayed exchange %q delivers to its own inbox: a message that is due comes back to it at once, again and again."
	deliveryLoopRemedy = "Remove the binding that leads from %q back to %q."

	deliveryAnswered = "Consumers behind a delayed exchange can publish to %[2]q: %[1]s. " +
		"A message that is published there is delivered at once, whatever its x-delay."
	deliveryAnsweredRemedy = "Take write on %q from these users. To delay a message again, publish it to %q."

	delayedQueueAltered = "%s of delayed exchange %q: %s. %s"
	delayedQueueRemedy  = "Keep the policy off these queues: write a pattern that does not match them. " +
		"If it is no operator policy, a lower priority also helps."
	delayedQueueOwn = "Run terraform apply: the plan shows the queue, and replaces it once it is empty."

	delayDefinitionUnreadable = "The definition of delayed exchange %q cannot be read: %s. " +
		"Messages are still delayed, but the delayed exchange cannot be imported."
)

// Effects of a changed setting on an own queue of a delayed exchange.
const (
	effectOfType          = "Only quorum queues keep messages that expire while their target is unavailable."
	effectOfTTL           = "Messages are early or late, or go to the unrouted queue without a delay."
	effectOfExpires       = "The broker deletes an unused queue with all its messages."
	effectOfLength        = "A full queue stops all queues that lead to it."
	effectOfDeadLetter    = "Messages go elsewhere, or are lost while their target is unavailable."
	effectOfDeliveryLimit = "If a queue is looked at again and again, its messages move on before their time."
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
