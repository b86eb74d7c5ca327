// Package worker runs the retry pipelines and the delayed exchanges of a configuration: a session of package session for each, again
// after it ended, and its changes while it lives.
//
// It loses no message: what was not confirmed, or was returned, is not acknowledged. It may duplicate
// one, when a session ends between a confirm and the acknowledgement.
package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/metrics"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/product"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/worker/session"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/workerconfig"
)

const (
	// DefaultPrefetch is how many messages of a pipeline or delayed exchange are in flight at a time.
	DefaultPrefetch = 256
	// DefaultDrainTimeout bounds how long a stopping worker finishes what is in flight. It leaves a moment
	// to close connections before orchestrators kill, after 30 s.
	DefaultDrainTimeout = 25 * time.Second
	// MaxPrefetch is the largest window that AMQP 0-9-1 can ask for.
	MaxPrefetch = 65_535
)

// Options are what the worker needs to run.
type Options struct {
	// Config is the first configuration, and Configs brings later ones. It is never closed.
	Config  workerconfig.Config
	Configs <-chan workerconfig.Config
	Brokers amqpconn.Brokers
	// Prefetch is the window of each pipeline and delayed exchange, from 1 to [MaxPrefetch].
	Prefetch int
	// DrainTimeout bounds how long what is in flight is finished; 0 is [DefaultDrainTimeout].
	DrainTimeout time.Duration
	// Version is shown to the broker.
	Version string
	// Logger gets a line per message that is parked in a failed queue, none per retried one.
	Logger *slog.Logger
	// Metrics may be nil.
	Metrics *metrics.Set

	// unfamiliar is for all flows.
	unfamiliar *sync.Once
	// judge is a test's; nil is the one for production.
	judge *session.Judge
	// unboundTimeout and ackPatience are a test's; 0 is the one for production.
	unboundTimeout, ackPatience time.Duration
}

// Run works on all pipelines and delayed exchanges until the context is done and what is in flight is finished. What goes
// wrong with one of them is logged and tried again, and does not stop the others. The error is about
// those that could not finish in time; their messages will be delivered again. Only where none of the brokers, which are
// the same for all, is RabbitMQ, everything stops: nothing will work there.
//
// A later configuration touches only what differs: one that is new starts, one that is
// gone drains, and one that changed keeps its connections and what it has in flight.
func Run(ctx context.Context, o Options) error {
	if o.Metrics == nil {
		o.Metrics = metrics.New("")
	}
	o.DrainTimeout = cmp.Or(o.DrainTimeout, DefaultDrainTimeout)
	o.unfamiliar = &sync.Once{}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	s := supervisor{options: o, runners: map[workerconfig.ID]*runner{}, run: o.runFlow, stop: stop}
	if err := s.follow(ctx, o.Config); err != nil {
		return err
	}
	for {
		select {
		case config := <-o.Configs:
			if err := s.follow(ctx, config); err != nil {
				o.Logger.Error("configuration refused: the one before stays in force", "error", err)
			}
		case <-ctx.Done():
			return s.wait()
		}
	}
}

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
