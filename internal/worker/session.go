package worker

import (
	"context"
	"crypto/rand"
	"log/slog"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/metrics"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
)

// stableAfter is how long a session has to last to count as a success.
const stableAfter = time.Minute

// session is one life of a pipeline's connections. It ends as a whole when one of them closes, or the
// inbox's channel does, or a consumer is cancelled: what is not acknowledged then is delivered again.
//
// One goroutine runs the loop and owns all that is below.
type session struct {
	pipeline *deadletter.Pipeline
	window   int
	log      *slog.Logger
	verbose  bool // the log takes a line per message
	watch    *metrics.Pipeline

	// changes are later configurations of the same pipeline.
	changes      <-chan *deadletter.Pipeline
	drainTimeout time.Duration
	// detours outlive the session.
	detours detours
	// refusedSince is when the queue of a delay began to refuse messages.
	refusedSince map[time.Duration]time.Time

	// Publishing has a connection of its own: a broker that blocks publishers stops reading from
	// their connections, and acknowledgements have to get through.
	consuming, publishing *amqp.Connection
	inbox                 *amqp.Channel
	inboxClosed           chan *amqp.Error
	first, rest           <-chan amqp.Delivery // the two consumers, rest is nil during the ramp
	ramp                  ramp
	// completions are what is left to do after calls that the loop did not wait for.
	completions chan func() error
	blockings   chan amqp.Blocking

	// Each exchange has a channel of its own, so that one that is missing, or whose target has no
	// majority, does not silence the others. Back is for the return exchange, rescue for the default
	// one.
	retry, back, failed, rescue *publisher

	// lookForFailed is an error if the failed exchange or its queue is missing.
	lookForFailed func(pipeline.Names) error

	look       failedLook
	rejections []rejection // that wait for a look

	held      heldMessages
	heldTimer *time.Timer
	inFlight  int
	// oldest is when the oldest delivery since the last report was dead-lettered.
	oldest time.Time

	idPrefix string
	idCount  uint64

	blocked     bool
	unblockedAt time.Time
	draining    bool
	late        bool // to finish what is in flight
	openedAt    time.Time
}

// openSession connects and begins to consume. The context bounds the opening, not the session.
func openSession(ctx context.Context, uri amqpconn.URI, p *deadletter.Pipeline, o Options, log *slog.Logger, watch *metrics.Pipeline) (*session, error) {
	s := &session{
		pipeline:  p,
		window:    o.Prefetch,
		log:       log,
		verbose:   log.Enabled(ctx, slog.LevelDebug),
		watch:     watch,
		heldTimer: time.NewTimer(0),
		openedAt:  time.Now(),

		refusedSince: map[time.Duration]time.Time{},
		idPrefix:     rand.Text()[:12] + "-",
	}
	if err := s.open(ctx, uri, o.Version); err != nil {
		s.watch.Enter(metrics.Disconnected)
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *session) open(ctx context.Context, uri amqpconn.URI, version string) (err error) {
	if s.publishing, err = connect(ctx, uri, s.pipeline, "publish", version); err != nil {
		return err
	}
	s.blockings = s.publishing.NotifyBlocked(make(chan amqp.Blocking, 16))
	names := s.pipeline.Names
	for exchange, p := range map[string]**publisher{
		names.RetryExchange(): &s.retry, names.ReturnExchange(): &s.back, names.FailedExchange(): &s.failed, "": &s.rescue,
	} {
		if *p, err = openPublisher(ctx, s.publishing, exchange, s.window); err != nil {
			return err
		}
		(*p).watch = s.watch.Exchange(exchange)
	}
	s.completions = make(chan func() error, len(s.publishers())+3) // each has one at a time, and so have the ramp, the drain and the look at the failed queue
	if s.consuming, err = connect(ctx, uri, s.pipeline, "consume", version); err != nil {
		return err
	}
	s.watch.Enter(metrics.Connected)
	looking := context.WithoutCancel(ctx) // longer than the opening
	s.lookForFailed = func(names pipeline.Names) error { return lookForFailed(looking, s.consuming, names) }
	return s.consume(ctx)
}

func (s *session) publishers() [4]*publisher {
	return [...]*publisher{s.retry, s.back, s.failed, s.rescue}
}

func (s *session) consume(ctx context.Context) (err error) {
	if s.inbox, err = amqpconn.OpenChannel(ctx, s.consuming); err != nil {
		return err
	}
	s.inboxClosed = s.inbox.NotifyClose(make(chan *amqp.Error, 1))
	s.first, err = s.subscribe(ctx, firstTag, 1)
	return err
}

// subscribe begins to consume the inbox. The prefetch is that of this consumer alone.
func (s *session) subscribe(ctx context.Context, tag string, prefetch int) (<-chan amqp.Delivery, error) {
	queue := s.pipeline.Names.Inbox()
	return amqpconn.Await(ctx, "consume "+queue, func() (<-chan amqp.Delivery, error) {
		if err := s.inbox.Qos(prefetch, 0, false); err != nil {
			return nil, err
		}
		return s.inbox.Consume(queue, tag, false, false, false, false, nil)
	}, func(<-chan amqp.Delivery) {})
}

// stable tells whether the session lasted, so that the next one may come soon. Each session that ends
// counts against the delivery limit of what was in flight: a pipeline that is broken must not use the
// limit up by connecting again and again.
func (s *session) stable() bool { return time.Since(s.openedAt) > stableAfter }

// close ends the connections, and with them the channels.
func (s *session) close() {
	var closing sync.WaitGroup
	for _, conn := range []*amqp.Connection{s.consuming, s.publishing} {
		if conn != nil {
			closing.Go(func() { amqpconn.HangUp(conn) })
		}
	}
	closing.Wait()
}
