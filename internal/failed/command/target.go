package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/transfer"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/workerconfig"
)

// target is the queue that a command is about, with what is known of it.
type target struct {
	transfer.Queue
	Vhost string
	// Pipeline is "" for a queue of none.
	Pipeline pipeline.Names
	// Delayed is the delayed exchange whose unrouted queue it is, "" if it is none; see [target.recognize].
	Delayed delayed.Names
	// Worker is the pipeline's configuration, and Delaying that of the delayed exchange of this name; nil if it is not known.
	Worker   *pipeline.Worker
	Delaying *delayed.Worker

	// named says that the command line names the vhost.
	named   bool
	brokers amqpconn.Brokers
	// serving is the broker of the last connection, and frameMax what it takes.
	serving  amqpconn.URI
	frameMax int
	version  string
}

// choose finds the pipeline in the configuration, if there is one, and the delayed exchange of the same name.
func (t *target) choose(name string, config workerconfig.Config) (err error) {
	t.Pipeline = pipeline.Names(name)
	if t.Worker, err = only(config.Pipelines, workerconfig.PipelineID, kindPipeline, name, t.Vhost); err != nil {
		return err
	}
	if t.Worker != nil {
		t.Vhost = t.Worker.Vhost
	}
	if err := t.chooseDelayed(name, config); err != nil {
		return err
	}
	if t.Worker == nil && t.Delaying == nil && len(namesIn(config)) > 0 && t.Vhost == "" {
		return fmt.Errorf("there is no pipeline or delayed exchange %q in the configuration, which has: %s",
			name, strings.Join(namesIn(config), ", "))
	}
	return nil
}

// chooseDelayed finds the delayed exchange in the configuration, if there is one.
func (t *target) chooseDelayed(name string, config workerconfig.Config) (err error) {
	t.Delaying, err = only(config.DelayedExchanges, workerconfig.DelayedExchangeID, kindDelayed, name, t.Vhost)
	if t.Delaying != nil {
		t.Vhost = t.Delaying.Vhost
	}
	return err
}

// only finds the one of this name, in the vhost if there is one; nil if there is none.
func only[W any](elements []W, id func(W) workerconfig.ID, kind, name, vhost string) (found *W, err error) {
	for i, w := range elements {
		if id := id(w); id.Name != name || vhost != "" && id.Vhost != vhost {
			continue
		}
		if found != nil {
			return nil, fmt.Errorf("there is a %s %q in several vhosts: write --vhost", kind, name)
		}
		found = &elements[i]
	}
	return found, nil
}

// ofPipeline makes of a target with a queue one that has failed messages of work queues of a pipeline.
func (t *target) ofPipeline(name string, config workerconfig.Config) error {
	if err := t.choose(name, config); err != nil {
		return err
	}
	if t.Pipeline.OwnsQueue(t.Name) && t.Name != t.Pipeline.FailedQueue() {
		return fmt.Errorf("--queue: %q is one of the own queues of pipeline %q, and has no failed messages", t.Name, t.Pipeline)
	}
	return nil
}

// isOfWorkQueues reports whether the queue has the failed messages of some work queues of the pipeline alone.
func (t *target) isOfWorkQueues() bool { return t.Pipeline != "" && t.Name != t.Pipeline.FailedQueue() }

// isKept reports whether it is known that the queue deletes nothing, however often it is looked at.
func (t *target) isKept() bool {
	return t.Delayed != "" || t.Pipeline != "" && (!t.isOfWorkQueues() || t.Worker != nil && t.Worker.DeclaresFailedQueue(t.Name))
}

// entrance is the exchange that leads to the queue with any routing key, "" if there is none.
func (t *target) entrance() string {
	switch {
	case t.Delayed != "":
		return t.Delayed.UnroutedExchange()
	case t.Pipeline != "" && !t.isOfWorkQueues():
		return t.Pipeline.FailedExchange()
	}
	return ""
}

