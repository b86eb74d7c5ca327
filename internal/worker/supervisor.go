package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"sync"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delaying"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/metrics"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/product"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/worker/session"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/worker/undeliverable"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/workerconfig"
)

// supervisor runs each flow of the configuration in force.
type supervisor struct {
	// run works on a flow until the context is done. It returns an error if it could not finish a message.
	run     func(ctx context.Context, c session.Config, changes <-chan session.Config) error
	options Options
	runners map[workerconfig.ID]*runner
	running sync.WaitGroup
	stop    context.CancelFunc

	mu   sync.Mutex
	errs []error
}

type runner struct {
	config session.Config
	// changes has the latest change until the runner takes it.
	changes chan session.Config
	stop    context.CancelFunc
}

func compile(config workerconfig.Config) (flows []session.Config) {
	for _, w := range config.Pipelines {
		flows = append(flows, deadletter.NewPipeline(w))
	}
	for _, w := range config.DelayedExchanges {
		flows = append(flows, delaying.NewExchange(w))
	}
	return flows
}

// follow puts a configuration in force. A refused element keeps its previous configuration if it has one.
func (s *supervisor) follow(ctx context.Context, config workerconfig.Config) {
	valid := compile(config)
	s.logRefused(config.Refused)
	for id, r := range s.runners {
		isWanted := func(c session.Config) bool { return c.ID() == id }
		isRefused := func(refused workerconfig.Refused) bool { return refused.ID == id || !refused.Identified() }
		switch {
		case slices.ContainsFunc(valid, isWanted):
		case slices.ContainsFunc(config.Refused, isRefused):
			valid = append(valid, r.config)
		default:
			r.stop()
			delete(s.runners, id)
		}
	}
	watched := make([]metrics.Config, len(valid))
	for i, c := range valid {
		watched[i] = c
	}
	s.options.Metrics.ConfigLoaded(watched, config.Refused)
	for _, c := range valid {
		if r, ok := s.runners[c.ID()]; ok {
			r.change(c)
		} else {
			s.runners[c.ID()] = s.start(ctx, c)
		}
	}
}

func (s *supervisor) logRefused(refused []workerconfig.Refused) {
	for _, r := range refused {
		consequence := "it is off"
		if _, runs := s.runners[r.ID]; runs {
			consequence = "its previous configuration stays in force"
		} else if !r.Identified() {
			consequence = "all that runs goes on, since it has no readable name"
		}
		s.options.Logger.Error("element of the configuration refused: "+consequence, "error", r.Err,
			"kind", r.ID.Kind, "name", r.ID.Name, "vhost", r.ID.Vhost)
	}
}

func (s *supervisor) start(ctx context.Context, c session.Config) *runner {
	own, stop := context.WithCancel(ctx)
	r := &runner{config: c, changes: make(chan session.Config, 1), stop: stop}
	s.running.Go(func() {
		defer stop()
		if err := s.run(own, c, r.changes); err != nil {
			s.ended(ctx, c, err)
		}
	})
	return r
}

func (s *supervisor) ended(ctx context.Context, c session.Config, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case product.IsOtherError(err) && ctx.Err() != nil:
		return // another runner with the same error has stopped all work
	case product.IsOtherError(err):
		s.stop()
	case ctx.Err() == nil:
		// This flow left the configuration, and the others go on.
		s.options.Logger.Error("work did not stop cleanly", "error", fmt.Errorf("%s: %w", c.ID(), err))
		return
	default:
		err = fmt.Errorf("%s: %w", c.ID(), err)
	}
	s.errs = append(s.errs, err)
}

func (s *supervisor) wait() error {
	s.running.Wait()
	return errors.Join(s.errs...)
}

// change hands a configuration over if it differs. It replaces a configuration that the runner has not taken yet.
func (r *runner) change(c session.Config) {
	if reflect.DeepEqual(r.config, c) {
		return
	}
	r.config = c
	select {
	case <-r.changes:
	default:
	}
	r.changes <- c // has room, since this is the only sender
}

// maxLooks is more than several workers have in flight.
const maxLooks = 1024

// search looks for messages that the broker cannot deliver.
type search struct {
	inbox undeliverable.Inbox
	// looks is the least number of other messages that a search passes before it gives up. A passed message can be at
	// the head again the next time, so the number doubles until a search succeeds.
	looks int
}

// take parks the messages that made the broker end the last session, and reports whether it found any. They are among
// the first messages of the inbox, and among is how many.
func (s *search) take(
	ctx context.Context, o Options, uri amqpconn.URI, flow session.Flow, among int, log *slog.Logger,
) bool {
	s.inbox.URI, s.inbox.Flow, s.inbox.Client = uri, flow, session.Client(flow.Config(), "undeliverable", o.Version)
	s.looks = min(max(s.looks, among), maxLooks)
	taken, err := s.inbox.Take(ctx, s.looks)
	if errors.Is(err, undeliverable.ErrLeftToTheBroker) {
		log.Warn("a message was left to the broker, which dead-letters it from the inbox", "queue", flow.Config().Inbox(), "error", err)
		s.looks = 1
		return true
	}
	if err != nil {
		log.Warn("the broker cannot deliver the message at the head of the inbox, and the worker cannot park it over AMQP 1.0: trying again",
			"queue", flow.Config().Inbox(), "error", err)
	}
	s.looks *= 2
	if taken > 0 {
		s.looks = 1
	}
	return taken > 0
}
