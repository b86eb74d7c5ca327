package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
)

// publisher is a channel in confirm mode together with what was published on it and has no confirm
// yet. Only the session's loop may use it.
//
// The broker sends a basic.return before the confirm of the same message, and the library's reader
// hands both on in that order, so whoever takes a confirm finds the return in its channel already.
// Both channels have room for everything outstanding: the library drops what it cannot hand over
// within five seconds, and holds a lock meanwhile that publishing takes.
type publisher struct {
	channel  *amqp.Channel
	returns  chan amqp.Return
	confirms chan amqp.Confirmation
	closed   chan *amqp.Error

	// outstanding are the messages without a confirm. The library hands out confirms in the order of
	// publishing, so the first one is always the next to be confirmed.
	outstanding []*message
	// returned has the publish ids of outstanding messages that came back.
	returned map[string]bool
	// nackedSince is when the broker began to refuse messages, zero after it took one.
	nackedSince time.Time
}

// openPublisher opens a channel that can have as many publishes outstanding as the window holds.
func openPublisher(ctx context.Context, conn *amqp.Connection, window int) (*publisher, error) {
	channel, err := openChannel(ctx, conn)
	if err != nil {
		return nil, err
	}
	if _, err := await(ctx, "turn publisher confirms on", func() (any, error) {
		return nil, channel.Confirm(false)
	}, func(any) {}); err != nil {
		return nil, err
	}
	room := 2 * window
	return &publisher{
		channel:  channel,
		returns:  channel.NotifyReturn(make(chan amqp.Return, room)),
		confirms: channel.NotifyPublish(make(chan amqp.Confirmation, room)),
		closed:   channel.NotifyClose(make(chan *amqp.Error, 1)),
		returned: map[string]bool{},
	}, nil
}

// publish sends a message. After an error the channel's state is unknown, so the session has to end.
// A channel that is closed is no error here: confirms is closed, too, and tells the loop.
func (p *publisher) publish(m *message, route deadletter.Route, publishing amqp.Publishing, now time.Time) error {
	const mandatory, immediate = true, false
	confirmation, err := p.channel.PublishWithDeferredConfirm(route.Exchange, route.Key, mandatory, immediate, publishing)
	switch {
	case errors.Is(err, amqp.ErrClosed):
		m.publishTag = 0
	case err != nil:
		return fmt.Errorf("publish to exchange %q: %w", route.Exchange, err)
	default:
		m.publishTag = confirmation.DeliveryTag
	}
	m.publishedAt = now
	p.outstanding = append(p.outstanding, m)
	return nil
}

// settle takes the message that a confirm is for, and tells whether it was returned.
func (p *publisher) settle(c amqp.Confirmation) (m *message, returned bool, err error) {
	p.drainReturns()
	if len(p.outstanding) == 0 || p.outstanding[0].publishTag != c.DeliveryTag {
		return nil, false, fmt.Errorf("the broker confirmed delivery tag %d, which is not outstanding", c.DeliveryTag)
	}
	m = p.outstanding[0]
	p.outstanding[0] = nil // or the body would stay in memory
	p.outstanding = p.outstanding[1:]
	returned = p.returned[m.publishID]
	delete(p.returned, m.publishID)

	if c.Ack {
		p.nackedSince = time.Time{}
	}
	return m, returned, nil
}

func (p *publisher) drainReturns() {
	for {
		select {
		case r, ok := <-p.returns:
			if !ok {
				return
			}
			id, _ := r.Headers[deadletter.HeaderPublishID].(string)
			p.returned[id] = true
		default:
			return
		}
	}
}

// closeReason is why the channel closed. It may only be called once confirms is closed.
func (p *publisher) closeReason() *amqp.Error {
	return <-p.closed
}

// stalled is an error when the broker neither takes messages nor says so. A session has to be
// renewed then: a channel that met the election of a queue's leader may go on refusing for as long
// as the old leader's node is down, when a new one is served at once.
func (p *publisher) stalled(now, unblockedAt time.Time) error {
	longerThan := func(since time.Time, limit time.Duration) bool {
		if since.Before(unblockedAt) {
			since = unblockedAt
		}
		return now.Sub(since) > limit
	}
	if !p.nackedSince.IsZero() && longerThan(p.nackedSince, nackTimeout) {
		return fmt.Errorf("the broker has refused every message for %s", nackTimeout)
	}
	if len(p.outstanding) > 0 && longerThan(p.outstanding[0].publishedAt, confirmTimeout) {
		return fmt.Errorf("the broker has not confirmed a message for %s", confirmTimeout)
	}
	return nil
}

// refused notes that the broker did not take a message that has to go where it was going.
func (p *publisher) refused(now time.Time) {
	if p.nackedSince.IsZero() {
		p.nackedSince = now
	}
}
