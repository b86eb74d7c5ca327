package transfer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
)

const (
	// settling is how long a queue may seem to be empty whose messages somebody has just put back, or whose leader is busy or elected;
	// and returning is how long it may if something is put back, and for each message. Sharing is after which time a consumer is another's.
	settling      = time.Second
	returning     = 5 * time.Second
	returningEach = 100 * time.Microsecond
	sharing       = 2 * time.Second
	// settlingPoll is how often they are counted meanwhile.
	settlingPoll = 50 * time.Millisecond
)

var (
	// ErrNoQueue says that there is no such queue.
	ErrNoQueue = errors.New("does not exist in this vhost")
	// ErrMayNotRead says that the user lacks a permission.
	ErrMayNotRead = errors.New("this user may not read the")
)

// Queue is what a run goes over.
type Queue struct {
	Name string
	// Open opens a connection for one purpose, such as "publish".
	Open func(ctx context.Context, purpose string) (amqpconn.Raw, error)
}

// Count is what the broker says of a queue.
type Count struct {
	// Ready are the messages that nobody holds.
	Ready int
	// Consumers may hold others.
	Consumers int
}

// Count asks how much is in the queue.
func (q Queue) Count(ctx context.Context) (Count, error) {
	conn, err := q.Open(ctx, "count")
	if err != nil {
		return Count{}, err
	}
	defer amqpconn.HangUp(conn.Connection)
	return q.CountOver(ctx, conn)
}

// CountOver is [Queue.Count] over a connection that is open, and stays so.
func (q Queue) CountOver(ctx context.Context, conn amqpconn.Raw) (Count, error) {
	declared, err := amqpconn.LookFor(ctx, conn.Connection, q.Name)
	return Count{Ready: declared.Messages, Consumers: declared.Consumers}, q.explain(err)
}

// HasExchange asks whether there is an exchange, in the vhost of the connection. The error is [ErrMayNotRead] for a user without a
// permission for it, whom RabbitMQ 4.3 does not tell.
func HasExchange(ctx context.Context, conn amqpconn.Raw, name string) (bool, error) {
	answer, err := ask(ctx, conn, fmt.Sprintf("look at exchange %q", name), func(channel *amqp.Channel) error {
		return channel.ExchangeDeclarePassive(name, amqp.ExchangeDirect, true, false, false, false, nil)
	})
	switch {
	case err != nil:
		return false, err
	case isCode(answer, amqp.NotFound):
		return false, nil
	case isCode(answer, amqp.AccessRefused):
		return false, fmt.Errorf("%w exchange; needs: read on %q (%w)", ErrMayNotRead, name, answer)
	}
	return answer == nil, answer
}

// ask asks a question whose answer may close the channel. The other error is why it could not be asked.
func ask(ctx context.Context, conn amqpconn.Raw, what string, question func(*amqp.Channel) error) (answer, err error) {
	channel, err := amqpconn.OpenChannel(ctx, conn.Connection)
	if err != nil {
		return nil, err
	}
	_, answer = amqpconn.Await(ctx, what, func() (any, error) {
		defer func() { _ = channel.Close() }()
		return nil, question(channel)
	}, func(any) {})
	return answer, nil
}

// First hands over the first message, if there is one, and puts it back.
func (q Queue) First(ctx context.Context, conn amqpconn.Raw, visit func(*failed.Entry)) error {
	answer, err := ask(ctx, conn, fmt.Sprintf("look at queue %q", q.Name), func(channel *amqp.Channel) error {
		const autoAck, multiple, requeue = false, false, true
		d, found, err := channel.Get(q.Name, autoAck)
		if err != nil || !found {
			return err
		}
		e := failed.Read(q.message(conn, &d))
		visit(&e)
		return channel.Nack(d.DeliveryTag, multiple, requeue)
	})
	if isCode(answer, amqp.InternalError) {
		answer = &UnreadableError{Err: answer}
	}
	return errors.Join(err, q.explain(answer))
}

// message is a delivery as it came.
func (q Queue) message(conn amqpconn.Raw, d *amqp.Delivery) failed.Message {
	return failed.Message{
		Queue: q.Name, Exchange: d.Exchange, RoutingKey: d.RoutingKey, Redelivered: d.Redelivered,
		Properties: conn.Properties(d.Headers), Body: d.Body,
	}
}

// settled counts the messages once that does not change. Those that somebody has just put back come bit by bit, and the consumer is
// counted for a moment longer.
func (q Queue) settled(ctx context.Context, conn amqpconn.Raw) (Count, error) {
	began := time.Now()
	for before := 0; ; {
		count, err := q.CountOver(ctx, conn)
		late := time.Since(began)
		if err != nil || late > sharing || count.Consumers == 0 && (count.Ready > 0 && count.Ready == before || late > settling) {
			return count, err
		}
		before = count.Ready
		select {
		case <-time.After(settlingPoll):
		case <-ctx.Done():
			return count, ctx.Err()
		}
	}
}

// explain says what is missing where brokers do not, or say it differently.
func (q Queue) explain(err error) error {
	var reason *amqp.Error
	if !errors.As(err, &reason) {
		return err
	}
	switch {
	case reason.Code == amqp.NotFound:
		return fmt.Errorf("queue %q %w", q.Name, ErrNoQueue)
	case reason.Code == amqp.ResourceLocked:
		return fmt.Errorf("queue %q is exclusive: only the connection that declared it may use it (%w)", q.Name, err)
	case reason.Code == amqp.AccessRefused && strings.HasSuffix(reason.Reason, " in exclusive use"):
		return fmt.Errorf("a consumer has queue %q to itself, as it asked for: stop it first (%w)", q.Name, err)
	case reason.Code == amqp.AccessRefused:
		return fmt.Errorf("%w queue; needs: read on %q (%w)", ErrMayNotRead, q.Name, err)
	default:
		return err
	}
}

// Kind is the type of a queue.
type Kind string

// Types of queues. Another one is none that deletes or keeps messages in its own way.
const (
	Quorum  Kind = "quorum"
	Stream  Kind = "stream"
	Classic Kind = "classic"
)

// KindOver asks for the type of the queue. AMQP has no question for it; but to all but streams an offset in the stream is a
// wrong argument of a consumer, and the refusal names their type. Nothing is delivered by it, and the permission read
// is enough.
func (q Queue) KindOver(ctx context.Context, conn amqpconn.Raw) (Kind, error) {
	answer, err := ask(ctx, conn, fmt.Sprintf("ask for the type of queue %q", q.Name), func(channel *amqp.Channel) error {
		if err := channel.Qos(1, 0, false); err != nil {
			return err
		}
		_, err := channel.Consume(q.Name, consumerTag, false, false, false, false, amqp.Table{"x-stream-offset": "next"})
		return err
	})
	var reason *amqp.Error
	switch {
	case err != nil:
		return "", err
	case answer == nil:
		return Stream, nil
	case !errors.As(answer, &reason) || reason.Code != amqp.PreconditionFailed:
		return "", q.explain(answer)
	case strings.HasSuffix(reason.Reason, " of queue type rabbit_classic_queue"):
		return Classic, nil
	default:
		return Quorum, nil
	}
}
