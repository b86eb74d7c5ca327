// Package worker runs the retry pipelines and the delayed exchanges of a configuration. Each has a session of package
// session, which is opened again after it ends, and follows changes of the configuration.
//
// It loses no message: an unconfirmed or returned message is not acknowledged. It can duplicate a message if a session
// ends between a confirm and the acknowledgement.
package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"regexp"
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
	// DefaultDrainTimeout bounds how long a stopping worker finishes the messages in flight. It leaves some time to
	// close connections before orchestrators kill the process, after 30 s.
	DefaultDrainTimeout = 25 * time.Second
	// MaxPrefetch is the largest window that AMQP 0-9-1 can ask for.
	MaxPrefetch = 65_535
)

// Options are the parameters of the worker.
type Options struct {
	// Config is the first configuration, and Configs brings later ones. Configs is never closed.
	Config  workerconfig.Config
	Configs <-chan workerconfig.Config
	Brokers amqpconn.Brokers
	// Prefetch is the window of each pipeline and delayed exchange, from 1 to [MaxPrefetch].
	Prefetch int
	// DrainTimeout bounds how long the worker finishes the messages in flight. 0 is [DefaultDrainTimeout].
	DrainTimeout time.Duration
	// Version is shown to the broker.
	Version string
	// Logger gets a line for each message that is parked in a failed queue, and no line for a retried one.
	Logger *slog.Logger
	// Metrics can be nil.
	Metrics *metrics.Set

	// unfamiliar is shared by all flows.
	unfamiliar *sync.Once
	// fault is for tests. It puts faults into a flow.
	fault func(*session.Retrying)
	// unboundTimeout and ackPatience are for tests. 0 is the value for production.
	unboundTimeout, ackPatience time.Duration
}

// Run works on all pipelines and delayed exchanges until the context is done and the messages in flight are finished.
// It logs the errors of one of them and tries again, while the others carry on. It returns an error about flows that
// could not finish in time: the broker delivers their messages again. Only if no broker is RabbitMQ, Run stops
// everything, since all flows have the same brokers.
//
// A later configuration touches only the differences. A new flow starts, and a removed one drains. A changed flow keeps
// its connections and its messages in flight.
func Run(ctx context.Context, o Options) error {
	if o.Metrics == nil {
		o.Metrics = metrics.New("")
	}
	o.DrainTimeout = cmp.Or(o.DrainTimeout, DefaultDrainTimeout)
	o.unfamiliar = &sync.Once{}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	s := supervisor{options: o, runners: map[workerconfig.ID]*runner{}, run: o.runFlow, stop: stop}
	s.follow(ctx, o.Config)
	for {
		select {
		case config := <-o.Configs:
			s.follow(ctx, config)
		case <-ctx.Done():
			return s.wait()
		}
	}
}

// Check connects to the vhost of each pipeline and delayed exchange, on the first broker that serves it. It looks for
// the inbox and the exchanges that the worker publishes to. It writes a line for each flow, and for each broker that
// did not serve one. It returns an error if the worker cannot run one of the flows. It consumes and changes nothing.
func Check(ctx context.Context, o Options, out io.Writer) error {
	ok := len(o.Config.Refused) == 0
	for _, r := range o.Config.Refused {
		_, _ = fmt.Fprintf(out, "%s: error: %v\n", r.ID, r.Err)
	}
	for _, c := range compile(o.Config) {
		say := func(format string, values ...any) {
			_, _ = fmt.Fprintf(out, "%s: %s\n", c.ID(), fmt.Sprintf(format, values...))
		}
		queue, unserved, err := o.checkBrokers(ctx, c)
		if product.IsOtherError(err) {
			return err // the error is the same for all flows
		}
		severity := "warning"
		if err != nil {
			severity, ok = "error", false
		}
		for _, reason := range unserved {
			say("%s: %v", severity, reason)
		}
		if err == nil {
			say("ok: %s has %d messages and %d consumers", queue.Name, queue.Messages, queue.Consumers)
		}
	}
	if !ok {
		return errors.New("the worker cannot run all pipelines and delayed exchanges: correct what the lines above name; terraform apply " +
			"makes queues and exchanges that are missing, and the attribute worker_permissions has the user's permissions")
	}
	return nil
}

// refusedLook matches a refusal to show an object. Any permission would do, but brokers name configure.
var refusedLook = regexp.MustCompile(`configure access to (queue|exchange) '(.+)' in vhost`)

// checkBrokers asks one broker after the other until one serves, and says why the others do not.
func (o Options) checkBrokers(ctx context.Context, c session.Config) (queue amqp.Queue, unserved []error, err error) {
	_, err = o.Brokers.Try(ctx, slog.New(slog.DiscardHandler), 0, func(uri amqpconn.URI) error {
		conn, err := amqpconn.Connect(ctx, uri, c.ID().Vhost, session.Client(c, "check", o.Version))
		if err == nil {
			defer amqpconn.HangUp(conn)
			queue, err = amqpconn.LookFor(ctx, conn, c.Inbox(), c.Exchanges()...)
		}
		if refused := refusedLook.FindStringSubmatch(fmt.Sprint(err)); refused != nil && !errors.Is(err, amqpconn.ErrNeedsConfigure) {
			err = fmt.Errorf("needs: %s on %q (%w)", map[string]string{"queue": "read", "exchange": "write"}[refused[1]], refused[2], err)
		}
		if err != nil {
			unserved = append(unserved, err)
		}
		return err
	})
	if err != nil && unserved == nil {
		unserved = []error{err} // no broker was asked
	}
	return queue, unserved, err
}
