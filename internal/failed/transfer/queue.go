package transfer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
)

const (
	// settling is how long a queue can seem empty although it is not: its leader is busy or elected, or messages were just put
	// back. If this run puts messages back, a queue can seem empty for returning, plus returningEach for each of them. A
	// consumer that stays longer than sharing belongs to another client.
	settling      = time.Second
	returning     = 5 * time.Second
	returningEach = 100 * time.Microsecond
	sharing       = 2 * time.Second
	// quietUncounted is how long no message must come before a run ends that the broker tells no counts.
	quietUncounted = 5 * time.Second
	// settlingPoll is how often the messages are counted meanwhile.
	settlingPoll = 50 * time.Millisecond
)

var (
	// ErrNoQueue says that the queue does not exist.
	ErrNoQueue = errors.New("does not exist in this vhost")
	// ErrMayNotRead says that the user lacks the permission to read.
	ErrMayNotRead = errors.New("this user cannot read the")
)

// Queue is the queue that a run goes over.
type Queue struct {
	Name string
	// Open opens a connection for one purpose, such as "publish".
	Open func(ctx context.Context, purpose string) (amqpconn.Raw, error)
}

// Count has the broker's counts for a queue.
type Count struct {
	// Ready are the messages that no consumer holds.
	Ready int
	// Consumers can hold further messages.
	Consumers int
}

// Count asks the broker for the queue's counts over a new connection. Its errors are [ErrNoQueue], [ErrMayNotRead],
// [amqpconn.ErrNeedsConfigure] and others.
func (q Queue) Count(ctx context.Context) (Count, error) {
	conn, err := q.Open(ctx, "count")
	if err != nil {
		return Count{}, err
	}
	defer amqpconn.HangUp(conn.Connection)
	return q.CountOver(ctx, conn)
}

// CountOver is [Queue.Count] over an open connection, which it leaves open.
func (q Queue) CountOver(ctx context.Context, conn amqpconn.Raw) (Count, error) {
	declared, err := amqpconn.LookFor(ctx, conn.Connection, q.Name)
	return Count{Ready: declared.Messages, Consumers: declared.Consumers}, q.explain(err)
}

// HasExchange asks whether the exchange exists in the connection's vhost. If the user has no permission for it, RabbitMQ 4.3
// does not tell, and the error is [ErrMayNotRead].
func HasExchange(ctx context.Context, conn amqpconn.Raw, name string) (bool, error) {
	answer, err := ask(ctx, conn, fmt.Sprintf("look at exchange %q", name), func(channel *amqp.Channel) error {
		return amqpconn.ExplainLook(conn.Connection, channel.ExchangeDeclarePassive(name, amqp.ExchangeDirect, true, false, false, false, nil))
	})
	switch {
	case err != nil:
		return false, err
	case errors.Is(answer, amqpconn.ErrNeedsConfigure):
		return false, fmt.Errorf("%w exchange (%w)", ErrMayNotRead, answer)
	case amqpconn.IsCode(answer, amqp.NotFound):
		return false, nil
	case amqpconn.IsCode(answer, amqp.AccessRefused):
		return false, fmt.Errorf("%w exchange; needs: read on %q (%w)", ErrMayNotRead, name, answer)
	}
	return answer == nil, answer
}

// ask asks a question whose answer can close the channel. err is why the question could not be asked.
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

// holds reports whether a queue that counts no messages has some. It takes all of them for a moment.
func (q Queue) holds(ctx context.Context) (bool, error) {
	conn, err := q.Open(ctx, "look")
	if err != nil {
		return false, err
	}
	defer conn.Cut()
	in, err := openReceiver(ctx, q, conn, mostHeld, false)
	if err != nil {
		return false, err
	}
	defer close(in.quit)
	err = in.whileTaking(ctx, func() error {
		time.Sleep(idle)
		return in.assigned(ctx)
	})
	return in.held.Load() > 0, err
}

