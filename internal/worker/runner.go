package worker

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/cenkalti/backoff/v5"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delaying"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/product"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/worker/session"
)

const (
	reconnectAfter = 500 * time.Millisecond
	// reconnectAtMost bounds the wait before the jitter, which at worst doubles it.
	reconnectAtMost = 15 * time.Second
	// stableAfter is how long a session must last for the next one to start soon. Each session that ends counts against
	// the delivery limit of its messages in flight. A broken flow must not use up that limit by reconnecting again and
	// again.
	stableAfter = time.Minute
)

func (o Options) flow(c session.Config, log *slog.Logger) session.Flow {
	switch c := c.(type) {
	case *delaying.Exchange:
		return session.NewDelaying(c, o.Metrics.Flow(c), log)
	case *deadletter.Pipeline:
		f := session.NewRetrying(c, cmp.Or(o.unboundTimeout, session.DefaultUnboundTimeout), o.Metrics.Flow(c), log)
		if o.fault != nil {
			o.fault(f)
		}
		return f
	}
	panic(fmt.Sprintf("no flow is for %T", c))
}

// runFlow keeps a session of the flow alive until the context is done. It returns an error if the last session did not
// stop cleanly, or if no broker is RabbitMQ.
func (o Options) runFlow(ctx context.Context, c session.Config, changes <-chan session.Config) error {
	id := c.ID()
	log := o.Logger.With(string(id.Kind), id.Name, "vhost", id.Vhost)
	flow := o.flow(c, log)
	defer flow.Flush()
	wait := newBackOff()
	settings := session.Settings{
		Flow: flow, Patience: new(session.Patience), Changes: changes, Prefetch: o.Prefetch, Version: o.Version, Log: log,
		DrainTimeout: o.DrainTimeout, AckPatience: cmp.Or(o.ackPatience, session.DefaultAckPatience), Unfamiliar: o.unfamiliar,
	}
	broker := 0
	var undeliverable search
	for {
		select {
		case c := <-changes:
			flow.Configure(c)
		default:
		}
		undelivered, among := false, 1
		var s *session.Session
		var serving amqpconn.URI
		var opened time.Time
		var err error
		broker, err = o.Brokers.Try(ctx, log, broker, func(uri amqpconn.URI) (err error) {
			serving, opened = uri, time.Now()
			s, err = session.Open(ctx, uri, settings)
			return err
		})
		if product.IsOtherError(err) {
			return err
		}
		if err != nil {
			undelivered = amqpconn.IsCode(err, amqp.InternalError) // over the head of the inbox, which came before the answer
		} else {
			log.Info("consuming", "queue", flow.Config().Inbox(), "prefetch", o.Prefetch, "broker", serving.String())
			err = s.Run(ctx)
			s.Close()
			if ctx.Err() != nil {
				log.Info("stopped")
				return s.Unfinished(err)
			}
			if time.Since(opened) > stableAfter {
				wait.Reset()
			}
			if undelivered, among = s.Undeliverable(); undelivered && s.Finished() > 0 {
				wait.Reset()
			}
			settings.Careful = undelivered || s.Searching()
		}
		pause := wait.NextBackOff()
		if undelivered && undeliverable.take(ctx, o, serving, flow, among, log) {
			settings.Careful = false
			wait.Reset()
			pause = 0
		}
		if ctx.Err() == nil {
			flow.Watch().Restarted(err)
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

// newBackOff spreads each wait between zero and twice its length. Workers that lost the same broker then reconnect at
// different times.
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
