package preflight

// Details of conflicts between a work queue and other pipelines or attachments.
const (
	ownQueueOfAnother = "Queue %q is one of the own queues of the pipeline %q. " +
		"Leave it out."

	workQueueOfAnother = "Queue %q is a work queue of the pipeline %q, and a queue belongs to one pipeline. " +
		"To move it without losing what is rejected meanwhile, leave it in %q for now, write take_over_from = %q here and apply; " +
		"then remove the queue from %q and apply again. The guide \"Moving work queues\" has the steps."

	moveOfOthers = "Queue %q is on its way from the pipeline %q to %q, and one move ends before the next one begins. " +
		"Remove the queue from %q and apply; remove take_over_from in %q and apply; then write take_over_from = %q here."

	undefinedOwner = "The pipeline %q has queue %q, but its definition is gone: " +
		"the binding from %q to %q with the argument retry-definition. Apply the configuration that has this pipeline, which restores " +
		"the binding. If none has it any more, delete what is left of it: policies retry/%s/... and the binding from %q to the queue."

	notTakenOverYet = "Queue %q is still a work queue of the pipeline %q, and without take_over_from it would be undefined which of the two " +
		"gets what is rejected. To complete the move, remove the queue from %q first, with an apply of its own. " +
		"To cancel it, remove the queue here."

	beingTakenOver = "The pipeline %[2]q takes queue %[1]q over from this one, and gets what is rejected in it from now on. " +
		"To complete the move, remove the queue here with the next apply, and keep this pipeline's sidecar running until nothing waits " +
		"here any more. To cancel it, remove the queue from %[3]q instead."

	takenOverBoth = "The pipeline %q takes queue %q over from this one. " +
		"To cancel that, remove the queue from %q, and leave take_over_from out here: this pipeline has the queue still. " +
		"To complete it, remove the queue here; take_over_from in %q then has to go before the queue can come back."

	stillTakingOver = "The pipeline %q has queue %q with take_over_from = %q, which raises the priority of its policy to %d. " +
		"Remove take_over_from in %q first, with an apply of its own."

	declaredByOwner = "The pipeline %q declares queue %q, and deletes it as soon as it lets go of it. " +
		"Set declare = false there first, with an apply of its own: the queue stays."

	priorityOverTaker = "The pipeline %q takes queue %q over with priority %d, and this one's policy would have %d. " +
		"Leave policy_priority at %d or less until the queue is removed here."

	priorityOfOwner = "Queue %q would be taken over with priority %d, but the policy %q of the pipeline %q has priority %d: " +
		"the pipeline that takes over needs more. Write:\n\n" +
		"  policy_priority = %d"

	attachedByPipelineToo = "Queue %q is also one of the work_queues of the pipeline %q. " +
		"So a queue is handed over without losing a message. If this plan does not end that, remove it from one of the two."

	attachedByAttachmentToo = "Queue %q is also attached to this pipeline by a rabbitmq_retry_attachment. " +
		"So a queue is handed over without losing a message. If this plan does not end that, remove it from one of the two."

	attachedDifferently = "Queue %q is attached by %s with %s, and would be attached here with %s. " +
		"While both are in place, it is undefined which of them applies. " +
		"Attach it in the same way first, and change it once the other has released it."

	parkedTwice = "Failed messages of queue %q go to %q already, by %s, and each would be in both queues. Write:\n\n" +
		"  failed_queue = { name = %q, declare = false }\n\n" +
		"Change it once the other has released the queue."
)

// Details of conflicts with what a work queue is.
const (
	streamQueue = "Queue %q is a stream, whose consumers cannot reject messages. " +
		"Leave it out."

	exclusiveQueue = "Queue %q is exclusive: it belongs to one connection, and nobody else can bind it. " +
		"Leave it out."

	autoDeleteQueue = "Queue %q is deleted with its last consumer, and retried messages with it. " +
		"Declare it without auto-delete, or leave it out."

	expiringQueue = "Queue %q has x-expires: RabbitMQ deletes it with its messages when nobody has used it for that long. " +
		"Declare it without x-expires, or leave it out."

	expiringByPolicy = "The %s %q sets expires for queue %q: RabbitMQ deletes the queue with its messages " +
		"when nobody has used it for that long. " +
		"Remove expires from that policy, or write a pattern there that does not match the queue."

	differentType = "Queue %q is a %s queue, but its type is configured as %q. " +
		"A policy for another type does not apply, and rejected messages would be dropped. " +
		"Write:\n\n" +
		"  %s"

	boundToOwnDeadLetters = "Queue %q is bound to %q: what it rejects would come back at once, thousands of times a second. " +
		"Remove that binding."

	ownDeadLetterArgument = "Queue %q was declared with %s = %q. " +
		"Arguments take precedence over policies, so the pipeline would not get the queue's rejected messages as it should. " +
		"Declare the queue without it (which needs a new queue), or with %q, or leave it out."

	ownRoutingKeyArgument = "Queue %q has x-dead-letter-routing-key = %q, which replaces the routing key that its consumers know. " +
		"Declare the queue without it."

	mixedInByPolicy = "Policy %q applies to queue %q, " +
		"and its dead-letter-routing-key or overflow would count besides the queue's arguments. " +
		"Change its pattern so that the queue does not match, or attach the queue by policy."

	notDeclaredForPipeline = "Queue %q was declared with other arguments than the pipeline needs:\n%s\n\n" +
		"Declare it with\n%s\n\n" +
		"which needs a new queue, since arguments cannot change%s"

	attachByPolicy = "; or attach it by policy:\n\n  %s"

	noPolicyEither = ". A policy is no way out: the queue's own arguments take precedence over it."
)

