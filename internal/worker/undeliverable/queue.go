// Package undeliverable takes messages off an inbox that the broker cannot deliver over AMQP 0-9-1.
//
// A message that was published over AMQP 1.0 can have content that AMQP 0-9-1 lacks, such as a UUID. With the plugin
// rabbitmq_amqp1_0 of RabbitMQ 3, a number as the message-id is enough. The broker closes the consumer's connection and
// delivers the message again, up to the inbox's delivery limit, if there is one. So the package takes it over AMQP 1.0,
// and parks a copy that 0-9-1 can carry. It accepts the original only after the broker has confirmed the copy.
//
// [Inbox.Take] and [Queue.Replace] are all that others use. The package can go, with package translate, once every supported
// release delivers such a message over AMQP 0-9-1 in place of closing the connection.
package undeliverable

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"time"

	amqp10 "github.com/Azure/go-amqp"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/worker/session"
)

// Queue is a queue with messages that the broker cannot deliver over AMQP 0-9-1.
type Queue struct {
	URI         amqpconn.URI
	Vhost, Name string
	Client      amqpconn.Client
}

// take parks undeliverable messages from the head of the queue on, and returns how many there were. The other messages
// that it passes stay unchanged. An error says why it could not go on. The message is in the queue then.
func (q Queue) take(ctx context.Context, scan scan) (taken int, err error) {
	conn, err := amqpconn.ConnectAMQP10(ctx, q.URI, q.Vhost, q.Client)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close() }()
	link, err := openLink(ctx, conn, q.Name, scan)
	if err != nil {
		return 0, err
	}
	defer link.close(ctx)
	// A queue puts a returned message behind those returned before. So this waits until the end, else the next message
	// would be out of reach.
	defer link.release(ctx)
	for !link.ended() {
		message, err := link.next(ctx, scan.looks-len(link.held))
		if isEncodingError(err) && len(link.held) == 0 {
			err = errNoProtocol
		}
		if err != nil {
			return taken, err
		}
		if message == nil {
			break
		}
		passed, parked, err := link.handle(ctx, message, held{})
		if !parked {
			link.held = append(link.held, passed)
		}
		if err != nil {
			return taken, err
		}
		if parked {
			taken++
			link.since = time.Now()
		}
	}
	if taken > 0 && scan.timeout > 0 { // others wait, and the next session shows whether there are more
		return taken, nil
	}
	trial := trial{link: &link, queue: q}
	defer trial.close()
	err = trial.run(ctx)
	return taken + trial.taken, err
}

// errNoProtocol says that the broker cannot deliver the message at the head of the queue over AMQP 1.0, either.
var errNoProtocol = errors.New("the broker can deliver the message at the head of the queue over no protocol")

// isEncodingError reports whether the broker's AMQP 1.0 encoder failed. RabbitMQ 4.3.6 fails on an annotation that is
// null. 4.0.5 also fails on one that is a decimal number or NaN.
func isEncodingError(err error) bool {
	var failed *amqp10.Error
	return errors.As(err, &failed) && failed.Condition == amqp10.ErrCondInternalError &&
		strings.Contains(failed.Description, "amqp10_binary_generator")
}

// handle parks a message if AMQP 0-9-1 cannot carry it, or if it is the one that the broker has failed on. Otherwise it
// returns the message to hold.
func (l *link) handle(ctx context.Context, message *amqp10.Message, failed held) (passed held, parked bool, err error) {
	// A message that has been started is finished.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), parkTimeout)
	defer cancel()
	translated, err := l.decode(bytes.Join(message.Data, nil))
	passed = hold(message, &translated)
	if err != nil || !translated.Undeliverable && passed.content != failed.content {
		return passed, false, err
	}
	if !translated.Undeliverable {
		translated.Changes = append(translated.Changes, hidden)
	}
	why := "AMQP 0-9-1 cannot carry the original message: " + strings.Join(translated.Changes, "; ")
	if err := l.park(ctx, &translated.Delivery, why); err != nil {
		return passed, false, err
	}
	return held{}, true, l.receiver.AcceptMessage(ctx, message)
}

const (
	// openTimeout bounds the wait for a link to the inbox.
	openTimeout = 10 * time.Second
	// searchTimeout bounds a search of an inbox, since all messages that it passes wait as long.
	searchTimeout = time.Second
	// parkTimeout bounds the wait for the confirm of a copy.
	parkTimeout = 15 * time.Second
	// withoutHeaders begins the error of a message whose headers are left out.
	withoutHeaders = "all headers left out: they do not fit a frame; "
)

