package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/product"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/worker/session"
)

// Check connects to the vhost of each pipeline and delayed exchange, on the first broker that serves it, and looks for its
// inbox and the exchanges that the worker publishes to. It writes a line for each, and one for each
// broker that did not serve, and returns an error if any of them cannot be worked on. It consumes and
// changes nothing.
func Check(ctx context.Context, o Options, out io.Writer) error {
	valid, err := compile(o.Config)
	if err != nil {
		return err
	}
	var failed error
	for _, c := range valid.flows() {
		say := func(format string, values ...any) {
			_, _ = fmt.Fprintf(out, "%s: %s\n", c.ID(), fmt.Sprintf(format, values...))
		}
		queue, unserved, err := o.checkBrokers(ctx, c)
		if product.IsOtherError(err) {
			return err // the same for all
		}
		severity := "warning"
		if err != nil {
			severity, failed = "error", errors.New("not everything can be worked on")
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
func (o Options) checkBrokers(ctx context.Context, c session.Config) (queue amqp.Queue, unserved []error, err error) {
	_, err = o.Brokers.Try(ctx, slog.New(slog.DiscardHandler), 0, func(uri amqpconn.URI) (err error) {
		if queue, err = checkFlow(ctx, uri, c, o.Version); err != nil {
			unserved = append(unserved, err)
		}
		return err
	})
	if err != nil && unserved == nil {
		unserved = []error{err} // nobody was asked
	}
	return queue, unserved, err
}

func checkFlow(ctx context.Context, uri amqpconn.URI, c session.Config, version string) (amqp.Queue, error) {
	conn, err := session.Connect(ctx, uri, c, "check", version)
	if err != nil {
		return amqp.Queue{}, err
	}
	defer amqpconn.HangUp(conn)
	return amqpconn.LookFor(ctx, conn, c.Inbox(), c.Exchanges()...)
}
