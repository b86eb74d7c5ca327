package audit

// rule finds one kind of fault. The reference page has its fault and its remedy.
type rule struct {
	id       string
	severity Severity
	find     func(g graph, report func(Finding))
	fault    string
	remedy   string
}

const (
	applyPipeline = "Run `terraform apply` for the pipeline."
	applyDelayed  = "Run `terraform apply` for the delayed exchange."
)

// rules has every rule, in the order of the reference page. Users write the ids, so they are never changed or reused.
var rules = []rule{
	{
		"dead-letter-exchange-missing", Error, missingExchanges,
		"The dead-letter exchange of a queue does not exist. Dead letters are dropped. If the queue dead-letters at least once, " +
			"they stay pending, and no count of ready messages includes them.",
		"Create the exchange and bind a queue to it, or name an exchange that exists.",
	},
	{
		"dead-letter-exchange-unset", Warning, unsetExchanges,
		"A dead-letter routing key or strategy is set without a dead-letter exchange. The queue drops its dead letters.",
		"Set `dead-letter-exchange`. The value `\"\"` is the default exchange, where a queue's name is the routing key.",
	},
	{
		"dead-letter-unroutable", Error, unroutableExchanges,
		"The dead-letter exchange routes no message of this queue. No binding matches, and no alternate exchange takes the rest.",
		"Bind a queue, with the dead-letter routing key if the exchange uses keys. Or set an alternate exchange.",
	},
	{
		"dead-letter-key-unbound", Warning, unboundKeys,
		"Without a dead-letter routing key, a message keeps its own key. " +
			"The queue's bindings let keys in that have no binding at the dead-letter exchange. " +
			"If messages wait in the queue (`message-ttl`), the rule needs a set of keys without any binding. " +
			"It is a warning, because publishers can use other keys. " +
			"Keys in the header `CC` can match, and the default exchange takes any queue's name.",
		"Bind the key, make the exchange a fanout, or set a dead-letter routing key.",
	},
	{
		"dead-letter-route-temporary", Warning, temporaryRoutes,
		"The dead letters of a lasting queue need an exchange or a queue that does not last. " +
			"It goes with the broker's restart (not durable), its last binding or consumer (auto-delete), or its connection (exclusive). " +
			"If all nodes stop, RabbitMQ 3.10 and 4.0 lose exchanges that are not durable, and 4.3 keeps them. " +
			"Queues that are not durable go with their node.",
		"Declare the exchange or queue as durable, and neither auto-delete nor exclusive. Or bind a durable queue as well.",
	},
	{
		"dead-letter-headers-ignored", Warning, ignoredHeaders,
		"A binding of a headers exchange looks only at headers that begin with `x-`, such as `x-first-death-reason`. " +
			"With `x-match` = `all`, or without it, the broker ignores them, and every message matches. With `any`, no message matches.",
		"Set `x-match` to `all-with-x` or `any-with-x`, which RabbitMQ knows from 3.10 on.",
	},
	{
		"dead-letter-cycle", Error, cycles,
		"Messages that expire or exceed a length limit come back to the same queue without a rejection. " +
			"On the second visit, the broker drops them. A queue that dead-letters at least once keeps them pending. " +
			"It is a warning if that depends on keys or on full queues, or if other queues get a copy.",
		"Remove the TTL or the length limit from the work queue, or route these messages elsewhere.",
	},
	{
		"dead-letter-loop", Error, loops,
		"The dead-letter exchange of a queue leads straight back to the queue. A message that always fails keeps the consumers busy. " +
			"It is a warning if that depends on keys.",
		"Remove the binding.",
	},
	{
		"dead-letter-fan-out", Warning, fanOuts,
		"Messages wait in one queue, which returns each of them to several queues that retry. " +
			"Each retry of one queue is a new message for the others.",
		"Give each work queue a waiting queue of its own. Set its `dead-letter-exchange` to `\"\"` and its routing key to the work queue.",
	},
	{
		"delivery-limit-cycle", Warning, deliveryLimitCycles,
		"A message that exceeds the delivery limit enters a cycle, as in `dead-letter-cycle`. A message that crashes its consumers does so.",
		"Reject messages before they reach the limit, or route by reason.",
	},
	{
		"delivery-limit-drops", Warning, droppedAtLimit,
		"A quorum queue has a delivery limit and no dead-letter exchange. A message that is returned more often is dropped.",
		"Set a dead-letter exchange.",
	},
	{
		"delivery-limit-default", Warning, droppedAtDefaultLimit,
		"From RabbitMQ 4.0 on, quorum queues have a delivery limit of 20 by default. Without a dead-letter exchange, they drop messages " +
			"that are returned more often. The vhost has one finding for all its queues.",
		"Set a dead-letter exchange, for instance by one policy for all quorum queues.",
	},
	{
		"delivery-limit-negative", Warning, negativeLimits,
		"Only from RabbitMQ 4.0 on, a negative limit means no limit. Before, the first return exceeds it.",
		"Remove the limit, or set a large one if the broker will be upgraded.",
	},
	{
		"parking-queue-expires", Warning, emptiedAfter("expires", parkingExpires, parkingExpiresRemedy),
		"The argument or policy `expires` deletes an unused queue, with all its messages. Parking queues are rarely used.",
		"Remove `expires` from the queue.",
	},
	{
		"parking-queue-ttl", Warning, emptiedAfter("message-ttl", parkingTTL, parkingTTLRemedy),
		"Messages in a parking queue are deleted at a certain age.",
		"Remove the TTL, set a dead-letter exchange, or ignore the rule if the deletion is intended.",
	},
	{
		"parking-queue-length", Warning, limitedParking,
		"A full parking queue drops its oldest messages.",
		"Remove the limit and watch the length.",
	},
	{
		"parking-queue-delivery-limit", Warning, parkingWithDeliveryLimit,
		"Each look with a management tool returns a message, and a quorum queue drops a message that is returned too often. " +
			"From RabbitMQ 4.0 on, the default limit is 20.",
		"Set a limit of 1000000 or more, which counts as none here. Or use a classic queue.",
	},
	{
		"retry-queue-expires", Warning, expiringRetryQueues,
		"Messages wait in a queue that has `expires`. Publishing does not count as use, so the broker deletes the queue with the messages.",
		"Remove `expires` from the queue.",
	},
	{
		"full-target-freezes", Warning, freezingTargets,
		"A queue with `overflow = reject-publish` gets dead letters from a queue that dead-letters at least once. " +
			"While it is full, 32 unconfirmed dead letters stop all others. After there is room, they go on within three to six minutes.",
		"Remove the limit from queues that get dead letters, or use `drop-head`.",
	},
	{
		"full-target-loses", Warning, losingTargets,
		"A classic queue with `overflow = reject-publish` loses dead letters while it is full, if they are dead-lettered at most once.",
		"Remove the limit, or use `reject-publish-dlx` and a dead-letter exchange.",
	},
	{
		"stream-target-freezes", Warning, streamTargets,
		"RabbitMQ cannot write a message with a decimal header to a stream (`BigDecimal` in Java, `Decimal` in Python). " +
			"A queue that dead-letters at least once tries about a hundred times. " +
			"Then at-least-once dead-lettering ends on the whole node, on every release from 3.10 to 4.3.",
		"Use a quorum queue instead of the stream, or write decimals as text. If it has happened, remove the binding and restart the node.",
	},
	{
		"stream-target-loses", Error, emptyStreams,
		"On RabbitMQ 3.10, a stream drops dead letters from queues that dead-letter at most once.",
		"Use a quorum queue instead of the stream, dead-letter at least once, or upgrade RabbitMQ.",
	},
	{
		"at-least-once-ineffective", Warning, ineffectiveAtLeastOnce,
		"At-least-once dead-lettering needs `overflow = reject-publish`. Without it, the broker dead-letters at most once.",
		"Set `overflow`. For quorum queues, the `overflow` of a policy takes precedence over the argument.",
	},
	{
		"policy-shadows-dead-letter", Warning, shadowingPolicies,
		"Only the policy of the highest priority applies to a queue. It has no dead-letter exchange, and one of lower priority has.",
		"Copy the keys into the policy that applies, or change the priorities.",
	},
	{
		"policy-tie", Warning, tiedPolicies,
		"Two policies of the same priority match a queue and dead-letter differently. RabbitMQ does not define which one applies.",
		"Set different priorities.",
	},
	{
		"policy-not-applicable", Error, inapplicablePolicies,
		"A policy with a key that a queue type does not support is ignored as a whole for queues of this type. " +
			"Examples are `dead-letter-strategy` for classic queues and `ha-mode` for quorum queues. " +
			"Classic queues do not support `max-in-memory-length` from RabbitMQ 3.12.7 on, and `queue-leader-locator` before 4.0. " +
			"A policy that applies to exchanges only is ignored for all queues.",
		"Write a second policy for that type, without the key. Or let the policy apply to queues.",
	},
	{
		"policy-pattern-unreadable", Warning, unreadablePolicies,
		"The audit cannot evaluate some rare parts of PCRE patterns, and treats such a policy as if it did not match. " +
			"Outside of ASCII, `\\w`, `\\b`, `(?i)` and POSIX classes depend on the broker's release of Erlang.",
		"Write a simpler pattern.",
	},
	{
		"ignored-argument", Error, ignoredArguments,
		"The broker stores unknown arguments and ignores them. Examples are `dead-letter-exchange` without `x-`, and `x-dead-leter-exchange`. " +
			"Only a dead-letter exchange is an error, other arguments are a warning.",
		"Re-create the queue with the right argument, or use a policy.",
	},
	{
		"native-retry-ignored", Warning, ignoredDelayedRetries,
		"Only quorum queues of RabbitMQ 4.3 and later delay returned messages by `x-delayed-retry-type`. " +
			"Elsewhere, with an unknown type, or without `x-delayed-retry-min`, messages come back at once.",
		"Upgrade to RabbitMQ 4.3, or use a retry pipeline.",
	},
	{
		"pipeline-inbox-unbound", Error, unboundInboxes,
		"The inbox is not bound to the pipeline's dead-letter exchange. " +
			"Rejected messages go to the failed queue without a retry, through the alternate exchange.",
		applyPipeline,
	},
	{
		"inbox-unserved", Warning, unservedInboxes,
		"The inbox of a pipeline or a delayed exchange has messages and no consumer, so no sidecar serves it. The messages wait. " +
			"Only the data source and `rabbitmq-retry audit` find this, from statistics that lag by some seconds. Plans do not look.",
		"Give the sidecar its current worker configuration: see [RabbitMQRetryInboxUnserved](troubleshooting.md#rabbitmqretryinboxunserved).",
	},
	{
		"work-queue-failed-unbound", Error, unboundFailedQueues,
		"The failed queue is not bound. The sidecar keeps messages that it must park unacknowledged. " +
			"Messages that the broker moves there are dropped, or stay pending dead letters.",
		applyPipeline,
	},
	{
		"pipeline-failed-queue-unbound", Warning, unboundFailedQueuesOfWorkQueues,
		"The `failed_queue` of a work queue has lost its binding. Failed messages go to the pipeline's failed queue instead.",
		"Run `terraform apply` for the pipeline or the attachment.",
	},
	{
		"pipeline-delay-unbound", Warning, unboundDelays,
		"A retry queue is not bound. The sidecar uses the next longer delay, then the next shorter one, and parks the message if none is left. " +
			"With the engine `consumer`, rejected messages are parked without a retry.",
		applyPipeline,
	},
	{
		"pipeline-return-unbound", Warning, unboundReturns,
		"A queue dead-letters to the pipeline without a binding that returns its messages. If the sidecar has the permission, it publishes " +
			"to the queue by name. Without a sidecar, the messages are parked.",
		"Make the queue a work queue of the pipeline.",
	},
	{
		"pipeline-return-nowhere", Error, lostReturns,
		"As `pipeline-return-unbound`, and the return exchange has no alternate exchange. Messages are lost after their delay.",
		applyPipeline,
	},
	{
		"pipeline-retry-ineffective", Warning, ineffectiveRetries,
		"An argument, an operator policy or a changed policy overrides a setting that the engine `native` or `consumer` needs. " +
			"Messages wait another time, come back at once, or are parked early.",
		applyPipeline + " Or remove the argument or the operator policy.",
	},
	{
		"pipeline-definition-unreadable", Warning, unreadableDefinitions,
		"The pipeline's definition on the broker is missing, damaged or duplicated. " +
			"It is the argument `retry-definition` of a binding. Retries go on, and an import fails.",
		applyPipeline + " If no state has the pipeline, see [If a definition is damaged](changing.md).",
	},
	{
		"delayed-exchange-bypassed", Error, onEach(bypassedDelays),
		"The exchange for publishers leads to something besides the inbox. A queue that is bound there gets every message at once.",
		"Remove the binding, and bind the queue to `events.deliver`.",
	},
	{
		"delayed-inbox-unbound", Error, onEach(unboundDelayedInboxes),
		"The inbox is not bound. The alternate exchange leads messages to the unrouted queue, none early.",
		applyDelayed + " Then run `rabbitmq-retry failed replay --queue events.delay.unrouted --all`.",
	},
	{
		"delayed-unrouted-unbound", Error, onEach(unboundUnrouted),
		"The unrouted queue is missing or not bound, or `events.deliver` has no such alternate exchange. " +
			"A due message without a queue stays pending in its level, and 32 of them stop all others.",
		applyDelayed,
	},
	{
		"delayed-level-unbound", Error, onEach(unboundLevels),
		"A level lacks its exchange, its queue or a binding. Messages stay pending in the level above, " +
			"or unacknowledged at the sidecar, and none is early.",
		applyDelayed,
	},
	{
		"delayed-level-entered", Error, onEach(enteredLevels),
		"A foreign binding or dead-letter exchange leads to a level. A message that was never delayed is dropped there, or stops the level. " +
			"Before RabbitMQ 3.13, so does a message that was rejected after its delay.",
		"Publish to `events`. To retry rejected messages, use a retry pipeline.",
	},
	{
		"delayed-queue-altered", Error, alteredDelayedQueues,
		"The inbox, the unrouted queue or a level has another type, or other settings in force. " +
			"A `message-ttl` delivers early, `expires` deletes messages, and a length limit stops messages.",
		"Change the pattern of the policy or operator policy. If a queue was re-created, run `terraform apply` when it is empty.",
	},
	{
		"delayed-target-freezes", Warning, freezingDeliveries,
		"A queue behind `events.deliver` has a length limit and `overflow = reject-publish` or `reject-publish-dlx`. " +
			"While it is full, 32 of its messages stop a level for all queues.",
		"Remove the limit or use `drop-head`. After there is room, the levels go on within six minutes: " +
			"see [What stops a level](delayed-delivery.md#what-stops-a-level).",
	},
	{
		"delayed-delivery-dead-end", Warning, onEach(deadEnds),
		"An exchange that is bound to `events.deliver` can have no queue for a message, and has no alternate exchange. " +
			"A delayed message stays pending in its level, and 32 of them stop all others.",
		"Give the exchange an alternate exchange, such as `events.delay.unrouted`, or bind a queue for every routing key.",
	},
	{
		"delayed-delivery-loop", Error, deliveryLoops,
		"A binding leads from `events.deliver` back to `events`. Due messages are delivered again and again.",
		"Remove the binding.",
	},
	{
		"delayed-delivery-answered", Warning, onEach(answeredDeliveries),
		"A user can consume a queue behind `events.deliver`, and publish to `events.deliver`. " +
			"A program that delays its message again by publishing to the exchange of the delivery gets it back at once. " +
			"Only `rabbitmq-retry audit` finds this, if its user is an administrator. Administrators are left out.",
		"Take write on `events.deliver` from the user. Publish to `events`.",
	},
	{
		"delayed-definition-unreadable", Warning, onEach(unreadableDelayDefinitions),
		"The delayed exchange's definition on the broker is missing, damaged or duplicated. " +
			"It is the argument `delay-definition` of a binding. Delays go on, and an import fails.",
		applyDelayed,
	},
}

// Rules lists the ids of all rules.
func Rules() []string {
	ids := make([]string, len(rules))
	for i, r := range rules {
		ids[i] = r.id
	}
	return ids
}
