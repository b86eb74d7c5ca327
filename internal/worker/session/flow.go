package session

import (
	"fmt"
	"log/slog"
	"math/bits"
	"runtime/debug"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/metrics"
)

// Config is the configuration of a flow.
type Config interface {
	metrics.Config
	// Inbox is the queue that the flow consumes.
	Inbox() string
	// Last is the exchange, and its queue, where the broker puts a message that the worker cannot publish.
	Last() (exchange, queue string)
	// PublishIDHeader names the header that identifies a publish.
	PublishIDHeader() string
}

// Flow holds the differences between a pipeline and a delayed exchange. It outlives sessions. During a session, only
// the session's loop must use the flow.
type Flow interface {
	// Config is the configuration in force. Configure replaces it by another of its kind, and forgets all that
	// belongs to the old configuration or the last session.
	Config() Config
	Configure(c Config)
	// Watch returns the flow's metrics.
	Watch() *metrics.Flow
	// Park builds the replacement for a message that the broker cannot deliver, for the reason why. If a queue refuses
	// the first one, the second one is published. Park is used between sessions.
	Park(d *amqp.Delivery, why string, stamp deadletter.Stamp) (first, second Parked, err error)
	// Flush logs the messages that have no line yet. It is called after the last session.
	Flush()

	// judge decides what happens to a delivery. It can panic: then unjudged decides.
	judge(d *amqp.Delivery, now time.Time) verdict
	unjudged(d *amqp.Delivery) verdict
	// undeliverable decides about a delivery that differs from the broker's message, for the reason why.
	undeliverable(d *amqp.Delivery, why string) verdict
	// setsAside reports whether a message goes to the refused queue if a queue behind the exchange refuses it.
	setsAside(exchange string) bool

	// shut notes that the broker closed the channel to an exchange. It reports whether messages that wait for the
	// exchange count as returned.
	shut(exchange string, reason *amqp.Error) (forgo bool)
	// observe learns how time passes. It returns the lanes whose messages wait too long for answers, and have another way.
	observe(ls lanes, a alarm, now time.Time) (silent []*lane)
}

// common is what all flows have.
type common[C Config] struct {
	config   C
	watch    *metrics.Flow
	log      *slog.Logger
	parked   parkedLog
	refusals refusals
}

func newCommon[C Config](config C, watch *metrics.Flow, log *slog.Logger) common[C] {
	return common[C]{config: config, watch: watch, log: log, parked: parkedLog{log: log}, refusals: refusals{log: log}}
}

// Config implements [Flow].
func (f *common[C]) Config() Config { return f.config }

// Watch implements [Flow].
func (f *common[C]) Watch() *metrics.Flow { return f.watch }

// Configure implements [Flow].
func (f *common[C]) Configure(c Config) {
	f.config = c.(C) //nolint:forcetypeassert // the kind is part of a flow's id
}

// Flush implements [Flow].
func (f *common[C]) Flush() { f.parked.flush() }

// verdict is a flow's decision about one message. It knows how to build the message, and what comes next if the broker
// refuses it.
type verdict interface {
	// aim returns where the message goes now, and whether it is kept for a while. It can change the verdict.
	aim(m *message, a alarm, now time.Time) (route deadletter.Route, kept bool)
	// build returns what to publish there. It can panic: then unbuilt reports whether another version can be built.
	build(d *amqp.Delivery, stamp deadletter.Stamp) (amqp.Publishing, error)
	unbuilt() (again bool)

	// returned and nacked learn that the broker did not take the message. They change the verdict to the next one.
	returned(m *message) step
	nacked(m *message) step
	// accepted learns that the message is acknowledged, and whether the log gets a line for each message. left learns
	// that the message is left to the broker.
	accepted(m *message, verbose bool)
	left(m *message)
}

// step is the session's reaction to a message that the broker did not take.
type step int

const (
	// stepPublish publishes the message by its new verdict.
	stepPublish step = iota
	// stepSetAside does the same. It follows the refusal of one queue out of several behind the exchange.
	stepSetAside
	// stepKeep keeps the message for a while. stepRejudge also judges it again.
	stepKeep
	stepRejudge
	// stepUnrouted keeps the message because the exchange has no queue for it. After stepProbe, one message at a time
	// tries the exchange.
	stepUnrouted
	stepProbe
	// stepImpede keeps the message because the only queue of the exchange refused it.
	stepImpede
	// stepRefused keeps the message because a queue of the pipeline refused it. The channel can be the cause.
	stepRefused
)

