package audit_test

import (
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

func TestPipelinesOnABroker(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		vhost part
		rules []string
		die   func(*liveVhost)
		// queue is where the message comes to.
		queue string
	}{
		"healthy":               {expanded(topology.Quorum), nil, rejected(1), "orders.inbox"},
		"healthy, classic":      {expanded(topology.Classic), nil, rejected(1), "orders.inbox"},
		"healthy, on its way":   {expanded(topology.Quorum), nil, waited, "work"},
		"unbound inbox":         {all(expanded(topology.Quorum), unbound("orders.dlx")), []string{"pipeline-inbox-unbound"}, rejected(1), "orders.failed"},
		"unbound work queue":    {all(expanded(topology.Quorum), unbound("orders.return")), []string{"pipeline-return-unbound"}, waited, "orders.inbox"},
		"policy for all queues": {all(expanded(topology.Quorum), policy("org", ".*", 0, args{"dead-letter-exchange": "org", "message-ttl": number(1)})), nil, rejected(1), "orders.inbox"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := createVhost(t, c.vhost)
			expectRules(t, s.audit(), c.rules...)
			c.die(s)
			s.settles(c.queue, func() int { return s.count(c.queue) }, 1)
		})
	}
}

// The sidecar hears of a delay that is not bound, since it publishes mandatory.
func TestUnboundDelay(t *testing.T) {
	t.Parallel()
	s := createVhost(t, expanded(topology.Quorum), unbound("orders.retry"))
	expectRules(t, s.audit(), "pipeline-delay-unbound")
	ch := s.Channel(t)
	returns := ch.NotifyReturn(make(chan amqp.Return, 1))
	if err := ch.PublishWithContext(t.Context(), "orders.retry", "delay:1s", true, false, persistent()); err != nil {
		t.Fatal(err)
	}
	select {
	case returned := <-returns:
		if returned.ReplyCode != amqp.NoRoute {
			t.Errorf("returned with %d %s", returned.ReplyCode, returned.ReplyText)
		}
	case <-time.After(20 * time.Second):
		t.Error("not returned")
	}
}
