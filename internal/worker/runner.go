package worker

import (
	"cmp"
	"context"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/worker/session"
)

const (
	reconnectAfter = 500 * time.Millisecond
	// reconnectAtMost is doubled by the jitter at worst.
	reconnectAtMost = 15 * time.Second
)

// runPipeline keeps a session of the pipeline alive until the context is done. The error is that of a
// session that did not stop cleanly.
func (o Options) runPipeline(ctx context.Context, p *deadletter.Pipeline, changes <-chan *deadletter.Pipeline) error {
	log := o.Logger.With("pipeline", string(p.Names), "vhost", p.Vhost)
	watch := o.Metrics.Pipeline(p)
	wait := newBackOff()
	settings := session.Settings{
		Changes: changes, Prefetch: o.Prefetch, DrainTimeout: o.DrainTimeout, Avoided: session.AvoidedDelays{},
		Parking:        session.NewParking(),
		UnboundTimeout: cmp.Or(o.unboundTimeout, session.DefaultUnboundTimeout),
		Version:        o.Version, Log: log, Watch: watch, Judge: session.NewJudge(),
	}
	if o.judge != nil {
		settings.Judge = *o.judge
	}
	broker := 0
	var undeliverable search
	for {
		select {
		case p = <-changes:
		default:
		}
		settings.Pipeline = p
		atHead := false
		var s *session.Session
		var serving amqpconn.URI
		next, err := o.Brokers.Try(ctx, log, broker, func(uri amqpconn.URI) (err error) {
			serving = uri
			s, err = session.Open(ctx, uri, settings)
			return err
		})
		broker = next
		if err != nil {
			atHead = session.NotDelivered(err)
		} else {
			log.Info("consuming", "queue", p.Names.Inbox(), "prefetch", o.Prefetch, "broker", serving.String())
			err = s.Run(ctx)
			s.Close()
			p = s.Pipeline
			if ctx.Err() != nil {
				log.Info("stopped")
				return s.Unfinished(err)
			}
			if s.Stable() {
				wait.Reset()
			}
			var undelivered bool
			if undelivered, atHead = s.Undeliverable(); undelivered && s.Finished() > 0 {
				wait.Reset()
			}
			settings.Careful = undelivered || s.Searching()
		}
		pause := wait.NextBackOff()
		if atHead && undeliverable.take(ctx, o, serving, p, log, watch) {
			wait.Reset()
			pause = 0
		}
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
