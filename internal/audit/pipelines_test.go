package audit_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/audit"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

func TestPipelinesOnABroker(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		vhost part
		rules []string
		die   func(*liveVhost)
		// queue is where the message arrives.
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

// Messages in an inbox wait for a sidecar, until one consumes it. An inbox of somebody else's is no concern.
func TestUnservedInboxes(t *testing.T) {
	t.Parallel()
	s := createVhost(t, expanded(topology.Quorum), events, classic("mail.inbox", nil))
	expectRules(t, s.audit())
	rejected(2)(s)
	s.Publish(t, "events", "paid", persistent())
	s.Publish(t, "", "mail.inbox", persistent())
	unserved := map[string]string{}
	brokertest.Eventually(t, func() error {
		for _, f := range s.audit() {
			if f.Rule == "inbox-unserved" && f.Severity == audit.Warning {
				unserved[f.Object.Kind+" "+f.Object.Name] = f.Message
			}
		}
		if len(unserved) < 2 {
			return fmt.Errorf("found: %v", unserved)
		}
		return nil
	})
	require.Equal(t, map[string]string{
		"delayed_exchange events": `Queue "events.delay.inbox" has no consumer. No sidecar serves it, and its messages wait: 1.`,
		"pipeline orders":         `Queue "orders.inbox" has no consumer. No sidecar serves it, and its messages wait: 2.`,
	}, unserved)
	ch := s.Channel(t)
	for _, inbox := range []string{"orders.inbox", "events.delay.inbox"} {
		_, err := ch.Consume(inbox, "", false, false, false, false, nil)
		require.NoError(t, err)
	}
	brokertest.Eventually(t, func() error {
		if found := s.audit(); len(found) > 0 {
			return fmt.Errorf("%v", found)
		}
		return nil
	})
}

// The queue's own limit is lower than the attempts of a native pipeline, so it parks too early.
func TestIneffectiveRetry(t *testing.T) {
	t.Parallel()
	brokertest.WithoutVhost(t).Needs(t, brokertest.Engine("native"))
	s := createVhost(t, expandedWith(pipeline.EngineNative, topology.Quorum, args{"x-delivery-limit": number(1)}))
	expectRules(t, s.audit(), "pipeline-retry-ineffective")
	published(1)(s)
	s.requeue("work", 2)
	s.settles("orders.failed", func() int { return s.count("orders.failed") }, 1)
}

// The sidecar learns of an unbound delay, because it publishes with the mandatory flag.
func TestUnboundDelay(t *testing.T) {
	t.Parallel()
	s := createVhost(t, expanded(topology.Quorum), unbound("orders.retry"))
	expectRules(t, s.audit(), "pipeline-delay-unbound")
	ch := s.Channel(t)
	returns := ch.NotifyReturn(make(chan amqp.Return, 1))
	require.NoError(t, ch.PublishWithContext(t.Context(), "orders.retry", "delay:1s", true, false, persistent()))
	returned := brokertest.Receive(t, returns)
	require.EqualValues(t, amqp.NoRoute, returned.ReplyCode, returned.ReplyText)
}

// A damaged definition stops no message. The audit finds each kind of damage.
func TestDamagedDefinition(t *testing.T) {
	t.Parallel()
	for name, definition := range map[string]any{
		"no JSON": "{", "a number": number(7), "a table": map[string]any{"version": number(1)}, "nonsense": strings.Repeat("x", 4000),
		"a wrong delay": `{"version":1,"delays":["1 s"],"max_attempts":3,"retry_on":["rejected"]}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := createVhost(t, expanded(topology.Quorum), defined(definition))
			found := s.audit()
			expectRules(t, found, "pipeline-definition-unreadable")
			for _, f := range found {
				require.Contains(t, f.Message, `"orders.failed" to "orders.failed"`)
			}
			rejected(1)(s)
			s.settles("orders.inbox", func() int { return s.count("orders.inbox") }, 1)
		})
	}
}

// defined gives the pipeline "orders" another definition.
func defined(definition any) part {
	return func(v *topology.Vhost) {
		for i, b := range v.Bindings {
			if b.Source == "orders.failed" && b.Destination == "orders.failed" {
				v.Bindings[i].Arguments = args{pipeline.DefinitionArgument: definition}
			}
		}
	}
}

// A team's failed queue keeps dead letters, and its binding must exist.
func TestFailedQueuesOfTeams(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		vhost part
		rules []string
		queue string
	}{
		"healthy":        {teams, nil, "failures"},
		"unbound":        {all(teams, unbound("orders.failed.route")), []string{"pipeline-failed-queue-unbound"}, "orders.failed"},
		"of somebody":    {all(expanded(topology.Quorum), theirs(nil)), nil, "theirs"},
		"with a ttl":     {all(expanded(topology.Quorum), theirs(args{"x-message-ttl": number(3_600_000)})), []string{"parking-queue-ttl"}, "theirs"},
		"with a length":  {all(expanded(topology.Quorum), theirs(args{"x-max-length": number(5)})), []string{"parking-queue-length"}, "theirs"},
		"with an expiry": {all(expanded(topology.Quorum), theirs(args{"x-expires": number(3_600_000)})), []string{"parking-queue-expires"}, "theirs"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := createVhost(t, c.vhost)
			expectRules(t, s.audit(), c.rules...)
			m := persistent()
			m.Headers = amqp.Table{"CC": []any{"failed:work"}}
			require.NoError(t, s.Channel(t).PublishWithContext(t.Context(), "orders.failed.route", "key", true, false, m))
			s.settles(c.queue, func() int { return s.count(c.queue) }, 1)
		})
	}
}

// theirs routes the work queue's failed messages to another owner's queue.
func theirs(arguments args) part {
	return func(v *topology.Vhost) {
		settings := topology.Arguments{"x-delivery-limit": number(1_000_000)}
		maps.Copy(settings, arguments)
		v.Queues["theirs"] = topology.Queue{Type: topology.Quorum, Arguments: settings}
		v.Bindings = append(v.Bindings, pipeline.Names("orders").FailedBinding("work", "theirs", false))
	}
}
