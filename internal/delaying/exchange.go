// Package delaying decides how long a message waits that the inbox of a delayed exchange holds, and builds what is published
// for it.
//
// It is pure: a delivery goes in, a verdict and the message to publish come out. Headers are a publisher's, who can write
// anything there. None of them may get a message delivered early, or stop one on its way.
package delaying

import (
	"errors"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/rules"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/workerconfig"
)

// Exchange is what has to be known of a delayed exchange to decide about its messages.
type Exchange struct {
	Names delayed.Names

	vhost         string
	longest, unit time.Duration
	queues        []pipeline.Queue
}

// NewExchange compiles one element of the worker's configuration. The error is that of one which is not valid, and begins
// with the path of what is wrong.
func NewExchange(w delayed.Worker) (*Exchange, error) {
	if problems := workerconfig.ValidateDelayedExchange(w); len(problems) > 0 {
		return nil, errors.New(problems[0].String())
	}
	e := &Exchange{Names: delayed.Names(w.Name), vhost: w.Vhost, queues: w.Queues()}
	e.longest, _ = pipeline.ParseDelay(w.MaxDelay) // is valid
	e.unit, _ = pipeline.ParseDelay(w.Precision)
	return e, nil
}

// ID tells it from others.
func (e *Exchange) ID() workerconfig.ID {
	return workerconfig.ID{Kind: rules.DelayedExchange, Name: string(e.Names), Vhost: e.vhost}
}

// Inbox is the queue with the messages.
func (e *Exchange) Inbox() string { return e.Names.Inbox() }

// Queues are those in which its messages wait or end.
func (e *Exchange) Queues() []pipeline.Queue { return e.queues }

// Exchanges are all that messages are published to, the levels' from the lowest up, but for that of the refused queue: a topology of
// an earlier release has none.
func (e *Exchange) Exchanges() []string {
	exchanges := []string{e.Names.DeliverExchange(), e.Names.UnroutedExchange()}
	for bit := range delayed.LevelCount(e.longest, e.unit) {
		exchanges = append(exchanges, e.Names.Level(delayed.Level{Unit: e.unit, Bit: bit}))
	}
	return exchanges
}

// Last is where the broker puts what the worker cannot publish.
func (e *Exchange) Last() (exchange, queue string) {
	return e.Names.UnroutedExchange(), e.Names.UnroutedQueue()
}

// PublishIDHeader is [HeaderPublishID].
func (e *Exchange) PublishIDHeader() string { return HeaderPublishID }

// HeaderDelay is how many milliseconds a message waits. Once it has waited, the number is negative.
const HeaderDelay = "x-delay"

// Reasons of messages in an unrouted queue, besides those that pipelines have, too.
const (
	// ReasonTooLong is that a message asks for a longer delay than the exchange has levels for.
	ReasonTooLong = "delay_too_long"
	// ReasonUnroutable is that no queue was bound for the routing key of a message that was due.
	ReasonUnroutable = "unroutable"
)

// RefuseReasons are all that the worker puts into the dead-letter-reason of a message that it does not deliver.
func RefuseReasons() []string {
	return []string{ReasonTooLong, ReasonUnroutable, deadletter.ReasonMalformed, deadletter.ReasonWorkerError}
}

// Action is what happens to a message.
type Action int

const (
	// Delay publishes the message to wait in the levels.
	Delay Action = iota
	// Deliver publishes it to where it is routed at once.
	Deliver
	// Refuse puts it into the unrouted queue.
	Refuse
)

// Verdict is what happens to a message now.
type Verdict struct {
	Action Action
	// Delay is how long a delayed message waits.
	Delay time.Duration
	// SetAside says that a queue did not take the message, and another one may have it already. What is delivered at once goes to
	// the refused queue then, and what is refused to the unrouted queue alone.
	SetAside bool
	// Reason is the dead-letter-reason of a refused message, and Error its dead-letter-error if there is one to tell.
	Reason, Error string

	key string
	// way is that of a delayed message.
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

// Unjudged is what happens to a delivery that an internal error (panic) kept from being judged.
func Unjudged(d *amqp.Delivery) Verdict { return refuse(d, deadletter.ReasonWorkerError) }

// Unbuilt returns what to try after an internal error (panic) kept the message from being built. False means that there is
// nothing else to try.
func (v Verdict) Unbuilt() (Verdict, bool) {
	if v.Action == Refuse && v.Reason == deadletter.ReasonWorkerError {
		return v, false
	}
	return Verdict{Action: Refuse, Reason: deadletter.ReasonWorkerError, key: v.key}, true
}

// Unroutable returns what to do with a message that was to be delivered at once, and for which there is no queue: that of an
// exchange behind the one that delivers, which has an alternate exchange only for what it does not route itself. False means
// that the message has nowhere else to go.
func (v Verdict) Unroutable() (Verdict, bool) {
	if v.Action != Deliver {
		return v, false
	}
	return Verdict{Action: Refuse, Reason: ReasonUnroutable, key: v.key}, true
}

// Undeliverable is what happens to a message that the broker cannot deliver over AMQP 0-9-1. The delivery is made of what can
// be said of it there.
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
		r.Exchange = e.Names.DeliverExchange()
	default:
		r.Exchange = e.Names.UnroutedExchange()
	}
	return r
}
