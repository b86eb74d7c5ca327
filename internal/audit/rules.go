package audit

// rule finds one kind of fault. The guide "Audit rules" says under its id what the fault is, and its remedy.
type rule struct {
	id       string
	severity Severity
	find     func(g graph, report func(Finding))
}

// rules has every rule, in the order of the guide. Users write the ids, so they are never changed or reused.
var rules = []rule{
	{"dead-letter-exchange-missing", Error, missingExchanges},
	{"dead-letter-exchange-unset", Warning, unsetExchanges},
	{"dead-letter-unroutable", Error, unroutableExchanges},
	{"dead-letter-key-unbound", Warning, unboundKeys},
	{"dead-letter-route-temporary", Warning, temporaryRoutes},
	{"dead-letter-headers-ignored", Warning, ignoredHeaders},
	{"dead-letter-cycle", Error, cycles},
	{"dead-letter-loop", Error, loops},
	{"dead-letter-fan-out", Warning, fanOuts},
	{"delivery-limit-cycle", Warning, deliveryLimitCycles},
	{"delivery-limit-drops", Warning, droppedAtLimit},
	{"delivery-limit-default", Warning, droppedAtDefaultLimit},
	{"delivery-limit-negative", Warning, negativeLimits},
	{"parking-queue-expires", Warning, emptiedAfter("expires", parkingExpires, parkingExpiresRemedy)},
	{"parking-queue-ttl", Warning, emptiedAfter("message-ttl", parkingTTL, parkingTTLRemedy)},
	{"parking-queue-length", Warning, limitedParking},
	{"parking-queue-delivery-limit", Warning, parkingWithDeliveryLimit},
	{"retry-queue-expires", Warning, expiringRetryQueues},
	{"full-target-freezes", Warning, freezingTargets},
	{"full-target-loses", Warning, losingTargets},
	{"stream-target-freezes", Warning, streamTargets},
	{"stream-target-loses", Error, emptyStreams},
	{"at-least-once-ineffective", Warning, ineffectiveAtLeastOnce},
	{"policy-shadows-dead-letter", Warning, shadowingPolicies},
	{"policy-tie", Warning, tiedPolicies},
	{"policy-not-applicable", Error, inapplicablePolicies},
	{"policy-pattern-unreadable", Warning, unreadablePolicies},
	{"ignored-argument", Error, ignoredArguments},
	{"native-retry-ignored", Warning, ignoredDelayedRetries},
	{"pipeline-inbox-unbound", Error, ofPipelines(unboundInboxes)},
	{"inbox-unserved", Warning, unservedInboxes},
	{"work-queue-failed-unbound", Error, ofPipelines(unboundFailedQueues)},
	{"pipeline-failed-queue-unbound", Warning, unboundFailedQueuesOfWorkQueues},
	{"pipeline-delay-unbound", Warning, ofPipelines(unboundDelays)},
	{"pipeline-return-unbound", Warning, ofPipelines(unboundReturns)},
	{"pipeline-return-nowhere", Error, ofPipelines(lostReturns)},
	{"pipeline-retry-ineffective", Warning, ofPipelines(ineffectiveRetries)},
	{"pipeline-definition-unreadable", Warning, ofPipelines(unreadableDefinitions)},
	{"delayed-exchange-bypassed", Error, ofDelayed(bypassedDelays)},
	{"delayed-inbox-unbound", Error, ofDelayed(unboundDelayedInboxes)},
	{"delayed-unrouted-unbound", Error, ofDelayed(unboundUnrouted)},
	{"delayed-level-unbound", Error, ofDelayed(unboundLevels)},
	{"delayed-level-entered", Error, ofDelayed(enteredLevels)},
	{"delayed-queue-altered", Error, ofDelayed(alteredDelayedQueues)},
	{"delayed-target-freezes", Warning, ofDelayed(freezingDeliveries)},
	{"delayed-delivery-dead-end", Warning, ofDelayed(deadEnds)},
	{"delayed-delivery-loop", Error, ofDelayed(deliveryLoops)},
	{"delayed-delivery-answered", Warning, ofDelayed(answeredDeliveries)},
	{"delayed-definition-unreadable", Warning, ofDelayed(unreadableDelayDefinitions)},
}

// Rules lists the ids of all rules.
func Rules() []string {
	ids := make([]string, len(rules))
	for i, r := range rules {
		ids[i] = r.id
	}
	return ids
}