// back counts the messages after a connection that held some of them was cut.
func (q Queue) back(ctx context.Context, held int) (c Count, err error) {
	conn, err := q.Open(ctx, "count")
	if err != nil {
		return c, err
	}
	defer amqpconn.HangUp(conn.Connection)
	patience := returning + time.Duration(held)*returningEach
	for began := time.Now(); ; time.Sleep(settlingPoll) {
		c, err = q.CountOver(ctx, conn)
		late := time.Since(began)
		isShared := c.Consumers > 0 && late > sharing
		if err != nil || c.Ready >= held || c.Ready > 0 && c.Consumers == 0 || isShared || late > patience {
			return c, err
		}
	}
}

// settled counts the messages once the count is stable. Messages that were just put back return bit by bit, and the queue
// counts their consumer for a moment longer. A quorum queue counts 0 if its leader is too busy to answer, so it is also
// asked for messages.
func (q Queue) settled(ctx context.Context, conn amqpconn.Raw) (Count, error) {
	began := time.Now()
	for before := 0; ; {
		count, err := q.CountOver(ctx, conn)
		late, looksEmpty := time.Since(began), count == (Count{})
		isStable := count.Consumers == 0 && count.Ready > 0 && (count.Ready == before || late > settling)
		switch {
		case err != nil, isStable, late > sharing && !looksEmpty:
			return count, err
		case late > settling && looksEmpty:
			if holds, err := q.holds(ctx); err != nil || !holds {
				return count, err
			}
			began = time.Now()
		}
		before = count.Ready
		select {
		case <-time.After(settlingPoll):
		case <-ctx.Done():
			return count, ctx.Err()
		}
	}
}

// explain names the missing thing where brokers do not, or where their texts differ.
func (q Queue) explain(err error) error {
	reason, is := errors.AsType[*amqp.Error](err)
	switch {
	case !is, errors.Is(err, amqpconn.ErrNeedsConfigure):
		return err
	case reason.Code == amqp.NotFound:
		return fmt.Errorf("queue %q %w", q.Name, ErrNoQueue)
	case reason.Code == amqp.ResourceLocked:
		return fmt.Errorf("queue %q is exclusive: only the connection that declared it can use it (%w)", q.Name, err)
	case reason.Code == amqp.AccessRefused && strings.HasSuffix(reason.Reason, " in exclusive use"):
		return fmt.Errorf("an exclusive consumer uses queue %q: stop that consumer first (%w)", q.Name, err)
	case reason.Code == amqp.AccessRefused:
		return fmt.Errorf("%w queue; needs: read on %q (%w)", ErrMayNotRead, q.Name, err)
	default:
		return err
	}
}

// KindOver asks for the queue's type, such as [amqp.QueueTypeQuorum]. AMQP has no request for it, so KindOver consumes with a
// stream offset. Any other type than a stream refuses that argument, and its error names the type. KindOver treats unknown
// types as quorum. No message is delivered, and the user needs only the permission read.
func (q Queue) KindOver(ctx context.Context, conn amqpconn.Raw) (string, error) {
	answer, err := ask(ctx, conn, fmt.Sprintf("ask for the type of queue %q", q.Name), func(channel *amqp.Channel) error {
		if err := channel.Qos(1, 0, false); err != nil {
			return err
		}
		_, err := channel.Consume(q.Name, consumerTag(0), false, false, false, false, amqp.Table{"x-stream-offset": "next"})
		return err
	})
	reason, is := errors.AsType[*amqp.Error](answer)
	switch {
	case err != nil:
		return "", err
	case answer == nil:
		return amqp.QueueTypeStream, nil
	case !is || reason.Code != amqp.PreconditionFailed:
		return "", q.explain(answer)
	case strings.HasSuffix(reason.Reason, " of queue type rabbit_classic_queue"):
		return amqp.QueueTypeClassic, nil
	default:
		return amqp.QueueTypeQuorum, nil
	}
}
