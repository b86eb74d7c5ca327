package undeliverable

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"strings"
	"time"

	amqp10 "github.com/Azure/go-amqp"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter/translate"
)

const (
	// patience is how long the first message can take to come. The broker can still be taking it back from the
	// connection that it has closed.
	patience = time.Second
	// patienceLater is the same for later messages, in a scan that others wait for.
	patienceLater = 200 * time.Millisecond
	// closeTimeout bounds the wait until the broker has handled all settled messages.
	closeTimeout = 3 * time.Second
)

// ErrMayNotRead says that the user lacks the permission to read the queue.
var ErrMayNotRead = errors.New("this user cannot read the queue over AMQP 1.0")

// link takes messages off a queue in their order.
type link struct {
	receiver *amqp10.Receiver
	// end waits until the broker has handled all settled messages.
	end func(context.Context) error
	// decode translates a message to AMQP 0-9-1.
	decode func(raw []byte) (translate.Message, error)
	scan
	// coming is how many requested messages have not come yet.
	coming uint32
	// held are the messages that go back.
	held []held
	// since is when the first message came, or when the latest message was taken.
	since time.Time
}

// scan says how to look through a queue.
type scan struct {
	// looks bounds how many other messages the scan passes.
	looks int
	// timeout bounds the scan after the first message, or after the latest message that was taken. 0 scans while
	// messages come.
	timeout time.Duration
	// batch is how many messages are requested at a time.
	batch int
	// park keeps a copy of a message that AMQP 0-9-1 can carry, and why the copy differs.
	park func(ctx context.Context, d *amqp.Delivery, why string) error
}

// held is a message that goes back.
type held struct {
	*amqp10.Message
	// content tells the message from others, and stays the same from delivery to delivery.
	content string
	// dead says that the broker, or a client that imitates it, has noted deaths of the message.
	dead bool
}

// ended reports whether the scan has passed enough messages or has used up its time.
func (l *link) ended() bool {
	return len(l.held) >= l.looks || l.timeout > 0 && !l.since.IsZero() && time.Since(l.since) > l.timeout
}

func openLink(ctx context.Context, conn *amqp10.Conn, queue string, scan scan) (link, error) {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	session, err := conn.NewSession(ctx, nil)
	if err != nil {
		return link{}, fmt.Errorf("begin an AMQP 1.0 session: %w", err)
	}
	// RabbitMQ 3 speaks AMQP 1.0 with the plugin rabbitmq_amqp1_0.
	version, _ := conn.Properties()["version"].(string)
	prefix, plugin := "/queues/", strings.HasPrefix(version, "3.")
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
		// The plugin does not say when a link is closed. When it is busy, it now and then ends a session without an
		// error. Once the session has ended, the plugin has handled everything before.
		return link{receiver: receiver, scan: scan, end: session.Close, decode: translate.DecodePlugin}, nil
	}
	return link{receiver: receiver, scan: scan, end: receiver.Close, decode: translate.Decode}, nil
}

// next takes the message at the head of the queue, where at most this many follow. It returns nil if the queue is empty.
func (l *link) next(ctx context.Context, most int) (*amqp10.Message, error) {
	if l.coming == 0 {
		l.coming = uint32(min(most, l.batch)) //nolint:gosec // at least 1
		if err := l.receiver.IssueCredit(l.coming); err != nil {
			return nil, err
		}
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
	// A message that comes now would be delivered in vain, which counts against the delivery limit.
	if err := l.drain(ctx); err != nil {
		return nil, err
	}
	l.coming = 0
	return l.receiver.Prefetched(), nil
}

// drain waits until the queue has handled all before, and takes back what is requested.
func (l *link) drain(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	return l.receiver.DrainCredit(ctx, nil)
}

// hold keeps a message until it goes back, and drops its body.
func hold(message *amqp10.Message, translated *translate.Message) held {
	message.Data = nil
	d := &translated.Delivery
	lasting := maps.Clone(d.Headers)
	maps.DeleteFunc(lasting, func(key string, _ any) bool { return deadletter.IsCount(key) })
	_, dead := lasting["x-death"]
	content := sha256.New()
	fmt.Fprint(content, d.MessageId, lasting)
	content.Write(d.Body)
	return held{message, string(content.Sum(nil)), dead}
}

// release gives the held messages back unchanged. RabbitMQ 4.3 does not count that against the delivery limit. RabbitMQ
// 4.0 counts it, like any outcome that puts a message back.
func (l *link) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	for _, held := range l.held {
		// An error says that the link is closed, and then all messages are back.
		_ = l.receiver.ReleaseMessage(ctx, held.Message)
	}
}

// close waits until the broker has handled all settled messages.
func (l *link) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	_ = l.end(ctx) // an error says that the link is closed
}
