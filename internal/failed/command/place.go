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
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/pass"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/workerconfig"
)

// place is a target that was found.
type place struct {
	pass.Queue
	Vhost string
	// Pipeline is "" for a queue of none.
	Pipeline pipeline.Names
	// Delayed is the delayed exchange whose unrouted queue it is, "" if it is none; see [place.recognize].
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
func (p *place) choose(name string, config workerconfig.Config) (err error) {
	p.Pipeline = pipeline.Names(name)
	if p.Worker, err = only(config.Pipelines, workerconfig.PipelineID, kindPipeline, name, p.Vhost); err != nil {
		return err
	}
	if p.Worker != nil {
		p.Vhost = p.Worker.Vhost
	}
	if err := p.chooseDelayed(name, config); err != nil {
		return err
	}
	if p.Worker == nil && p.Delaying == nil && len(namesIn(config)) > 0 && p.Vhost == "" {
		return fmt.Errorf("there is no pipeline or delayed exchange %q in the configuration, which has: %s",
			name, strings.Join(namesIn(config), ", "))
	}
	return nil
}

// chooseDelayed finds the delayed exchange in the configuration, if there is one.
func (p *place) chooseDelayed(name string, config workerconfig.Config) (err error) {
	p.Delaying, err = only(config.DelayedExchanges, workerconfig.DelayedExchangeID, kindDelayed, name, p.Vhost)
	if p.Delaying != nil {
		p.Vhost = p.Delaying.Vhost
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

// ofPipeline makes of a place with a queue one that has failed messages of work queues of a pipeline.
func (p *place) ofPipeline(name string, config workerconfig.Config) error {
	if err := p.choose(name, config); err != nil {
		return err
	}
	if p.Pipeline.OwnsQueue(p.Name) && p.Name != p.Pipeline.FailedQueue() {
		return fmt.Errorf("--queue: %q is one of the own queues of pipeline %q, and has no failed messages", p.Name, p.Pipeline)
	}
	return nil
}

// isOfWorkQueues reports whether the queue has the failed messages of some work queues of the pipeline alone.
func (p *place) isOfWorkQueues() bool { return p.Pipeline != "" && p.Name != p.Pipeline.FailedQueue() }

// isKept reports whether it is known that the queue deletes nothing, however often it is looked at.
func (p *place) isKept() bool {
	return p.Delayed != "" || p.Pipeline != "" && (!p.isOfWorkQueues() || p.Worker != nil && p.Worker.DeclaresFailedQueue(p.Name))
}

// entrance is the exchange that leads to the queue with any routing key, "" if there is none.
func (p *place) entrance() string {
	switch {
	case p.Delayed != "":
		return p.Delayed.UnroutedExchange()
	case p.Pipeline != "" && !p.isOfWorkQueues():
		return p.Pipeline.FailedExchange()
	}
	return ""
}

// recognize finds out whether a queue with the name of an unrouted queue is one: the exchange that leads to it is there, too.
// It has the same name, so that who may read the queue hears of it. Such a queue deletes nothing, and says where its messages
// go on.
func (p *place) recognize(ctx context.Context) error {
	n := failed.UnroutedOf(p.Name)
	if p.Pipeline != "" || n == "" || p.Delayed != "" {
		return nil
	}
	is, err := p.HasExchange(ctx, n.UnroutedExchange())
	if is {
		p.Delayed = n
	}
	if errors.Is(err, pass.ErrMayNotRead) {
		return nil
	}
	return err
}

// checkTarget refuses a queue that a replay must not send to: the one that it reads, or one of the pipeline's own, where
// the message would be without the reason that it failed for.
func (p *place) checkTarget(queue string) error {
	switch unroutedOf := failed.UnroutedOf(p.Name); {
	case strings.Contains(queue, "://"):
		return errors.New("--to: the name of a queue is needed, and is a URI")
	case queue != "" && queue == p.Name:
		return fmt.Errorf("--to: %q is the queue that is replayed from", queue)
	case p.Pipeline != "" && p.Pipeline.OwnsQueue(queue):
		return fmt.Errorf("--to: %q is one of the pipeline's own queues: name the queue of an application", queue)
	case unroutedOf != "" && unroutedOf.OwnsQueue(queue):
		return fmt.Errorf("--to: %q is one of the delayed exchange's own queues: name the queue of an application", queue)
	}
	return nil
}

// open connects to the first broker that serves.
func (p *place) open(ctx context.Context, purpose string) (conn amqpconn.Raw, err error) {
	client := p.client(purpose)
	_, err = p.brokers.Try(ctx, slog.New(slog.DiscardHandler), 0, func(uri amqpconn.URI) error {
		conn, err = amqpconn.ConnectRaw(ctx, uri, p.Vhost, client)
		p.serving = uri
		return err
	})
	var refused *amqp.Error
	switch {
	case err == nil:
		p.frameMax = conn.Config.FrameSize
	case errors.As(err, &refused) && refused.Code == amqp.NotAllowed:
		err = fmt.Errorf("%w; --vhost names another vhost than %q", err, p.Vhost)
	}
	return conn, err
}

func (p *place) client(purpose string) amqpconn.Client {
	return amqpconn.Client{Name: "rabbitmq-retry failed " + p.Name + " " + purpose, Product: "rabbitmq-retry", Version: p.version}
}

// advise adds to an error about a queue what may be wrong, and to one over a message that cannot be read what helps.
func (p *place) advise(err error) error {
	var unreadable *pass.UnreadableError
	switch {
	case p.Pipeline != "" && errors.Is(err, pass.ErrNoQueue):
		return fmt.Errorf("%w %q: is there a pipeline %q? If it is a delayed exchange, write --queue %s",
			err, p.Vhost, p.Pipeline, pasted(delayed.Names(p.Pipeline).UnroutedQueue()))
	case !errors.As(err, &unreadable):
		return err
	case p.entrance() == "":
		return fmt.Errorf("%w: take it out with a client that speaks AMQP 1.0, and run the command again", err)
	}
	return fmt.Errorf("%w; rabbitmq-retry failed repair %s replaces it by a copy that can be read", err, p.argument())
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
func (p *place) argument() string {
	text := "--queue " + pasted(p.Name)
	if p.Pipeline != "" {
		text = pasted(string(p.Pipeline))
	}
	if p.isOfWorkQueues() {
		text += " --queue " + pasted(p.Name)
	}
	if p.named {
		text += " --vhost " + pasted(p.Vhost)
	}
	return text
}
