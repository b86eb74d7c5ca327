package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/metrics"
)

// publisher publishes to one exchange. Only the session's loop may use it.
type publisher struct {
	exchange string
	watch    *metrics.Exchange
	outlet

	// outstanding are the messages without a confirm. The library hands out confirms in the order of
	// publishing, so the first one is always the next to be confirmed.
	outstanding []*message
	// returned has the publish ids of outstanding messages that came back.
	returned map[string]bool
	// nackedSince is when the broker began to refuse messages, zero after it accepted one.
	nackedSince time.Time
	// setsAside says that what a queue behind the exchange does not take goes to the refused queue.
	setsAside bool

	suspension
}

// outlet is a channel with the confirms of what is published. It has room for everything outstanding, which the inbox's window bounds.
type outlet struct {
	amqpconn.Confirming
	confirms chan amqp.Confirmation

	// published is the delivery tag of the latest message, and unheard that of the first one that was given up, 0 if none was, with
	// its address.
	published, unheard uint64
	unheardOf          address
}

func openOutlet(ctx context.Context, conn *amqp.Connection, window int) (outlet, error) {
	channel, err := amqpconn.OpenConfirming(ctx, conn, window)
	if err != nil {
		return outlet{}, err
	}
	return outlet{Confirming: channel, confirms: channel.NotifyPublish(make(chan amqp.Confirmation, window))}, nil
}

// closeReason is why the channel closed. It may only be called once confirms is closed.
func (o outlet) closeReason() *amqp.Error { return <-o.Closed }

func newPublisher(exchange string) *publisher {
	return &publisher{exchange: exchange, returned: map[string]bool{}}
}

// publish sends a message. After an error the channel's state is unknown, so the session has to end.
// A channel that is closed is no error here: confirms is closed, too, and tells the loop.
func (p *publisher) publish(m *message, route deadletter.Route, publishing amqp.Publishing) error {
	const mandatory, immediate = true, false
	confirmation, err := p.PublishWithDeferredConfirm(route.Exchange, route.Key, mandatory, immediate, publishing)
	switch {
	case errors.Is(err, amqp.ErrClosed):
		m.publishTag = 0
	case err != nil:
		return fmt.Errorf("publish to exchange %q: %w", route.Exchange, err)
	default:
		m.publishTag, m.confirmation = confirmation.DeliveryTag, confirmation
		p.published = m.publishTag
	}
	m.publishedAt = time.Now() // a large message may have taken long to write
	p.outstanding = append(p.outstanding, m)
	if m.goesAlone() {
		p.suspects = max(1, p.suspects)
	}
	return nil
}

// confirmed takes the message that a confirm is for, nil if it is settled.
func (p *publisher) confirmed(tag uint64) (m *message) {
	p.drainReturns()
	if len(p.outstanding) == 0 || p.outstanding[0].publishTag != tag {
		return nil
	}
	m = p.outstanding[0]
	p.outstanding[0] = nil // or the body would stay in memory
	p.outstanding = p.outstanding[1:]
	return m
}

// took notes that a message needs no answer from now on, and reports whether it was returned.
func (p *publisher) took(m *message) (returned bool) {
	returned = p.returned[m.publishID]
	delete(p.returned, m.publishID)
	p.watch.Answered(time.Since(m.publishedAt), m.accepted(), returned)

	if returned {
		p.cleared()
	} else {
		p.answered()
	}
	if m.accepted() {
		p.nackedSince = time.Time{}
	}
	if m.accepted() && !returned {
		p.nextProbe = time.Time{}
	}
	return returned
}

// noteReturn remembers whose a return is. One that does not say may be for any outstanding message, and
// none of them may be taken for kept.
func (p *publisher) noteReturn(r amqp.Return) {
	if id, ok := r.Headers[deadletter.HeaderPublishID].(string); ok {
		p.returned[id] = true
		return
	}
	for _, m := range p.outstanding {
		p.returned[m.publishID] = true
	}
}

func (p *publisher) drainReturns() {
	for {
		select {
		case r, ok := <-p.Returns:
			if !ok {
				return
			}
			p.noteReturn(r)
		default:
			return
		}
	}
}
