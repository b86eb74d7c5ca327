package session

import (
	"context"
	"crypto/rand"
	"fmt"
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

// channels is how many the publishing connection has: the publishers', and one to look for the failed queue.
const channels = 6

// Settings are what a session is opened with.
type Settings struct {
	Pipeline *deadletter.Pipeline
	// Changes are later configurations of the same pipeline.
	Changes <-chan *deadletter.Pipeline
	// Prefetch is how many messages are in flight at a time, at least 1.
	Prefetch int
	// Careful says that the session before ended over one of the messages that were in flight, or while it was looking for
	// one, and that all of them are at the head of the inbox: they are handled one by one.
	Careful bool
	// DrainTimeout bounds how long what is in flight is finished.
	DrainTimeout time.Duration
	// Avoided delays outlive the session. It may change them.
	Avoided AvoidedDelays
	// Parking outlives the session, too.
	Parking *Parking
	// UnboundTimeout is how long messages are kept because no delay is bound.
	UnboundTimeout time.Duration
	// Version is shown to the broker.
	Version string
	Log     *slog.Logger
	Watch   *metrics.Pipeline
	Judge   Judge
}

// Session is one life of a pipeline's connections. It ends as a whole when one of them closes, or the
// inbox's channel does, or a consumer is cancelled: what is not acknowledged then is delivered again.
//
// One goroutine runs the loop and owns all that is below.
type Session struct {
	Settings
	verbose  bool // the log takes a line per message
	openedAt time.Time

	// Publishing has a connection of its own: a broker that blocks publishers stops reading from
	// their connections, and acknowledgements have to get through.
	consuming  amqpconn.Bounded
	publishing *amqp.Connection
	// consumingClosed has why the broker closed that connection.
	consumingClosed chan *amqp.Error
	// completions are what is left to do after calls that the loop did not wait for.
	completions chan func() error

	intake intake
	publishers
	detours    detours
	unbound    unbound
	rejections rejections
	backlog    backlog
	alarm      alarm
	ids        publishIDs

	// oldest is when the oldest delivery since the last report was dead-lettered.
	oldest   time.Time
	draining bool
	// drainedBy is when what is in flight has to be finished.
	drainedBy time.Time
	late      bool // to finish what is in flight
	acks      acks
}

// Open connects and begins to consume. The context bounds the opening, not the session.
func Open(ctx context.Context, uri amqpconn.URI, settings Settings) (*Session, error) {
	s := &Session{
		Settings: settings,
		verbose:  settings.Log.Enabled(ctx, slog.LevelDebug),
		openedAt: time.Now(),
		detours:  newDetours(settings.Avoided, settings.Log),
		unbound:  unbound{timeout: settings.UnboundTimeout, log: settings.Log},
		backlog:  backlog{timer: time.NewTimer(0)},
		ids:      publishIDs{prefix: rand.Text()[:12] + "-"},
	}
	if err := s.open(ctx, uri); err != nil {
		s.Watch.Enter(metrics.Disconnected)
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Session) open(ctx context.Context, uri amqpconn.URI) (err error) {
	if s.publishing, err = Connect(ctx, uri, s.Pipeline, "publish", s.Version); err != nil {
		return err
	}
	if allowed := s.publishing.Config.ChannelMax; allowed > 0 && allowed < channels {
		return fmt.Errorf("the broker allows %d channels per connection, and the worker needs %d: raise channel_max", allowed, channels)
	}
	s.alarm.notices = s.publishing.NotifyBlocked(make(chan amqp.Blocking, 16))
	if s.publishers, err = openPublishers(ctx, s.publishing, s.Pipeline.Names, s.Prefetch, s.Watch); err != nil {
		return err
	}
	// Each publisher has one at a time, and so have the intake, the drain and the look at the failed queue.
	s.completions = make(chan func() error, len(s.all())+3)
	client, limit := Client(s.Pipeline, "consume", s.Version), WindowBytes(s.Prefetch)
	if s.consuming, err = amqpconn.ConnectBounded(ctx, uri, s.Pipeline.Vhost, client, limit); err != nil {
		return err
	}
	s.consumingClosed = s.consuming.NotifyClose(make(chan *amqp.Error, 1))
	s.Watch.Enter(metrics.Connected)
	looking := context.WithoutCancel(ctx) // longer than the opening
	// Not where bodies may be in the way of the answer.
	s.rejections.look = func(names pipeline.Names) error { return lookForFailed(looking, s.publishing, names) }
	inbox := s.Pipeline.Names.Inbox()
	s.acks = acks{others: make(chan int, 1), count: func(until time.Time) (int, error) {
		return countConsumers(looking, s.consuming, inbox, until)
	}}
	s.intake, err = openIntake(ctx, s.consuming, inbox, s.Prefetch, s.ramp())
	return err
}

// Stable reports whether the session lasted, so that the next one may come soon. Each session that ends
// counts against the delivery limit of what was in flight: a pipeline that is broken must not use the
// limit up by connecting again and again.
func (s *Session) Stable() bool { return time.Since(s.openedAt) > stableAfter }

// ramp is how many messages are finished one by one.
func (s *Session) ramp() int {
	if s.Careful {
		return max(rampAfter, s.Prefetch)
	}
	return rampAfter
}

// Close ends the connections, and with them the channels.
func (s *Session) Close() {
	var closing sync.WaitGroup
	if s.consuming.Connection != nil {
		closing.Go(s.consuming.HangUp)
	}
	if s.publishing != nil {
		closing.Go(func() { amqpconn.HangUp(s.publishing) })
	}
	closing.Wait()
}

// Connect opens a connection to the pipeline's vhost.
func Connect(ctx context.Context, uri amqpconn.URI, p *deadletter.Pipeline, purpose, version string) (*amqp.Connection, error) {
	return amqpconn.Connect(ctx, uri, p.Vhost, Client(p, purpose, version))
}

// Client is what a connection says of itself. Purpose and version are shown in the management UI.
func Client(p *deadletter.Pipeline, purpose, version string) amqpconn.Client {
	return amqpconn.Client{
		Name:    fmt.Sprintf("rabbitmq-retry %s %s (%s)", p.Names, purpose, version),
		Product: "rabbitmq-retry",
		Version: version,
	}
}
