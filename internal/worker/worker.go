package worker

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/metrics"
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