// Inbox is the inbox of a flow on one broker.
type Inbox struct {
	URI    amqpconn.URI
	Flow   session.Flow
	Client amqpconn.Client

	patience session.Patience
	// unlimited says that the inbox kept a message beyond our delivery limit.
	unlimited bool
}

// ErrLeftToTheBroker says that the broker has dead-lettered the message at the head of the inbox, at its delivery
// limit.
var ErrLeftToTheBroker = errors.New("the broker could deliver it over no protocol, up to its delivery limit")

// Take parks the undeliverable messages at the head of the inbox, and returns how many there were. It looks at no more
// than looks other messages, and leaves them unchanged. An error says why it could not go on. The message is in the
// inbox then, unless the error is [ErrLeftToTheBroker].
func (i *Inbox) Take(ctx context.Context, looks int) (taken int, err error) {
	taken, err = i.take(ctx, looks)
	if i.unlimited || !errors.Is(err, errNoProtocol) {
		return taken, err
	}
	for range pipeline.InboxDeliveryLimit {
		if taken, err = i.take(ctx, looks); !errors.Is(err, errNoProtocol) {
			return taken, cmp.Or(err, ErrLeftToTheBroker)
		}
	}
	i.unlimited = true
	return taken, err
}

func (i *Inbox) take(ctx context.Context, looks int) (taken int, err error) {
	config := i.Flow.Config()
	q := Queue{URI: i.URI, Vhost: config.ID().Vhost, Name: config.Inbox(), Client: i.Client}
	out := publisher{queue: q}
	defer out.close()
	park := func(ctx context.Context, d *amqp.Delivery, why string) error { return i.park(ctx, &out, d, why) }
	return q.take(ctx, scan{looks: looks, timeout: searchTimeout, batch: 1, park: park})
}

// park publishes a delivery to where it is parked, and waits until the broker keeps it.
func (i *Inbox) park(ctx context.Context, out *publisher, d *amqp.Delivery, why string) error {
	if err := out.open(ctx); err != nil {
		return err
	}
	stamp := deadletter.Stamp{Now: time.Now(), PublishID: rand.Text(), FrameMax: out.conn.Config.FrameSize}
	parked, second, err := i.Flow.Park(d, why, stamp)
	if err != nil {
		d.Headers = nil
		parked, second, err = i.Flow.Park(d, withoutHeaders+why, stamp)
	}
	if err != nil {
		return err
	}
	// A silent queue gets little time, since the copy has another way.
	waiting, cancel := context.WithTimeout(ctx, i.patience.At(time.Now()))
	defer cancel()
	err = out.publish(waiting, parked.Route, parked.Publishing)
	if errors.Is(err, errSilent) {
		i.patience.GiveUp(time.Now())
	}
	if errors.Is(err, errRefused) || errors.Is(err, errSilent) {
		parked = second
		err = out.publish(ctx, parked.Route, parked.Publishing)
	}
	if err != nil {
		return err
	}
	parked.Done()
	return nil
}

// Replace puts a copy that AMQP 0-9-1 can carry in the place of each message that it cannot carry. It returns how many
// copies there are. It passes no more than looks other messages, and leaves them unchanged. The copies go to the
// exchange, or, if that is "", straight to the queue. The headers aside are for the parts that a copy cannot have.
// Replace accepts an original only after the broker has confirmed its copy.
func (q Queue) Replace(
	ctx context.Context, looks int, exchange string, aside deadletter.Aside,
) (replaced int, err error) {
	out := publisher{queue: q}
	defer out.close()
	replace := func(ctx context.Context, d *amqp.Delivery, why string) error {
		if err := out.open(ctx); err != nil {
			return err
		}
		route := deadletter.Route{Exchange: exchange, Key: d.RoutingKey}
		if exchange == "" {
			route.Key = q.Name
		}
		m, whole := deadletter.Copy(d, why, out.conn.Config.FrameSize, aside)
		if !whole {
			m, _ = deadletter.Copy(d, withoutHeaders+why, out.conn.Config.FrameSize, aside)
		}
		return out.publish(ctx, route, m)
	}
	replaced, err = q.take(ctx, scan{looks: looks, batch: 200, park: replace})
	return replaced, cmp.Or(err, ctx.Err())
}
