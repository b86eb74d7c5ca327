package session

import "github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"

// What the log says of messages that are kept unacknowledged until they can be published.
const (
	deferredUnbound = "publish deferred, message kept unacknowledged: " +
		"the exchange has no queue; run terraform apply"
	deferredMissingLast = "publish deferred, messages kept unacknowledged: " +
		"the failed or unrouted exchange, or its queue, is missing; run terraform apply"
	deferredMissing = "publish deferred, messages kept unacknowledged: " +
		"the exchange is missing; run terraform apply"
	deferredForbidden = "publish deferred, messages kept unacknowledged: " +
		"this user may not write to the exchange; grant it the permission"
	deferredRefused = "publish deferred, message kept unacknowledged: " +
		"the broker refused it"
	deferredFull = "publish deferred, messages kept unacknowledged: " +
		"the broker refuses them; is the queue full, or without a majority of its members?"
	deferredNoDelay = "publish deferred, messages kept unacknowledged: " +
		"no delay of the configuration is bound to the retry exchange; run terraform apply, or give the worker the configuration that was applied"
	parkedNoDelay = "messages are parked, or sent back at once if the schedule has a delay of 0s: " +
		"still no delay of the configuration is bound to the retry exchange; run terraform apply"
	setAside = "messages go to the refused queue, from where the broker delivers them: a queue behind the exchange refuses them, " +
		"or does not answer; is it full, or without a majority of its members?"
	detourMissing = "failed messages go to the pipeline's failed queue: " +
		"the exchange that leads to those of the work queues is missing; run terraform apply"
	detourForbidden = "failed messages go to the pipeline's failed queue: " +
		"this user may not write to the exchange that leads to those of the work queues; grant it the permission"
	// unreadableAfter leads to a consumer with a mistake.
	unreadableAfter = "the retry-after-ms of a message is not a number of milliseconds, and is ignored: the message waits as the schedule says"
	// parkedForbidden is the one that need not wait.
	parkedForbidden = "messages whose work queue has lost its binding are parked: " +
		"this user may not write to amq.default; grant it the permission"
)

// detourText is by why failed messages take a detour.
var detourText = map[deadletter.Detour]string{
	deadletter.DetourMissing: detourMissing, deadletter.DetourForbidden: detourForbidden,
}
