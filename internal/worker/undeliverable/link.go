package undeliverable

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	amqp10 "github.com/Azure/go-amqp"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter/translate"
)

const (
	// patience is how long the first message may take to come: the broker may be about to take it back from the
	// connection that it has closed.
	patience = time.Second
	// patienceLater is the same for those behind it in a scan that others wait for.
	patienceLater = 200 * time.Millisecond
	// closeTimeout bounds the wait for the broker's word that it has handled all that was settled.
	closeTimeout = 3 * time.Second
)

// ErrMayNotRead says that the user lacks a permission.
var ErrMayNotRead = errors.New("this user may not read the queue over AMQP 1.0")

// link takes messages off a queue in their order.
type link struct {
	receiver *amqp10.Receiver
	// end waits until the broker has handled what was settled.
	end func(context.Context) error
	// decode says what a message is to clients of AMQP 0-9-1.
	decode func(raw []byte) (translate.Message, error)
	scan
	// coming are the messages that were asked for and have not come.
	coming uint32
	// held are messages that go back.
	held []*amqp10.Message
	// since is when the first message came, or when the latest one was taken.
	since time.Time
}

// scan is how a queue is looked through.
type scan struct {
	// looks is how many other messages it passes at most.
	looks int
	// timeout is how long it goes on after the first message, or the latest one that was taken; 0 for as long as any come.
	timeout time.Duration
	// batch is how many messages are asked for at a time.
	batch uint32
}

// ended reports whether the scan has passed enough.
func (l *link) ended() bool {
	return len(l.held) >= l.looks || l.timeout > 0 && !l.since.IsZero() && time.Since(l.since) > l.timeout
}

func openLink(ctx context.Context, conn *amqp10.Conn, queue string, scan scan) (link, error) {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	session, err := conn.NewSession(ctx, nil)
	if err != nil {
		return link{}, fmt.Errorf("begin a session of AMQP 1.0: %w", err)
	}
	prefix, plugin := "/queues/", isPlugin(conn)
	if plugin {
		prefix = "/amq/queue/"
	}
	const manual = -1
	receiver, err := session.NewReceiver(ctx, prefix+url.PathEscape(queue), &amqp10.ReceiverOptions{Credit: manual})
	var refused *amqp10.Error
	if errors.As(err, &refused) && refused.Condition == amqp10.ErrCondUnauthorizedAccess {
		return link{}, fmt.Errorf("%w; needs: read on %q (%s)", ErrMayNotRead, queue, refused.Description)
	}
	if err != nil {
		return link{}, fmt.Errorf("consume %s over AMQP 1.0: %w", queue, err)
	}
	if plugin {
		// It does not say when a link is closed, and when it is busy it ends a session now and then without a word. All that
		// came before has been handled then.
		return link{receiver: receiver, scan: scan, end: session.Close, decode: translate.DecodePlugin}, nil
	}
	return link{receiver: receiver, scan: scan, end: receiver.Close, decode: translate.Decode}, nil
}

// isPlugin tells of RabbitMQ 3, which speaks AMQP 1.0 with the plugin rabbitmq_amqp1_0.
func isPlugin(conn *amqp10.Conn) bool {
	version, _ := conn.Properties()["version"].(string)
	return strings.HasPrefix(version, "3.")
}

// next takes the message at the head of the queue; it is nil if there is none.
func (l *link) next(ctx context.Context) (*amqp10.Message, error) {
	if l.coming == 0 {
		if err := l.receiver.IssueCredit(l.batch); err != nil {
			return nil, err
		}
		l.coming = l.batch
	}
	wait := patience
	if l.timeout > 0 && !l.since.IsZero() {
		wait = patienceLater
	}
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	message, err := l.receiver.Receive(waiting, nil)
	if l.since.IsZero() {
		l.since = time.Now()
	}
	if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
		l.coming--
		return message, err
	}
	// One that comes now would be delivered in vain, and that counts.
	draining, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	if err := l.receiver.DrainCredit(draining, nil); err != nil {
		return nil, err
	}
	l.coming = 0
	return l.receiver.Prefetched(), nil
}

// hold keeps a message until all go back, but not what is in it.
func (l *link) hold(message *amqp10.Message) {
	message.Data = nil
	l.held = append(l.held, message)
}

// release gives back what is held, as it was. RabbitMQ 4.3 does not count that against the delivery limit; 4.0 does,
// as it counts any outcome that puts a message back.
func (l *link) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	for _, message := range l.held {
		// An error says that the link is closed, and then all are back.
		_ = l.receiver.ReleaseMessage(ctx, message)
	}
}

// close waits until the broker has handled what was settled.
func (l *link) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	_ = l.end(ctx) // an error says that it is closed
}
