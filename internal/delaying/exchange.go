// Package delaying decides how long a message in a delayed exchange's inbox waits, and builds the message to publish.
//
// It is pure: a delivery goes in, a verdict and the message to publish come out. A publisher can write any headers. No
// header must get a message delivered early, or stop it on its way.
package delaying

import (
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/rules"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/workerconfig"
)

// Exchange holds all that decisions about a delayed exchange's messages need.
type Exchange struct {
	Names delayed.Names

	vhost         string
	longest, unit time.Duration
	queues        []pipeline.Queue
}

// NewExchange compiles one element of the worker's configuration, which must be valid.
func NewExchange(w delayed.Worker) *Exchange {
	e := &Exchange{Names: delayed.Names(w.Name), vhost: w.Vhost, queues: w.Queues()}
	e.longest, _ = pipeline.ParseDelay(w.MaxDelay) // both are valid
	e.unit, _ = pipeline.ParseDelay(w.Precision)
	return e
}

// ID identifies the delayed exchange within a configuration.
func (e *Exchange) ID() workerconfig.ID {
	return workerconfig.ID{Kind: rules.DelayedExchange, Name: string(e.Names), Vhost: e.vhost}
}

// Inbox is the queue with the delayed exchange's new messages.
func (e *Exchange) Inbox() string { return e.Names.Inbox() }

// Queues are the queues where messages wait or end.
func (e *Exchange) Queues() []pipeline.Queue { return e.queues }

// Exchanges lists the exchanges that messages are published to, with the levels from the lowest up. It leaves out the
// refused queue's exchange, since the topology of an earlier release lacks it.
func (e *Exchange) Exchanges() []string {
	exchanges := []string{e.Names.DeliverExchange(), e.Names.UnroutedExchange()}
	for bit := range delayed.LevelCount(e.longest, e.unit) {
		exchanges = append(exchanges, e.Names.Level(delayed.Level{Unit: e.unit, Bit: bit}))
	}
	return exchanges
}

// Last is the exchange, and its queue, where the broker puts a message that the worker cannot publish.
func (e *Exchange) Last() (exchange, queue string) {
	return e.Names.UnroutedExchange(), e.Names.UnroutedQueue()
}

// PublishIDHeader is [HeaderPublishID].
func (e *Exchange) PublishIDHeader() string { return HeaderPublishID }

// HeaderDelay is how many milliseconds a message waits. After the wait, the number is negative.
const HeaderDelay = "x-delay"

// Reasons of messages in an unrouted queue that pipelines do not have.
const (
	// ReasonTooLong: the message asks for a longer delay than the exchange has levels for.
	ReasonTooLong = "delay_too_long"
	// ReasonUnroutable: no queue was bound for the routing key of a due message.
	ReasonUnroutable = "unroutable"
)

// RefuseReasons lists the dead-letter-reasons of messages that the worker does not deliver.
func RefuseReasons() []string {
	return []string{ReasonTooLong, ReasonUnroutable, deadletter.ReasonMalformed, deadletter.ReasonWorkerError}
}

// Action says what happens to a message.
type Action int

const (
	// Delay publishes the message to wait in the levels.
	Delay Action = iota
	// Deliver publishes the message at once, to where its publisher routed it.
	Deliver
	// Refuse puts the message into the unrouted queue.
	Refuse
)

// Verdict says what happens to a message now.
type Verdict struct {
	Action Action
	// Delay is how long a delayed message waits.
	Delay time.Duration
	// SetAside says that a queue did not take the message, and that another can have it already. A message for
	// immediate delivery then goes to the refused queue. A refused message goes to the unrouted queue alone.
	SetAside bool
	// Reason is the dead-letter-reason of a refused message. Error is its dead-letter-error, or "" if there is no error
	// to report.
	Reason, Error string

	key string
	// way is a delayed message's way through the levels.
	way delayed.Way
}

// Decide returns what happens to a message.
func (e *Exchange) Decide(d *amqp.Delivery) Verdict {
	ms, ok := deadletter.Milliseconds(d.Headers[HeaderDelay])
	switch {
	case !ok || ms <= 0:
		return Verdict{Action: Deliver, key: d.RoutingKey}
	case ms > e.longest.Milliseconds():
		return refuse(d, ReasonTooLong)
	}
	delay := time.Duration(ms) * time.Millisecond
	return Verdict{Action: Delay, Delay: delay, key: d.RoutingKey, way: delayed.WayOf(delay, e.unit)}
}

// Unjudged returns the verdict on a delivery whose judgement ended in an internal error (panic).
func Unjudged(d *amqp.Delivery) Verdict { return refuse(d, deadletter.ReasonWorkerError) }

// Unbuilt returns what to try after an internal error (panic) while the message was built. False means that no other
// way is left.
func (v Verdict) Unbuilt() (Verdict, bool) {
	if v.Action == Refuse && v.Reason == deadletter.ReasonWorkerError {
		return v, false
	}
	return Verdict{Action: Refuse, Reason: deadletter.ReasonWorkerError, key: v.key}, true
}

// Unroutable returns what to try for a message for immediate delivery that found no queue. The deliver exchange has an
// alternate exchange for messages that it cannot route itself. So the queue is missing from an exchange behind it.
// False means that no other way is left.
func (v Verdict) Unroutable() (Verdict, bool) {
	if v.Action != Deliver {
		return v, false
	}
	return Verdict{Action: Refuse, Reason: ReasonUnroutable, key: v.key}, true
}

// Undeliverable returns the verdict on a message that the broker cannot deliver over AMQP 0-9-1. The delivery has as
// much of the message as AMQP 0-9-1 can carry.
func Undeliverable(d *amqp.Delivery, why string) Verdict {
	v := refuse(d, deadletter.ReasonMalformed)
	v.Error = why
	return v
}

func refuse(d *amqp.Delivery, reason string) Verdict {
	return Verdict{Action: Refuse, Reason: reason, key: d.RoutingKey}
}

// Route returns where to publish a message with the verdict.
func (e *Exchange) Route(v Verdict) deadletter.Route {
	r := deadletter.Route{Key: v.key}
	switch {
	case v.SetAside && v.Action == Refuse:
		r.Exchange = e.Names.OnlyUnrouted()
	case v.SetAside:
		r.Exchange = e.Names.Refused()
	case v.Action == Delay:
		r.Exchange = e.Names.Level(v.way.Entry)
	case v.Action == Deliver:
		r.Exchange, r.Target = e.Names.DeliverExchange(), v.key
	default:
		r.Exchange = e.Names.UnroutedExchange()
	}
	return r
}
