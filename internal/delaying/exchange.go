package delaying

import (
	"errors"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
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
	return workerconfig.ID{Kind: workerconfig.DelayedExchange, Name: string(e.Names), Vhost: e.vhost}
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
