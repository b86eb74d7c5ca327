package audit_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// The queue's rejected messages come back to it at once, again and again.
func TestLoop(t *testing.T) {
	t.Parallel()
	s := createVhost(t, classic("work", args{"x-dead-letter-exchange": "back"}), classic("other", nil), exchange("back", "fanout", nil), bind("back", "work", ""))
	expectRules(t, s.audit(), "dead-letter-loop")
	published(1)(s)
	for range 50 {
		s.reject("work")
	}
	s.settles("work", func() int { return s.count("work") }, 1)

	fixed := createVhost(t, classic("work", args{"x-dead-letter-exchange": "back"}), classic("other", nil), exchange("back", "fanout", nil), bind("back", "other", ""))
	expectRules(t, fixed.audit())
	rejected(1)(fixed)
	fixed.settles("work", func() int { return fixed.count("work") }, 0)
}

// A dead letter keeps the keys in its header CC. So if no key of a pattern is bound, that is a warning.
func TestKeysInCCAreBound(t *testing.T) {
	t.Parallel()
	s := createVhost(t, ordersTo("order.#", "direct", "work"))
	expectRules(t, s.audit(), "dead-letter-key-unbound")
	s.Publish(t, "shop", "order.created", amqp.Publishing{Headers: amqp.Table{"CC": []any{"work"}}})
	s.reject("work")
	s.settles("parked", func() int { return s.count("parked") }, 1)
}

// A full target also holds up dead letters for other queues.
func TestFullTargetFreezes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limit args
		rules []string
		// healthy is the number of messages in the queue with room.
		healthy int
	}{
		"limited":   {args{"x-max-length": number(1), "x-overflow": "reject-publish"}, []string{"full-target-freezes"}, 0},
		"unlimited": {nil, nil, 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := createVhost(t, exchange("shop", "direct", nil), exchange("dead", "direct", nil),
				quorum("work", args{"x-dead-letter-exchange": "dead", "x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish"}),
				classic("full", c.limit), classic("healthy", nil),
				bind("shop", "work", "full"), bind("shop", "work", "ok"), bind("dead", "full", "full"), bind("dead", "healthy", "ok"))
			expectRules(t, s.audit(), c.rules...)
			s.Publish(t, "", "full", persistent())
			// More than the 32 dead letters that a queue sends at a time.
			for range 40 {
				rejectedFrom("full")(s)
			}
			for range 5 {
				rejectedFrom("ok")(s)
			}
			s.settles("healthy", func() int { return s.count("healthy") }, c.healthy)
		})
	}
}

// At-least-once dead letters without a target are in no queue. They are pending. The strategy of a queue's argument takes precedence over
// that of a policy.
func TestPendingDeadLetters(t *testing.T) {
	t.Parallel()
	s := createVhost(t, quorum("work", args{"x-dead-letter-exchange": "missing", "x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish"}),
		policy("weak", "^work$", 0, args{"dead-letter-strategy": "at-most-once"}))
	expectRules(t, s.audit(), "dead-letter-exchange-missing")
	rejected(1)(s)
	s.settles("work", s.total, 0)
	s.pends("work", 1)
}

// A queue that expires is deleted with its messages.
func TestExpiringQueues(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		vhost part
		queue string
		rules []string
		gone  bool
	}{
		"parking":        {all(classic("work", toParked(nil)), classic("parked", args{"x-expires": number(1500)})), "parked", []string{"parking-queue-expires"}, true},
		"parking quorum": {all(classic("work", toParked(nil)), quorum("parked", args{"x-expires": number(1500), "x-delivery-limit": number(1_000_000)})), "parked", []string{"parking-queue-expires"}, true},
		"parked":         {all(classic("work", toParked(nil)), parked), "parked", nil, false},
		"retry":          {all(classic("work", toQueue("retry", nil)), classic("retry", toQueue("work", args{"x-message-ttl": number(60_000), "x-expires": number(1500)}))), "retry", []string{"retry-queue-expires"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := createVhost(t, c.vhost)
			expectRules(t, s.audit(), c.rules...)
			rejected(1)(s)
			if !c.gone {
				s.settles(c.queue, func() int { return s.count(c.queue) }, 1)
				return
			}
			// Without AMQP, because looking at a queue can count as using it.
			brokertest.Eventually(t, func() error {
				if names := s.names(); slices.Contains(names, c.queue) {
					return fmt.Errorf("queues %q", names)
				}
				return nil
			})
			require.Zero(t, s.count("work"), "messages came back")
		})
	}
}

func (s *liveVhost) names() []string {
	s.Helper()
	var queues []struct{ Name string }
	s.Call(s.T, http.MethodGet, s.Path("queues")+"?disable_stats=true", nil, &queues)
	var names []string
	for _, q := range queues {
		names = append(names, q.Name)
	}
	return names
}

