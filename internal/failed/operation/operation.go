// Package operation implements the operations on failed messages, for a command or a page. It asks no questions and writes to
// no terminal. It returns values and reports progress. The caller shows them, and asks questions in between.
//
//   - A [Target] is a queue, with the pipeline or the delayed exchange that it belongs to.
//   - [Target.Guard] begins a [Run]. It connects to the broker, and finds out whether the queue can delete messages after too many looks.
//   - [Run.Look] shows the messages that a filter selects, and puts all back. [Find] searches one message.
//   - The caller chooses among the shown messages: [Chosen] has their identities. A run acts only on these, and applies no filter again.
//     A [Sink] keeps them before.
//   - [Run.Remove] takes the chosen messages out of the queue.
//   - [Run.NewReplay] sends the chosen messages back to work with [Replay.Look], [Replay.Survey] and [Replay.Publish], and stops if
//     too many come back. [Replay.Back] later counts the messages that failed again.
//   - [Run.NewImport] puts messages of a file into the queue: [Import.Check], [Import.Compare],
//     [Import.Publish] and [Import.RemoveReplaced].
//   - [Run.Repair] replaces messages that AMQP 0-9-1 cannot carry.
//   - Each operation returns a [transfer.Result]. [Run.Begin] and [Run.End] turn it into a [Record]. [Run.Progress] is called every second.
//   - [Counting] counts the queues of each [Subject], a pipeline or a delayed exchange, over one connection per vhost.
package operation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/transfer"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/release"
)

// Target is an operation's queue, with the known facts about it.
type Target struct {
	// Brokers are the brokers to connect to.
	Brokers     amqpconn.Brokers
	Name, Vhost string
	// Pipeline is the pipeline that the queue belongs to, "" without a pipeline.
	Pipeline pipeline.Names
	// Delayed is the delayed exchange whose unrouted queue this is, "" if it is another queue. [Target.Guard] finds it out.
	Delayed delayed.Names
	// Worker is the pipeline's configuration, and Delaying the configuration of the delayed exchange with the same name. They
	// are nil if they are not known.
	Worker   *pipeline.Worker
	Delaying *delayed.Worker
	// Heartbeat is how often both sides of a connection give a sign of life, 0 for the usual time.
	Heartbeat time.Duration
}

// OfWorkQueues reports whether the queue has only the failed messages of some work queues of the pipeline.
func (t *Target) OfWorkQueues() bool { return t.Pipeline != "" && t.Name != t.Pipeline.FailedQueue() }

// isKept reports whether the queue is known to delete no messages, however often they are read.
func (t *Target) isKept() bool {
	return t.Delayed != "" || t.Pipeline != "" && (!t.OfWorkQueues() || t.Worker != nil && t.Worker.DeclaresFailedQueue(t.Name))
}

// Entrance is the exchange that routes any routing key to the queue, "" if there is no such exchange.
func (t *Target) Entrance() string {
	switch {
	case t.Delayed != "":
		return t.Delayed.UnroutedExchange()
	case t.Pipeline != "" && !t.OfWorkQueues():
		return t.Pipeline.FailedExchange()
	}
	return ""
}

// recognize finds out whether a queue that is named like an unrouted queue is one: then the exchange that leads to it exists.
// The exchange has the same name, so a user who may read the queue can also see the exchange. An unrouted queue deletes no
// messages, and its name tells where a replay publishes.
func (t *Target) recognize(ctx context.Context, conn amqpconn.Raw) error {
	n := failed.UnroutedOf(t.Name)
	if t.Pipeline != "" || n == "" || t.Delayed != "" {
		return nil
	}
	is, err := transfer.HasExchange(ctx, conn, n.UnroutedExchange())
	if is {
		t.Delayed = n
	}
	if errors.Is(err, transfer.ErrMayNotRead) {
		return nil
	}
	return err
}

// CheckTo refuses a queue that a replay must not publish to. That is the queue that it reads, and the pipeline's own queues,
// since the message would arrive there without the reason for its failure.
func (t *Target) CheckTo(queue string) error {
	switch unroutedOf := failed.UnroutedOf(t.Name); {
	case strings.Contains(queue, "://"):
		return errors.New("the name of a queue must not be a URI")
	case queue != "" && queue == t.Name:
		return fmt.Errorf("%q is the queue of the messages themselves: name another queue", queue)
	case t.Pipeline != "" && t.Pipeline.OwnsQueue(queue):
		return fmt.Errorf("%q is one of the pipeline's own queues: name the queue of an application", queue)
	case unroutedOf != "" && unroutedOf.OwnsQueue(queue):
		return fmt.Errorf("%q is one of the delayed exchange's own queues: name the queue of an application", queue)
	}
	return nil
}

// connect connects to the first broker that serves, and returns its URI.
func (t *Target) connect(ctx context.Context, purpose string) (conn amqpconn.Raw, serving amqpconn.URI, err error) {
	_, err = t.Brokers.Try(ctx, slog.New(slog.DiscardHandler), 0, func(uri amqpconn.URI) error {
		conn, err = amqpconn.ConnectRaw(ctx, uri, t.Vhost, t.client(purpose))
		serving = uri
		return err
	})
	return conn, serving, err
}

// queue is the queue for package transfer.
func (t *Target) queue() transfer.Queue {
	return transfer.Queue{Name: t.Name, Open: func(ctx context.Context, purpose string) (amqpconn.Raw, error) {
		conn, _, err := t.connect(ctx, purpose)
		return conn, err
	}}
}

func (t *Target) client(purpose string) amqpconn.Client {
	name := "rabbitmq-retry failed " + t.Name + " " + purpose
	return amqpconn.Client{Name: name, Product: "rabbitmq-retry", Version: release.Version(), Heartbeat: t.Heartbeat}
}
