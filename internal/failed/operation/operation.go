// Package operation does what can be done with failed messages, for a command or for a page. It asks nothing, and writes to no
// terminal: it returns values, and tells meanwhile how far it is. Who calls it shows them, and asks in between.
//
//   - A [Target] is a queue, with the pipeline or the delayed exchange that it belongs to.
//   - [Target.Guard] begins a [Run]: it meets the broker, and finds out whether the queue may delete what is looked at.
//   - [Run.Look] shows the messages that a filter selects, and puts all back. [Run.Find] looks for one.
//   - Who looks chooses: [Chosen] has the identities of messages. They alone are acted on; no filter is applied again.
//   - [Run.Remove] takes the chosen ones out, to a [Sink] or for good. [Run.NewReplay] sends them back to work, in two steps:
//     [Replay.Look] and [Replay.Publish]; [Replay.Back] then counts what failed again.
//   - [Run.NewImport] puts messages of a file into the queue: [Import.Check], [Import.Compare],
//     [Import.Publish] and [Import.RemoveReplaced].
//   - [Run.Repair] replaces messages that AMQP 0-9-1 cannot carry.
//   - Each returns a [transfer.Result], of which [Run.Begin] and [Run.End] make a [Record]. [Run.Progress] is told every second.
//   - [Counting] counts the queues of pipelines and delayed exchanges, each a [Subject], over one connection per vhost.
package operation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/transfer"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
)

// Brokers are where connections go to.
type Brokers struct {
	URIs amqpconn.Brokers
	// Version is what connections say of this program.
	Version string
}

// Target is the queue that an operation is about, with what is known of it.
type Target struct {
	Brokers
	Name, Vhost string
	// Pipeline is "" for a queue of none.
	Pipeline pipeline.Names
	// Delayed is the delayed exchange whose unrouted queue it is, "" if it is none; [Target.Guard] finds it out.
	Delayed delayed.Names
	// Worker is the pipeline's configuration, and Delaying that of the delayed exchange of this name; nil if it is not known.
	Worker   *pipeline.Worker
	Delaying *delayed.Worker
}

// OfWorkQueues reports whether the queue has the failed messages of some work queues of the pipeline alone.
func (t *Target) OfWorkQueues() bool { return t.Pipeline != "" && t.Name != t.Pipeline.FailedQueue() }

// isKept reports whether it is known that the queue deletes nothing, however often it is looked at.
func (t *Target) isKept() bool {
	return t.Delayed != "" || t.Pipeline != "" && (!t.OfWorkQueues() || t.Worker != nil && t.Worker.DeclaresFailedQueue(t.Name))
}

// Entrance is the exchange that leads to the queue with any routing key, "" if there is none.
func (t *Target) Entrance() string {
	switch {
	case t.Delayed != "":
		return t.Delayed.UnroutedExchange()
	case t.Pipeline != "" && !t.OfWorkQueues():
		return t.Pipeline.FailedExchange()
	}
	return ""
}

// inbox is that of the pipeline or the delayed exchange, "" for a queue of neither.
func (t *Target) inbox() string {
	switch {
	case t.Delayed != "":
		return t.Delayed.Inbox()
	case t.Pipeline != "":
		return t.Pipeline.Inbox()
	}
	return ""
}

// recognize finds out whether a queue with the name of an unrouted queue is one: the exchange that leads to it is there, too.
// It has the same name, so that who may read the queue hears of it. Such a queue deletes nothing, and says where its messages
// go on.
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

// CheckTo refuses a queue that a replay must not send to: the one that it reads, or one of the pipeline's own, where
// the message would be without the reason that it failed for.
func (t *Target) CheckTo(queue string) error {
	switch unroutedOf := failed.UnroutedOf(t.Name); {
	case strings.Contains(queue, "://"):
		return errors.New("the name of a queue is needed, and is a URI")
	case queue != "" && queue == t.Name:
		return fmt.Errorf("%q is the queue that is replayed from", queue)
	case t.Pipeline != "" && t.Pipeline.OwnsQueue(queue):
		return fmt.Errorf("%q is one of the pipeline's own queues: name the queue of an application", queue)
	case unroutedOf != "" && unroutedOf.OwnsQueue(queue):
		return fmt.Errorf("%q is one of the delayed exchange's own queues: name the queue of an application", queue)
	}
	return nil
}

// connect connects to the first broker that serves, and says which one it is.
func (t *Target) connect(ctx context.Context, purpose string) (conn amqpconn.Raw, serving amqpconn.URI, err error) {
	client := t.client(purpose)
	_, err = t.URIs.Try(ctx, slog.New(slog.DiscardHandler), 0, func(uri amqpconn.URI) error {
		conn, err = amqpconn.ConnectRaw(ctx, uri, t.Vhost, client)
		serving = uri
		return err
	})
	return conn, serving, err
}

// queue is what messages are transferred from and to.
func (t *Target) queue() transfer.Queue {
	return transfer.Queue{Name: t.Name, Open: func(ctx context.Context, purpose string) (amqpconn.Raw, error) {
		conn, _, err := t.connect(ctx, purpose)
		return conn, err
	}}
}

func (t *Target) client(purpose string) amqpconn.Client {
	return amqpconn.Client{Name: "rabbitmq-retry failed " + t.Name + " " + purpose, Product: "rabbitmq-retry", Version: t.Version}
}
