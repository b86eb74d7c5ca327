package worker

import (
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/metrics"
)

const (
	// lastConfirms is how long a session that ends waits for the confirms that are on their way.
	lastConfirms = 1500 * time.Millisecond
	// settleTime is for the broker to pass the last acknowledgements on to the inbox. RabbitMQ 3.10
	// drops those that its channel still holds for a quorum queue when the channel closes, and
	// delivers the messages again.
	settleTime = 500 * time.Millisecond
)

// settleLast acknowledges what the broker confirms in the moment before a session ends on an error:
// the next session would publish it once more. What was nacked or returned is left to that one.
func (s *session) settleLast() {
	s.watch.Enter(metrics.Connected)
	deadline := time.After(lastConfirms)
	for s.outstanding() > 0 {
		var done bool
		select {
		case c, ok := <-s.retry.confirms:
			done = s.settleOne(s.retry, c, ok)
		case c, ok := <-s.back.confirms:
			done = s.settleOne(s.back, c, ok)
		case c, ok := <-s.failed.confirms:
			done = s.settleOne(s.failed, c, ok)
		case c, ok := <-s.rescue.confirms:
			done = s.settleOne(s.rescue, c, ok)
		case <-deadline:
			done = true
		}
		if done {
			break
		}
	}
	if !s.inbox.IsClosed() {
		time.Sleep(settleTime)
	}
}

// settleOne tells whether nothing else can be settled, because the inbox's channel is closed.
func (s *session) settleOne(p *publisher, c amqp.Confirmation, ok bool) (done bool) {
	if !ok {
		p.suspend()
		return false
	}
	m, returned, err := p.settle(c)
	if err != nil {
		p.suspend()
		return false
	}
	return m.taken() && !returned && s.finish(m) != nil
}

func (s *session) outstanding() (n int) {
	for _, p := range s.publishers() {
		n += len(p.outstanding)
	}
	return n
}