// recognize finds out whether a queue with the name of an unrouted queue is one: the exchange that leads to it is there, too.
// It has the same name, so that who may read the queue hears of it. Such a queue deletes nothing, and says where its messages
// go on.
func (t *target) recognize(ctx context.Context) error {
	n := failed.UnroutedOf(t.Name)
	if t.Pipeline != "" || n == "" || t.Delayed != "" {
		return nil
	}
	is, err := t.HasExchange(ctx, n.UnroutedExchange())
	if is {
		t.Delayed = n
	}
	if errors.Is(err, transfer.ErrMayNotRead) {
		return nil
	}
	return err
}

// checkTarget refuses a queue that a replay must not send to: the one that it reads, or one of the pipeline's own, where
// the message would be without the reason that it failed for.
func (t *target) checkTarget(queue string) error {
	switch unroutedOf := failed.UnroutedOf(t.Name); {
	case strings.Contains(queue, "://"):
		return errors.New("--to: the name of a queue is needed, and is a URI")
	case queue != "" && queue == t.Name:
		return fmt.Errorf("--to: %q is the queue that is replayed from", queue)
	case t.Pipeline != "" && t.Pipeline.OwnsQueue(queue):
		return fmt.Errorf("--to: %q is one of the pipeline's own queues: name the queue of an application", queue)
	case unroutedOf != "" && unroutedOf.OwnsQueue(queue):
		return fmt.Errorf("--to: %q is one of the delayed exchange's own queues: name the queue of an application", queue)
	}
	return nil
}

// open connects to the first broker that serves.
func (t *target) open(ctx context.Context, purpose string) (conn amqpconn.Raw, err error) {
	client := t.client(purpose)
	_, err = t.brokers.Try(ctx, slog.New(slog.DiscardHandler), 0, func(uri amqpconn.URI) error {
		conn, err = amqpconn.ConnectRaw(ctx, uri, t.Vhost, client)
		t.serving = uri
		return err
	})
	var refused *amqp.Error
	switch {
	case err == nil:
		t.frameMax = conn.Config.FrameSize
	case errors.As(err, &refused) && refused.Code == amqp.NotAllowed:
		err = fmt.Errorf("%w; --vhost names another vhost than %q", err, t.Vhost)
	}
	return conn, err
}

func (t *target) client(purpose string) amqpconn.Client {
	return amqpconn.Client{Name: "rabbitmq-retry failed " + t.Name + " " + purpose, Product: "rabbitmq-retry", Version: t.version}
}

// advise adds to an error about a queue what may be wrong, and to one over a message that cannot be read what helps.
func (t *target) advise(err error) error {
	var unreadable *transfer.UnreadableError
	switch {
	case t.Pipeline != "" && errors.Is(err, transfer.ErrNoQueue):
		return fmt.Errorf("%w %q: is there a pipeline %q? If it is a delayed exchange, write --queue %s",
			err, t.Vhost, t.Pipeline, pasted(delayed.Names(t.Pipeline).UnroutedQueue()))
	case !errors.As(err, &unreadable):
		return err
	case t.entrance() == "":
		return fmt.Errorf("%w: take it out with a client that speaks AMQP 1.0, and run the command again", err)
	}
	return fmt.Errorf("%w; rabbitmq-retry failed repair %s replaces it by a copy that can be read", err, t.argument())
}

// pasted makes one word of a text for a shell, and shows what could not be seen.
func pasted(text string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@%+=,"
	switch {
	case text != "" && strings.Trim(text, plain) == "" && text[0] != '-':
		return text
	case failed.Printable(text) != text || strings.ContainsAny(text, "\n\t"):
		quoted := fmt.Sprintf("%+q", text)
		return "$'" + strings.ReplaceAll(strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`), "'", `\'`) + "'"
	default:
		return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
	}
}

// argument is how the queue is named on the command line.
func (t *target) argument() string {
	text := "--queue " + pasted(t.Name)
	if t.Pipeline != "" {
		text = pasted(string(t.Pipeline))
	}
	if t.isOfWorkQueues() {
		text += " --queue " + pasted(t.Name)
	}
	if t.named {
		text += " --vhost " + pasted(t.Vhost)
	}
	return text
}
