package failed

import (
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
)

// System is whose headers say why a message failed.
type System string

// Systems whose messages can be read.
const (
	// SystemWorker is the worker of a pipeline.
	SystemWorker System = "rabbitmq-retry"
	// SystemInbox is the broker, which moved the message from a pipeline's inbox to its failed queue.
	SystemInbox System = "inbox"
	// SystemDelayed is a delayed exchange, in whose unrouted queue the message lies.
	SystemDelayed System = "delayed exchange"
	// SystemBroker is the broker, which dead-lettered the message for whatever queue.
	SystemBroker      System = "broker"
	SystemNServiceBus System = "NServiceBus"
	SystemMassTransit System = "MassTransit"
	SystemSpring      System = "Spring"
	SystemCelery      System = "Celery"
	SystemBabelQueue  System = "BabelQueue"
	SystemRascal      System = "Rascal"
	SystemMoleculer   System = "Moleculer"
	SystemWatermill   System = "Watermill"
	// SystemUnknown is nobody: the message does not say that it failed.
	SystemUnknown System = ""
)

// Entry is what can be read of a failed message. What the message does not say is empty or zero.
type Entry struct {
	Message
	// ID is its [Digest], or the id that it had before it was imported.
	ID string
	// Digest tells it from all that differ in anything.
	Digest string
	// Run is that of the import that put it into the queue.
	Run    string
	System System
	// Reason is why it was parked.
	Reason string
	// WorkQueue is the queue whose consumer failed on it: where a replay sends it.
	WorkQueue string
	// FirstExchange and FirstRoutingKey are where it was published to first.
	FirstExchange, FirstRoutingKey string
	// Pipeline is the one that its headers name.
	Pipeline string
	// Error is the consumer's text, Exception its type or stack trace.
	Error, Exception string
	// FirstFailedAt and FailedAt are when it failed first, and when it was parked.
	FirstFailedAt, FailedAt time.Time
	// Attempts and MaxAttempts count deliveries, the first one included.
	Attempts, MaxAttempts int64
	// History has the failures, newest first.
	History []deadletter.Failure
	// MessageID is the property.
	MessageID string
	// DelayMS is for how many milliseconds a delayed exchange should have kept it and did not, counted from FailedAt.
	DelayMS int64
	// Replays is how often it was replayed before.
	Replays int64
	// DeliveryCount is how often the queue counts that it was put back, which it compares with its delivery limit.
	DeliveryCount int64
	// Unreadable is why nothing can be read of the properties, nil if it can.
	Unreadable error
}