// Details of conflicts with a work queue's length limit, and with what clients write.
const (
	fullClassicQueueLoses = "Queue %q has a length limit and overflow = reject-publish: " +
		"messages that come back while it is full are lost, or wait and delay those of other queues. " +
		"Have displaced messages dead-lettered instead:\n\n" +
		"  %s\n\n" +
		"An x-overflow argument of a classic queue takes precedence over the policy; then declare the queue without it, or leave it out."

	fullQueueStopsItself = "Queue %q has a length limit and overflow = reject-publish. " +
		"While it is full, messages that waited cannot come back; " +
		"after there is room again, it takes up to 6 minutes until they do."

	fullQueueStopsAll = "Queue %q has a length limit and overflow = reject-publish. " +
		"While it is full, messages that waited cannot come back to any of the pipeline's work queues. " +
		"Give the queue a pipeline of its own, " +
		"or let it drop its oldest messages, which then arrive in the failed queue as \"maxlen\":\n\n" +
		"  %s"

	limitDropsOldest = "Queue %q has a length limit and drops its oldest messages. " +
		"At-least-once dead-lettering needs overflow = reject-publish, " +
		"which would refuse its publishers' newest messages instead. " +
		"Dead-letter at most once; displaced messages then arrive in the failed queue as \"maxlen\":\n\n" +
		"  %s"

	copiedDeathHeader = "Queue %q has %s. " +
		"Before RabbitMQ 3.13, a message with an x-death header that a client copied from the pipeline's inbox, " +
		"such as one that was shovelled out of the failed queue, stays in the queue as a pending dead letter when it dies, " +
		"and so does every dead letter after it. " +
		"Never shovel failed messages back, or dead-letter at most once, where only such messages are lost:\n\n" +
		"  %s"
)

// Details of conflicts with policies.
const (
	operatorPolicyOnOwnQueue = "Operator policy %q sets %q and matches %q, " +
		"which would lose or misdirect the messages that the queue holds; no policy keeps it away. " +
		"Change its pattern so that the %[4]s's queues do not match, or choose another name for the %[4]s."

	unreadableOnOwnQueues = "Whether %s with the pattern %q matches the %s's own queues is not known here. " +
		"If it does, it would lose or misdirect the messages that they hold: it sets %q. " +
		"Write the pattern more simply."

	overridesOnOwnQueues = "Policy %q with priority %d sets %q and matches the %s's own queues, " +
		"which would lose or misdirect the messages that they hold. " +
		"Lower its priority below %d, or write\n\n" +
		"  policy_priority = %d"

	unreadableOnWorkQueue = "Whether policy %q with the pattern %q matches queue %q is not known here. " +
		"If it does, only one of the two policies applies to the queue: the one of higher priority."

	overridesOnWorkQueue = "Policy %q with priority %d applies to queue %q, and only one policy does. " +
		"The pipeline's policy would not apply, or it would be undefined which one does, and rejected messages would be lost. " +
		"Lower the priority of %q below %d, or write\n\n" +
		"  policy_priority = %d"

	interruptedCreation = "These objects exist already, exactly as the %s makes them, and nothing is bound to them:\n%s\n\n" +
		"A creation that was interrupted leaves them. Apply takes them over, and creates the rest."

	coveredQueue = "Queue %[1]q has a name like those of the %[4]s's %[2]s, and is none of them. " +
		"%[3]s; with the %[4]s's policy, it would lose what another policy gives it, and reject publishers when it is full. " +
		"Rename the queue, or choose another name for the %[4]s."

	shadowedValuesDiffer = "Policy %q, which the pipeline's policy replaces on queue %q, has other values:\n%s"

	shadowedKeys = "Policy %q applies to queue %q and sets\n%s\n\n" +
		"Only one policy applies to a queue, so with the pipeline's policy these keys would no longer apply. " +
		"Copy them into policy_definition_json, or set them to null to drop them:\n\n" +
		"  %s%s"

	alternateExchangeByPolicy = "Policy %q applies to exchange %q and sets alternate-exchange: " +
		"what cannot be routed would go to %q, where nothing brings it back, and the worker would take it for delivered. " +
		"Change its pattern so that the %[4]s's exchanges do not match, or choose another name for the %[4]s."
)

