// Package session is one life of the connections of a pipeline or a delayed exchange. It consumes the inbox and
// publishes every message to where package deadletter or delaying decides. It acknowledges a message only after the
// broker has confirmed that publish.
//
// One goroutine runs the loop and owns the whole state. The parts of the state are the inbox, a lane per target, the
// unacknowledged backlog, and rejections. A part knows only itself and is told the time. The session handles
// everything that concerns several parts. A [Flow] holds the differences between a pipeline and a delayed exchange. It
// decides about a message. If the broker refuses the message, the flow's verdict names the session's next step.
package session

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/metrics"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/product"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/rules"
)

// Settings are the parameters of a session.
type Settings struct {
	Flow Flow
	// Patience is shared by the flow's sessions.
	Patience *Patience
	// Changes are later configurations of the same flow.
	Changes <-chan Config
	// Prefetch is how many messages are in flight at a time, at least 1.
	Prefetch int
	// Careful says that the last session ended over a message in flight, or while it searched for one. All those
	// messages are at the head of the inbox, and this session handles them one by one.
	Careful bool
	// DrainTimeout bounds how long a stopping session works on the messages in flight.
	DrainTimeout time.Duration
	// AckPatience bounds how long a stopping session waits until its last acknowledgements have arrived.
	AckPatience time.Duration
	// Version is shown to the broker.
	Version string
	Log     *slog.Logger
	// Unfamiliar runs when a broker's name is not RabbitMQ, once for all sessions.
	Unfamiliar *sync.Once
}

// Session is one life of a flow's connections. It ends as a whole when a connection or the inbox's channel closes, or
// when a consumer is cancelled. The broker then delivers all unacknowledged messages again.
//
// One goroutine runs the loop and owns all fields below.
type Session struct {
	Settings
	watch   *metrics.Flow
	verbose bool // the log gets a line per message
	connections
	// completions are the final steps of calls that the loop did not wait for.
	completions chan func() error

	inbox      inbox
	lanes      lanes
	rejections rejections
	backlog    backlog
	alarm      alarm
	ids        publishIDs
	// oldest is when the oldest delivery since the last report was dead-lettered.
	oldest time.Time
	ending
}

// connections are a session's two connections. The lanes have one of their own: a broker that blocks publishers stops reading from
// their connections, and acknowledgements must get through.
type connections struct {
	consuming  amqpconn.Bounded
	publishing *amqp.Connection
	// consumingClosed and publishingClosed have the broker's reason for closing a connection.
	consumingClosed, publishingClosed chan *amqp.Error
	// end closes ended when the session is closed.
	ended <-chan struct{}
	end   context.CancelFunc
}

// publishIDs are unique. They have a prefix and a number.
type publishIDs struct {
	prefix string
	count  uint64
}

func (p *publishIDs) next() string {
	p.count++
	return p.prefix + strconv.FormatUint(p.count, 36)
}

// Open connects and begins to consume. The context bounds the opening, not the session.
func Open(ctx context.Context, uri amqpconn.URI, settings Settings) (*Session, error) {
	s := &Session{
		Settings: settings,
		verbose:  settings.Log.Enabled(ctx, slog.LevelDebug),
		watch:    settings.Flow.Watch(),
		backlog:  backlog{timer: time.NewTimer(0)},
		ids:      publishIDs{prefix: rand.Text()[:12] + "-"},

		completions: make(chan func() error),
		ending:      ending{acked: make(chan error, 1)},
	}
	living, end := context.WithCancel(context.WithoutCancel(ctx)) // lives longer than the opening
	s.ended, s.end = living.Done(), end
	settings.Flow.Configure(settings.Flow.Config()) // forgets what it learned about another session
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
	client := Client(config, "publish", s.Version)
	if s.publishing, err = amqpconn.Connect(ctx, uri, config.ID().Vhost, client); err != nil {
		return err
	}
	if name := amqpconn.Product(s.publishing); name != product.RabbitMQ {
		s.Unfamiliar.Do(func() { s.Log.Warn(product.Unfamiliar(name)) })
	}
	s.publishingClosed = s.publishing.NotifyClose(make(chan *amqp.Error, 1))
	s.alarm.notices = s.publishing.NotifyBlocked(make(chan amqp.Blocking, 16))
	// A flow also publishes to the default exchange, and one to the refused queue or the unrouted queue alone.
	most, err := lanesWithin(len(config.Exchanges())+2, int(s.publishing.Config.ChannelMax))
	if err != nil {
		return err
	}
	s.lanes = lanes{
		all: map[address]*lane{}, shut: map[string]bool{}, most: most,
		sweep: time.NewTimer(tick), answers: make(chan answer, min(s.Prefetch, mostAnswers)),
		open: func() (confirmChannel, error) {
			channel, err := amqpconn.OpenConfirming(living, s.publishing, 0)
			if err != nil {
				return confirmChannel{}, err
			}
			return confirmChannel{Confirming: channel, confirms: channel.NotifyPublish(make(chan amqp.Confirmation, s.Prefetch+mostUnheard))}, nil
		},
	}
	client = Client(config, "consume", s.Version)
	if s.consuming, err = amqpconn.ConnectBounded(ctx, uri, config.ID().Vhost, client, windowBytes(s.Prefetch)); err != nil {
		return err
	}
	s.consumingClosed = s.consuming.NotifyClose(make(chan *amqp.Error, 1))
	s.watch.Enter(metrics.Connected)
	// The consuming connection is no place for this look, since bodies can delay the answer.
	s.rejections.look = func(exchange, queue string) error {
		_, err := amqpconn.LookFor(living, s.publishing, queue, exchange)
		return err
	}
	inbox := config.Inbox()
	s.consumers = func() (int, error) {
		// A broker that blocks publishers does not answer on their connection.
		queue, err := amqpconn.LookFor(living, s.consuming.Connection, inbox)
		return queue.Consumers, err
	}
	s.inbox, err = openInbox(ctx, s.consuming, inbox, s.Prefetch, s.ramp())
	return err
}

// ramp returns how many messages are finished one by one.
func (s *Session) ramp() int {
	if s.Careful {
		return max(rampAfter, s.Prefetch)
	}
	return rampAfter
}

// complete hands the rest of a call to the loop, unless the session is closed.
func (s *Session) complete(rest func() error) {
	select {
	case s.completions <- rest:
	case <-s.ended:
	}
}

// Close ends the connections and their channels.
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

// Client identifies a connection. The management UI shows the purpose and the version.
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
