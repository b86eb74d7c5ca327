package worker

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/metrics"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/workerconfig"
)

const (
	// DefaultPrefetch is how many messages of a pipeline are in flight at a time.
	DefaultPrefetch = 256
	// MaxPrefetch is the largest window that AMQP 0-9-1 can ask for.
	MaxPrefetch = 65_535

	reconnectAfter = 500 * time.Millisecond
	// reconnectAtMost is doubled by the jitter at worst.
	reconnectAtMost = 15 * time.Second
)

// Options are what the worker needs to run.
type Options struct {
	// Config is the first configuration, and Configs brings later ones. It is never closed.
	Config  workerconfig.Config
	Configs <-chan workerconfig.Config
	Brokers amqpconn.Brokers
	// Prefetch is the window of each pipeline, from 1 to [MaxPrefetch].
	Prefetch int
	// DrainTimeout bounds how long what is in flight is finished; 0 is [DefaultDrainTimeout].
	DrainTimeout time.Duration
	// Version is shown to the broker.
	Version string
	// Logger gets a line per message that is parked in a failed queue, none per retried one.
	Logger *slog.Logger
	// Metrics may be nil.
	Metrics *metrics.Set
}

// Run works on all pipelines until the context is done and what is in flight is finished. What goes
// wrong with one pipeline is logged and tried again, and does not stop the others. The error is about
// pipelines that could not finish in time; their messages will be delivered again.
//
// A later configuration touches only the pipelines that differ: one that is new starts, one that is
// gone drains, and one that changed goes on with its connections and what it has in flight.
func Run(ctx context.Context, o Options) error {
	if o.Metrics == nil {
		o.Metrics = metrics.New("")
	}
	o.DrainTimeout = cmp.Or(o.DrainTimeout, DefaultDrainTimeout)
	s := supervisor{options: o, runners: map[key]*pipelineRunner{}, run: o.runPipeline}
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

// runPipeline keeps a session of the pipeline alive until the context is done. The error is that of a
// session that did not stop cleanly.
func (o Options) runPipeline(ctx context.Context, p *deadletter.Pipeline, changes <-chan *deadletter.Pipeline) error {
	log := o.Logger.With("pipeline", string(p.Names), "vhost", p.Vhost)
	watch := o.Metrics.Pipeline(p)
	wait := newBackOff()
	broker, around := 0, detours{}
	for {
		select {
		case p = <-changes:
		default:
		}
		var s *session
		var address string
		next, err := o.Brokers.Try(ctx, log, broker, func(uri amqpconn.URI) (err error) {
			address = uri.String()
			s, err = openSession(ctx, uri, p, o, log, watch)
			return err
		})
		broker = next
		if err == nil {
			log.Info("consuming", "queue", p.Names.Inbox(), "prefetch", o.Prefetch, "broker", address)
			s.changes, s.drainTimeout, s.detours = changes, o.DrainTimeout, around
			err = s.run(ctx)
			s.close()
			p = s.pipeline
			if ctx.Err() != nil {
				log.Info("stopped")
				return err
			}
			if s.stable() {
				wait.Reset()
			}
		}
		pause := wait.NextBackOff()
		if ctx.Err() == nil {
			watch.Restarted(err)
			log.Error("session ended: connecting again", "error", err, "after", pause.Round(time.Millisecond))
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			log.Info("stopped")
			return nil
		}
	}
}

// newBackOff spreads the waits from zero to double: workers that lost the same broker do not come
// back all at once.
func newBackOff() backoff.BackOff {
	wait := &backoff.ExponentialBackOff{
		InitialInterval:     reconnectAfter,
		RandomizationFactor: 1,
		Multiplier:          2,
		MaxInterval:         reconnectAtMost,
	}
	wait.Reset()
	return wait
}