// Details of conflicts with bindings and with a cluster.
const (
	duplicatedByBinding = "There is a binding %q. " +
		"It is left alone, but it duplicates what it routes: " +
		"a message that waits is also delivered before its time, or to somebody else. " +
		"Remove that binding."

	damagedDefinition = "The definition on the broker is not the one that was applied: %s. " +
		"Apply restores it from the configuration, and deletes nothing else. " +
		"If a newer release of the provider has written it, use that one instead."
	// GarbledNote stands in the way of a destroy, too.
	GarbledNote = "There is a binding %q. " +
		"Its argument %s notes a binding of others that an apply has deleted for a while, and cannot be read: somebody changed it. " +
		"If a binding of others to or from the %s's exchanges is missing, restore it by hand. Then delete this one."
	slowestTarget = "There is a binding %q. " +
		"It is left alone, but dead letters wait for the slowest of their targets: " +
		"if %q is full and rejects what is published, or has no majority, all retries stop. " +
		"Give it overflow = drop-head, or no limit."

	slowestBesideFailed = "There is a binding %q. " +
		"It is left alone. " +
		"While %[2]q is full and rejects what is published, the other queues may get failed messages twice, " +
		"and %[2]q gets them up to six minutes after it has room again. " +
		"While it has no majority, retries stop for a minute at a time. " +
		"Give it overflow = drop-head, or no limit."

	classicInCluster = "The cluster has %d nodes. " +
		"A classic queue lives on one of them: " +
		"in tests with nodes killed, 395 of 1,992 rejected messages were lost, and none with quorum queues. " +
		"Write queue_type = \"quorum\"."

	atMostOnceInCluster = "The cluster has %d nodes, and these queues dead-letter at most once:\n%s\n\n" +
		"Messages that they reject while a leader changes are lost: " +
		"88 of 2,299 messages in a test with four leaders killed, and none with at-least-once. " +
		"Remove their length limits, or give each of them a pipeline of its own and overflow = reject-publish."
)

// Details about where the failed messages of a work queue go.
const (
	failedQueueIsWorkQueue = "%q would get its own failed messages, which would fail again and again. " +
		"Name another queue."

	failedQueueOfOneIsWorkQueue = "%q is a work queue of this pipeline: the failed messages of %q would be retried there, and fail again. " +
		"Name another queue."

	failedQueueIsWorkQueueOf = "%q is a work queue of the pipeline %q: failed messages would be retried there, and fail again. " +
		"Name another queue."

	failedQueueIsOwn = "%q is one of the pipeline's own queues. " +
		"Name another queue; without failed_queue, failed messages go to the pipeline's failed queue."

	failedQueueIsOwnOf = "%q is one of the own queues of the pipeline %q. " +
		"Name another queue."

	failedQueueDeclaredAndNot = "Another work queue of this pipeline declares %q, " +
		"and with declare = false %q says that it is somebody else's. " +
		"Write the same for both."

	failedQueueIsRetried = "Queue %q dead-letters to %q: what is rejected there would be retried, and come back when it fails. " +
		"Take its dead-letter exchange away, or name another queue."

	failedQueueKeepsNothing = "Queue %q is a stream, exclusive, auto-delete or not durable: " +
		"failed messages would not stay in it, or could not be replayed from it. " +
		"Name a durable quorum or classic queue."

	workQueueIsFailedQueue = "Queue %q gets failed messages of the pipeline %q, which would be retried here, and fail again. " +
		"Name another queue as failed_queue there, or leave this one out."
)

// Details of what is wrong with a delayed exchange, or in its way.
const (
	ownQueueOfDelayed = "Queue %q is one of the own queues of the delayed exchange %q. " +
		"Leave it out: a work queue is one that is bound to the exchange %q."

	getsEverything = "There is a binding %q. " +
		"It gets every message as soon as it is published, instead of when it is due. " +
		"Bind to the exchange %q instead, with the same key, and remove this one."

	leadsPastWorker = "There is a binding %q. " +
		"What it brings to a level has no header that says how long it waits, and would be held there for good, with all that follows. " +
		"Remove it, and lead what is to be delayed to the exchange %q."

	slowestUnrouted = "There is a binding %q. " +
		"It is left alone, but what cannot be delivered waits for the slowest of its targets: " +
		"if %q is full and rejects what is published, or has no majority, all delayed messages stop. " +
		"Give it overflow = drop-head, or no limit."

	typeWithBindings = "A change of type re-creates the exchange %q, and these bindings of others would mean something else there:\n%s\n\n" +
		"Remove them first, and bind again with what the new type routes by; until then, what is due goes to the unrouted queue. " +
		"Or add a second delayed exchange of that type, and move publishers and bindings to it."
)
