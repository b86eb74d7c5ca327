package drift

import (
	"fmt"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

// vhost is a vhost with the resource. Each of its queues has messages, and objects of others are bound to the resource's
// objects.
type vhost struct {
	*brokertest.Broker
	Subject
	core acctest.Core
	// applied is the resource after its creation.
	applied map[string]any
	// foreign are the objects of others.
	foreign acctest.Listing
	// holds is the number of messages in each queue that has any.
	holds map[string]int
}

func (all *results) newVhost(t *testing.T, kind string) *vhost {
	t.Helper()
	b := brokertest.NewNamed(t, "drift "+kind)
	subject := all.subjects(b.Vhost)[kind]
	s := &vhost{
		Broker: b, Subject: subject, holds: map[string]int{},
		core: acctest.Core{Type: subject.Type, Config: subject.Config, Times: acctest.Quick()},
	}
	for name, queueType := range subject.WorkQueues {
		b.DeclareQueue(t, name, queueType, nil)
	}
	plan, err := s.core.PlanAndApply(t.Context())
	require.NoError(t, err)
	own := acctest.List(t, b)
	s.applied = plan.After
	s.Foreign(t, b)
	s.foreign = acctest.List(t, b).Without(own)
	for i, queue := range s.Queues {
		s.fill(t, queue, i+2)
	}
	return s
}

// fill publishes messages into a queue.
func (s *vhost) fill(t *testing.T, queue string, count int) {
	t.Helper()
	for i := range count {
		s.Publish(t, "", queue, amqp.Publishing{DeliveryMode: amqp.Persistent, Body: fmt.Appendf(nil, "%s %d", queue, i)})
	}
	s.holds[queue] = count
}

// keepsMessages fails unless each queue has its messages. A passive declaration over AMQP returns the current length, or 0
// while the queue is too busy to answer.
func (s *vhost) keepsMessages(t *testing.T) {
	t.Helper()
	ch := s.Channel(t)
	defer func() { _ = ch.Close() }()
	brokertest.Eventually(t, func() error { return s.counted(ch) })
}

func (s *vhost) counted(ch *amqp.Channel) error {
	for _, queue := range s.Queues {
		q, err := ch.QueueDeclarePassive(queue, false, false, false, false, nil)
		if err != nil {
			return fmt.Errorf("%s: %w", queue, err)
		}
		if q.Messages != s.holds[queue] {
			return fmt.Errorf("%s has %d messages instead of %d", queue, q.Messages, s.holds[queue])
		}
	}
	return nil
}

// drain takes the messages out of a queue. It returns an error unless they are the messages that were published.
func (s *vhost) drain(t *testing.T, queue string) error {
	t.Helper()
	for i := range s.holds[queue] {
		m, ok := s.Get(t, queue)
		if want := fmt.Sprintf("%s %d", queue, i); !ok || string(m.Body) != want {
			return fmt.Errorf("%s: got %q, %t instead of %q", queue, m.Body, ok, want)
		}
	}
	delete(s.holds, queue)
	acctest.AwaitCount(t, s.Broker, queue, 0)
	return nil
}
