package worker

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
)

const (
	// nackTimeout is how long the broker may refuse everything before the session is renewed.
	nackTimeout = 5 * time.Second
	// confirmTimeout is longer than the 65 s after which a broker gives up on a queue that has no
	// majority of its members online, so that its nack comes first.
	confirmTimeout = 75 * time.Second
	// drainTimeout bounds how long a stopping session finishes what is in flight. Orchestrators kill
	// after 30 s.
	drainTimeout = 25 * time.Second
	// settleTime is for the broker to pass the last acknowledgements on to the inbox. RabbitMQ 3.10
	// drops those that its channel still holds for a quorum queue when the channel closes, and
	// delivers the messages again.
	settleTime = 500 * time.Millisecond
	// tick is how often a session looks whether the broker has stalled.
	tick = time.Second

	// stableAfter is how long a session has to last to count as a success.
	stableAfter = time.Minute

	consumerTag = "rabbitmq-retry"
)

// session is one life of a pipeline's connections. Any channel or connection that closes, and any
// consumer that is cancelled, ends it as a whole: what is not acknowledged then is delivered again.
//
// One goroutine runs the loop and owns all that is below.
type session struct {
	pipeline *deadletter.Pipeline
	username string
	window   int
	log      *slog.Logger

	// Publishing has a connection of its own: a broker that blocks publishers stops reading from
	// their connections, and acknowledgements have to get through.
	consuming, publishing *amqp.Connection
	inbox                 *amqp.Channel
	inboxClosed           chan *amqp.Error
	deliveries            <-chan amqp.Delivery
	blockings             chan amqp.Blocking

	// Retried and failed messages have channels of their own, so that a target without a majority
	// does not silence the other. Rescues have theirs because the broker closes it when the worker
	// may not publish to the default exchange; it is nil until it is needed.
	retry, failed, rescue *publisher

	held      heldMessages
	heldTimer *time.Timer
	inFlight  int

	idPrefix string
	idCount  uint64

	blocked     bool
	unblockedAt time.Time
	draining    bool
	openedAt    time.Time
}

// openSession connects and begins to consume. The context bounds the opening, not the session.
func openSession(ctx context.Context, uri URI, p *deadletter.Pipeline, window int, log *slog.Logger) (*session, error) {
	s := &session{
		pipeline:  p,
		username:  uri.username,
		window:    window,
		log:       log,
		heldTimer: time.NewTimer(0),
		openedAt:  time.Now(),
		idPrefix:  rand.Text()[:12] + "-",
	}
	if err := s.open(ctx, uri); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *session) open(ctx context.Context, uri URI) (err error) {
	if s.publishing, err = connect(ctx, uri, s.pipeline, "publish"); err != nil {
		return err
	}
	s.blockings = s.publishing.NotifyBlocked(make(chan amqp.Blocking, 16))
	if s.retry, err = openPublisher(ctx, s.publishing, s.window); err != nil {
		return err
	}
	if s.failed, err = openPublisher(ctx, s.publishing, s.window); err != nil {
		return err
	}
	if s.consuming, err = connect(ctx, uri, s.pipeline, "consume"); err != nil {
		return err
	}
	return s.consume(ctx)
}

func (s *session) consume(ctx context.Context) (err error) {
	if s.inbox, err = openChannel(ctx, s.consuming); err != nil {
		return err
	}
	s.inboxClosed = s.inbox.NotifyClose(make(chan *amqp.Error, 1))
	queue := s.pipeline.Names.Inbox()
	s.deliveries, err = await(ctx, "consume "+queue, func() (<-chan amqp.Delivery, error) {
		if err := s.inbox.Qos(s.window, 0, false); err != nil {
			return nil, err
		}
		return s.inbox.Consume(queue, consumerTag, false, false, false, false, nil)
	}, func(<-chan amqp.Delivery) {})
	return err
}

// stable tells whether the session lasted, so that the next one may come soon. Each session that ends
// counts against the delivery limit of what was in flight: a pipeline that is broken must not use the
// limit up by connecting again and again.
func (s *session) stable() bool { return time.Since(s.openedAt) > stableAfter }

// close ends the connections, and with them the channels.
func (s *session) close() {
	for _, conn := range []*amqp.Connection{s.consuming, s.publishing} {
		if conn != nil {
			hangUp(conn)
		}
	}
}

// drain stops the deliveries. The channel of deliveries closes when the broker has answered and what
// it had already sent is taken.
func (s *session) drain() {
	s.draining = true
	go func() {
		// An error says that the channel is closed, and then so are the deliveries.
		_ = s.inbox.Cancel(consumerTag, false)
	}()
}

// closeWhenStuck closes the connections of a session that has not stopped long after it should have:
// its loop hangs in a write, because the broker does not read. The function that it returns calls it
// off.
func (s *session) closeWhenStuck(ctx context.Context) (callOff func()) {
	done := make(chan struct{})
	forget := context.AfterFunc(ctx, func() {
		select {
		case <-time.After(drainTimeout + time.Second):
			s.close()
		case <-done:
		}
	})
	return func() {
		forget()
		close(done)
	}
}

// run works until the context is done and what is in flight is finished, or until an error ends the
// session.
func (s *session) run(ctx context.Context) error {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	defer s.heldTimer.Stop()
	stop := ctx.Done()
	var deadline <-chan time.Time
	defer s.closeWhenStuck(ctx)()

	for !s.draining || s.deliveries != nil || s.inFlight > 0 {
		var err error
		select {
		case d, ok := <-s.unlessBlocked():
			err = s.receive(ctx, d, ok)
		case c, ok := <-s.retry.confirms:
			err = s.confirm(ctx, s.retry, c, ok)
		case c, ok := <-s.failed.confirms:
			err = s.confirm(ctx, s.failed, c, ok)
		case c, ok := <-s.rescueConfirms():
			err = s.confirmRescue(ctx, c, ok)
		case <-s.heldTimer.C:
			err = s.publishHeld(ctx)
		case b, ok := <-s.blockings:
			err = s.block(ctx, b, ok)
		case now := <-ticker.C:
			err = s.stalled(now)
		case <-stop:
			stop, deadline = nil, time.After(drainTimeout)
			s.drain()
		case <-deadline:
			return fmt.Errorf("%d message(s) were still in flight after %s: they will be delivered again", s.inFlight, drainTimeout)
		}
		if err != nil {
			return err
		}
	}
	time.Sleep(settleTime)
	return nil
}