// proceed takes the next step with a message that the broker did not take.
func (s *Session) proceed(l *lane, m *message, next step) error {
	now := time.Now()
	switch next {
	case stepPublish:
		return s.publish(m)
	case stepSetAside:
		m.refused = true
		l.outdateRarely(now)
		return s.publish(m)
	case stepRejudge:
		m.verdict = s.judge(m)
	case stepProbe:
		l.nextProbe = now.Add(unboundProbe)
		s.unrouted(l, m)
	case stepUnrouted:
		s.unrouted(l, m)
	case stepImpede:
		if l.condition == available {
			s.Log.Warn(deferredFull, "exchange", l.exchange)
		}
		l.condition, l.nextProbe = full, now.Add(unboundProbe)
		l.outdate()
	case stepRefused:
		l.outdateRarely(now)
	case stepKeep:
	}
	s.keep(m)
	return nil
}

// Parked is the replacement for a message that the broker cannot deliver.
type Parked struct {
	Route      deadletter.Route
	Publishing amqp.Publishing
	// Done counts and logs the message.
	Done func()
}

// message is a delivery that is not acknowledged yet.
type message struct {
	delivery amqp.Delivery
	verdict  verdict
	// diedAt is when the broker dead-lettered the message. It is zero if the time is not known.
	diedAt time.Time
	// judgedBy is the configuration that the verdict comes from.
	judgedBy Config

	// undecodable says why the headers, and thus the verdict, are not known.
	undecodable error
	// unreadable says that the broker could not dead-letter the message. If a copy replaces the message, replaced says
	// why.
	unreadable bool
	replaced   error
	// unpublishable says why the message is left to the broker.
	unpublishable error
	// panicked says that the worker panicked over the message, and that the log reports it.
	panicked bool

	// route is where the message goes. sent is its latest publish.
	route deadletter.Route
	sent  publish

	// refused says that one queue has refused the message, and that another queue can have it. A second publish can
	// duplicate it there.
	refused bool

	// deferrals counts the deferred publishes in a row. dueAt is the time of the next attempt.
	deferrals int
	dueAt     time.Time
}

// publish is one publish of a message.
type publish struct {
	id           string
	tag          uint64 // 0 if the channel was closed
	at           time.Time
	confirmation interface{ Acked() bool }
}

// staysRefused reports whether a message that found no refused queue tries only that queue again. Another publish to
// the other queues duplicates the message in each queue that has it. So the message goes to them rarely: each time
// after twice as many attempts.
func (m *message) staysRefused() bool { return bits.OnesCount(uint(m.deferrals+1)) > 1 }

// accepted reports whether the broker has confirmed that it keeps the message. It asks the deferred confirmation, which
// has the broker's own answer. The library's notification can be wrong: if a nack overtakes an earlier confirm and an
// ack of multiple messages follows, the nack becomes an ack.
func (m *message) accepted() bool { return m.sent.confirmation.Acked() }

// judge decides what happens to a delivery. It parks a delivery that it cannot judge.
func (s *Session) judge(m *message) (v verdict) {
	m.judgedBy = s.Flow.Config()
	judge := func() { v = s.Flow.judge(&m.delivery, time.Now()) }
	if m.replaced != nil {
		judge = func() { v = s.Flow.undeliverable(&m.delivery, m.replaced.Error()) }
	}
	if err := s.survive(m, judge); err != nil {
		return s.Flow.unjudged(&m.delivery)
	}
	return v
}

// survive turns a panic over one message into an error. The end of the process would interrupt all messages in flight,
// again and again.
func (s *Session) survive(m *message, handle func()) (err error) {
	defer func() {
		fault := recover()
		if fault == nil {
			return
		}
		err = fmt.Errorf("panic: %v", fault)
		if !m.panicked {
			s.Log.Error("internal error (panic); message parked",
				"panic", fault, "message_id", m.delivery.MessageId, "stack", string(debug.Stack()))
		}
		m.panicked = true
	}()
	handle()
	return nil
}

// reconfigure puts a new configuration of the session's flow in force. A message that was sent to the broker keeps its
// verdict. If the broker refuses it, it is judged again before the next publish, as after another delivery.
func (s *Session) reconfigure(c Config) {
	s.Flow.Configure(c)
	s.Log.Info("configuration changed")
}

// rejudged judges a message again if the configuration has changed, and reports whether it has.
func (s *Session) rejudged(m *message) bool {
	if m.judgedBy == s.Flow.Config() {
		return false
	}
	m.verdict = s.judge(m)
	return true
}
