// Package session is one life of the connections of a pipeline or a delayed exchange: it consumes the inbox, publishes
// every message to where package deadletter or delaying decides, and acknowledges it only after the broker has confirmed that.
//
// One goroutine runs the loop and owns the whole state, which is divided into parts: the inbox, a publisher per exchange, the
// unacknowledged backlog, and rejections. A part knows only itself and is told the time. What concerns several of them is the
// session's. What differs between a pipeline and a delayed exchange is a [Flow]: it decides about a message, and its verdict says
// which step the session takes if the broker does not take that message.
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
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/metrics"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/product"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/rules"
)

// stableAfter is how long a session has to last to count as a success.
const stableAfter = time.Minute

// channelsFor is how many channels the publishing connection needs: one for each exchange of the flow, and two for what goes to the
// default exchange, the refused queue or the unrouted queue alone; as many again, since a renewed channel stays open for a while; one
// to look for the last queue; and one for each address that does not answer.
func channelsFor(exchanges int) int { return 2*(exchanges+2) + 1 + mostSilent }

// Settings are what a session is opened with.
type Settings struct {
	Flow Flow
	// Silent is what the sessions of the flow know of queues that do not answer.
	Silent *Silent
	// Changes are later configurations of the same flow.
	Changes <-chan Config
	// Prefetch is how many messages are in flight at a time, at least 1.
	Prefetch int
	// Careful says that the session before ended over one of the messages that were in flight, or while it was looking for
	// one, and that all of them are at the head of the inbox: they are handled one by one.
	Careful bool
	// DrainTimeout bounds how long what is in flight is finished.
	DrainTimeout time.Duration
	// AckPatience bounds how long a session that stops waits for the last acknowledgements to arrive.
	AckPatience time.Duration
	// Version is shown to the broker.
	Version string
	Log     *slog.Logger
	// Unfamiliar is done once a broker has another name than RabbitMQ.
	Unfamiliar *sync.Once
}

// Session is one life of a flow's connections. It ends as a whole when one of them closes, or the
// inbox's channel does, or a consumer is cancelled: what is not acknowledged then is delivered again.
//
// One goroutine runs the loop and owns all that is below.
type Session struct {
	Settings
	watch    *metrics.Flow
	verbose  bool // the log takes a line per message
	openedAt time.Time
	// ended is closed when the session is, and end closes it.
	ended <-chan struct{}
	end   context.CancelFunc

	// Publishing has a connection of its own: a broker that blocks publishers stops reading from
	// their connections, and acknowledgements have to get through.
	consuming  amqpconn.Bounded
	publishing *amqp.Connection
	// consumingClosed has why the broker closed that connection.
	consumingClosed chan *amqp.Error
	// completions are what is left to do after calls that the loop did not wait for.
	completions chan func() error

	inbox      inbox
	publishers publishers
	answers    chan answer
	rejections rejections
	backlog    backlog
	alarm      alarm
	ids        publishIDs
	silence    silence

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
		watch:    settings.Flow.Watch(),
		backlog:  backlog{timer: time.NewTimer(0)},
		ids:      publishIDs{prefix: rand.Text()[:12] + "-"},

		silence:     silence{Silent: settings.Silent, timer: time.NewTimer(tick)},
		completions: make(chan func() error),
		answers:     make(chan answer, min(settings.Prefetch, mostAnswers)),
	}
	living, end := context.WithCancel(context.WithoutCancel(ctx)) // longer than the opening
	s.ended, s.end = living.Done(), end
	settings.Flow.Configure(settings.Flow.Config()) // what it found out was about another session
	if err := s.open(ctx, living, uri); err != nil {
		s.watch.Enter(metrics.Disconnected)
		s.Close()
		return nil, err
	}
	return s, nil
}

// open connects within the first context, and works within the second one.
func (s *Session) open(ctx, living context.Context, uri amqpconn.URI) (err error) {
	config := s.Flow.Config()
	if s.publishing, err = Connect(ctx, uri, config, "publish", s.Version); err != nil {
		return err
	}
	if name := amqpconn.Product(s.publishing); name != product.RabbitMQ {
		s.Unfamiliar.Do(func() { s.Log.Warn(product.Unfamiliar(name)) })
	}
	needed := channelsFor(len(config.Exchanges()))
	if allowed := int(s.publishing.Config.ChannelMax); allowed > 0 && allowed < needed {
		return fmt.Errorf("the broker allows %d channels per connection, and the worker needs %d: raise channel_max", allowed, needed)
	}
	s.alarm.notices = s.publishing.NotifyBlocked(make(chan amqp.Blocking, 16))
	s.publishers = publishers{all: map[string]*publisher{}, open: func() (confirmChannel, error) {
		return openConfirmChannel(living, s.publishing, s.Prefetch)
	}}
	client, limit := Client(config, "consume", s.Version), WindowBytes(s.Prefetch)
	if s.consuming, err = amqpconn.ConnectBounded(ctx, uri, config.ID().Vhost, client, limit); err != nil {
		return err
	}
	s.consumingClosed = s.consuming.NotifyClose(make(chan *amqp.Error, 1))
	s.watch.Enter(metrics.Connected)
	// Not where bodies can be in the way of the answer.
	s.rejections.look = func(exchange, queue string) error {
		_, err := amqpconn.LookFor(living, s.publishing, queue, exchange)
		return err
	}
	inbox := config.Inbox()
	s.acks = acks{arrived: make(chan error, 1), count: func() (int, error) {
		// A broker that blocks publishers does not answer on their connection.
		queue, err := amqpconn.LookFor(living, s.consuming.Connection, inbox)
		return queue.Consumers, err
	}}
	s.inbox, err = openInbox(ctx, s.consuming, inbox, s.Prefetch, s.ramp())
	return err
}

// Stable reports whether the session lasted, so that the next one can come soon. Each session that ends
// counts against the delivery limit of what was in flight: a flow that is broken must not use the
// limit up by connecting again and again.
func (s *Session) Stable() bool { return time.Since(s.openedAt) > stableAfter }

// ramp is how many messages are finished one by one.
func (s *Session) ramp() int {
	if s.Careful {
		return max(rampAfter, s.Prefetch)
	}
	return rampAfter
}

// complete has the loop finish what it did not wait for, unless the session is over.
func (s *Session) complete(rest func() error) {
	select {
	case s.completions <- rest:
	case <-s.ended:
	}
}

// Close ends the connections, and with them the channels.
func (s *Session) Close() {
	s.end()
	var closing sync.WaitGroup
	if s.consuming.Connection != nil {
		closing.Go(s.consuming.HangUp)
	}
	if s.publishing != nil {
		closing.Go(func() { amqpconn.HangUp(s.publishing) })
	}
	closing.Wait()
}

// Connect opens a connection to the flow's vhost.
func Connect(ctx context.Context, uri amqpconn.URI, c Config, purpose, version string) (*amqp.Connection, error) {
	return amqpconn.Connect(ctx, uri, c.ID().Vhost, Client(c, purpose, version))
}

// Client is what a connection says of itself. Purpose and version are shown in the management UI.
func Client(c Config, purpose, version string) amqpconn.Client {
	name := c.ID().Name
	if c.ID().Kind == rules.DelayedExchange {
		name += " (delayed exchange)"
	}
	return amqpconn.Client{
		Name:    fmt.Sprintf("rabbitmq-retry %s %s (%s)", name, purpose, version),
		Product: "rabbitmq-retry",
		Version: version,
	}
}
