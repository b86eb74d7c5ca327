package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/worker/session"
)

// Check connects to the vhost of each pipeline, on the first broker that serves it, and looks for its
// inbox and the exchanges that the worker publishes to. It writes a line per pipeline, and one for each
// broker that did not serve, and returns an error if any of them cannot be worked on. It consumes and
// changes nothing.
func Check(ctx context.Context, o Options, out io.Writer) error {
	pipelines, err := compile(o.Config)
	if err != nil {
		return err
	}
	var failed error
	for _, p := range pipelines {
		say := func(format string, values ...any) {
			_, _ = fmt.Fprintf(out, "pipeline %q in vhost %q: %s\n", p.Names, p.Vhost, fmt.Sprintf(format, values...))
		}
		queue, unserved, err := o.checkBrokers(ctx, p)
		severity := "warning"
		if err != nil {
			severity, failed = "error", errors.New("not every pipeline can be worked on")
		}
		for _, reason := range unserved {
			say("%s: %v", severity, reason)
		}
		if err == nil {
			say("ok: %s has %d messages and %d consumers", queue.Name, queue.Messages, queue.Consumers)
		}
	}
	return failed
}

// checkBrokers asks one broker after the other until one serves, and says why others do not.
func (o Options) checkBrokers(ctx context.Context, p *deadletter.Pipeline) (queue amqp.Queue, unserved []error, err error) {
	_, err = o.Brokers.Try(ctx, slog.New(slog.DiscardHandler), 0, func(uri amqpconn.URI) (err error) {
		if queue, err = checkPipeline(ctx, uri, p, o.Version); err != nil {
			unserved = append(unserved, err)
		}
		return err
	})
	if err != nil && unserved == nil {
		unserved = []error{err} // nobody was asked
	}
	return queue, unserved, err
}

func checkPipeline(ctx context.Context, uri amqpconn.URI, p *deadletter.Pipeline, version string) (amqp.Queue, error) {
	conn, err := session.Connect(ctx, uri, p, "check", version)
	if err != nil {
		return amqp.Queue{}, err
	}
	defer amqpconn.HangUp(conn)
	channel, err := amqpconn.OpenChannel(ctx, conn)
	if err != nil {
		return amqp.Queue{}, err
	}
	queue, err := amqpconn.Await(ctx, "look for the inbox", func() (amqp.Queue, error) {
		return channel.QueueDeclarePassive(p.Names.Inbox(), true, false, false, false, nil)
	}, func(amqp.Queue) {})
	if err != nil {
		return amqp.Queue{}, err
	}
	for _, exchange := range p.Names.WorkerExchanges() {
		if _, err := amqpconn.Await(ctx, "look for the exchange "+exchange, func() (any, error) {
			// The broker does not compare the type of an exchange that is only looked for.
			return nil, channel.ExchangeDeclarePassive(exchange, amqp.ExchangeDirect, true, false, false, false, nil)
		}, func(any) {}); err != nil {
			return amqp.Queue{}, err
		}
	}
	return queue, nil
}