// If two policies have the same priority, exactly one applies. Their keys are never combined.
func TestTiedPolicies(t *testing.T) {
	t.Parallel()
	dead := args{"dead-letter-exchange": "", "dead-letter-routing-key": "parked"}
	s := createVhost(t, classic("work", nil), parked, policy("dead", "^work$", 1, dead), policy("limit", "^work$", 1, args{"max-length": number(1)}))
	expectRules(t, s.audit(), "policy-tie")
	published(2)(s)
	s.settles("parked", func() int { return s.count("parked") }, 0)

	fixed := createVhost(t, classic("work", nil), parked, policy("both", "^work$", 1, args{"dead-letter-exchange": "", "dead-letter-routing-key": "parked", "max-length": number(1)}))
	expectRules(t, fixed.audit())
	published(2)(fixed)
	fixed.settles("parked", func() int { return fixed.count("parked") }, 1)
}

// The broker can read this pattern and the audit cannot. The audit reports that and does not guess.
func TestUnreadablePattern(t *testing.T) {
	t.Parallel()
	dead := args{"dead-letter-exchange": "", "dead-letter-routing-key": "parked"}
	s := createVhost(t, classic("work", nil), parked, policy("dead", "^(?|work|other)$", 1, dead))
	expectRules(t, s.audit(), "policy-pattern-unreadable")
	rejected(1)(s)
	s.settles("parked", func() int { return s.count("parked") }, 1)
}

// If the broker ignores a delayed retry, the message comes back at once.
func TestDelayedRetry(t *testing.T) {
	t.Parallel()
	delayed := func(kind string) part {
		return all(quorum("work", toParked(args{"x-delayed-retry-type": kind, "x-delayed-retry-min": number(60_000)})), parked)
	}
	for kind, works := range map[string]bool{"all": true, "al": false} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := createVhost(t, delayed(kind))
			published(1)(s)
			s.requeue("work", 1)
			if works && s.VersionAtLeast("4.3") {
				expectRules(t, s.audit())
				s.settles("work", func() int { return s.count("work") }, 0)
				return
			}
			expectRules(t, s.audit(), "native-retry-ignored")
			s.settles("work", func() int { return s.count("work") }, 1)
		})
	}
}

// RabbitMQ 3.10 drops dead letters for a stream, unless the queue dead-letters at least once.
func TestStreamGetsDeadLetters(t *testing.T) {
	t.Parallel()
	s := createVhost(t, exchange("dead", "fanout", nil), bind("dead", "log", ""), classic("work", args{"x-dead-letter-exchange": "dead"}),
		func(v *topology.Vhost) { v.Queues["log"] = topology.Queue{Type: "stream"} })
	var rules []string
	arrived := 1
	if strings.HasPrefix(s.Version, "3.10.") {
		rules, arrived = []string{"stream-target-loses"}, 0
	}
	expectRules(t, s.audit(), rules...)
	rejected(1)(s)
	s.settles("log", func() int { return s.count("log") }, arrived)
}

// A broker closes the connection that publishes a decimal to a stream. The test does not show that a stream stops
// at-least-once dead letters. It would stop the dead letters of all other tests too.
func TestStreamTakesNoDecimals(t *testing.T) {
	t.Parallel()
	stream := func(v *topology.Vhost) { v.Queues["log"] = topology.Queue{Type: "stream"} }
	target := all(exchange("dead", "fanout", nil), stream, bind("dead", "log", ""))
	dead := args{"x-dead-letter-exchange": "dead", "x-delivery-limit": number(1_000_000)}
	once := args{"x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish"}
	maps.Copy(once, dead)
	expectRules(t, faultsIn(vhost(target, quorum("work", dead))))
	expectRules(t, faultsIn(vhost(events, stream, bind("events.deliver", "log", "paid"))), "stream-target-freezes")

	s := createVhost(t, target, quorum("work", once))
	found := s.audit()
	expectRules(t, found, "stream-target-freezes")
	require.Contains(t, found[0].Message, "ends at-least-once dead-lettering on the whole node")
	s.Publish(t, "dead", "", amqp.Publishing{Headers: amqp.Table{"price": "19.99"}})
	conn := s.Dial(t)
	closed := conn.NotifyClose(make(chan *amqp.Error, 1))
	ch, err := conn.Channel()
	require.NoError(t, err)
	require.NoError(t, ch.PublishWithContext(t.Context(), "dead", "", false, false,
		amqp.Publishing{Headers: amqp.Table{"price": amqp.Decimal{Scale: 2, Value: 1999}}}))
	require.Equal(t, amqp.InternalError, brokertest.Receive(t, closed).Code)
}
