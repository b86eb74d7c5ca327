package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
)

// Check connects to the vhost of each pipeline, on the first broker that serves it, and looks for its
// inbox and the exchanges that the worker publishes to. It writes a line per pipeline, and returns an
// error if any of them cannot be worked on. It consumes and changes nothing.
func Check(ctx context.Context, o Options, out io.Writer) error {
	var failed error
	for _, p := range o.Config.Pipelines {
		var queue amqp.Queue
		_, err := o.tryBrokers(ctx, slog.New(slog.DiscardHandler), 0, func(uri URI) (err error) {
			queue, err = checkPipeline(ctx, uri, p)
			return err
		})
		if err != nil {
			failed = errors.New("not every pipeline can be worked on")
			_, _ = fmt.Fprintf(out, "pipeline %q in vhost %q: error: %v\n", p.Names, p.Vhost, err)
			continue
		}
		_, _ = fmt.Fprintf(out, "pipeline %q in vhost %q: ok: %s has %d messages and %d consumers\n",
			p.Names, p.Vhost, queue.Name, queue.Messages, queue.Consumers)
	}
	return failed
}

func checkPipeline(ctx context.Context, uri URI, p *deadletter.Pipeline) (amqp.Queue, error) {
	conn, err := connect(ctx, uri, p, "check")
	if err != nil {
		return amqp.Queue{}, err
	}
	defer hangUp(conn)
	channel, err := openChannel(ctx, conn)
	if err != nil {
		return amqp.Queue{}, err
	}
	queue, err := await(ctx, "look for the inbox", func() (amqp.Queue, error) {
		return channel.QueueDeclarePassive(p.Names.Inbox(), true, false, false, false, nil)
	}, func(amqp.Queue) {})
	if err != nil {
		return amqp.Queue{}, err
	}
	for _, exchange := range []string{p.Names.RetryExchange(), p.Names.ReturnExchange(), p.Names.FailedExchange()} {
		if _, err := await(ctx, "look for the exchange "+exchange, func() (any, error) {
			// The broker does not compare the type of an exchange that is only looked for.
			return nil, channel.ExchangeDeclarePassive(exchange, amqp.ExchangeDirect, true, false, false, false, nil)
		}, func(any) {}); err != nil {
			return amqp.Queue{}, err
		}
	}
	return queue, nil
}
