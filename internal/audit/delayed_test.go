package audit_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/audit"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

const (
	lowest  = "events.delay.100ms.0"
	highest = "events.delay.100ms.9" // 51.2s
)

// delaying adds a complete delayed exchange with this name and type, and ten levels.
func delaying(name, kind string) part {
	return func(v *topology.Vhost) {
		v.Topology = topology.Merge(v.Topology, delayed.Exchange{
			Name: name, Vhost: "/", Type: kind, PolicyPriority: delayed.DefaultPolicyPriority,
			MaxDelay:  pipeline.Delay{Wait: 100 * time.Second, Spelling: "100s"},
			Precision: pipeline.Delay{Wait: 100 * time.Millisecond, Spelling: "100ms"},
		}.Expand())
	}
}

// events adds a delayed exchange that delivers to an application's queue "paid" by the routing key "paid".
var events = all(delaying("events", "topic"), quorum("paid", args{"x-delivery-limit": number(1_000_000)}), bind("events.deliver", "paid", "paid"))

// without removes the matching bindings.
func without(is func(topology.Binding) bool) part {
	return func(v *topology.Vhost) { v.Bindings = slices.DeleteFunc(v.Bindings, is) }
}

func fromTo(source, destination string) func(topology.Binding) bool {
	return func(b topology.Binding) bool { return b.Source == source && b.Destination == destination }
}

// waitedIn publishes to the level as the sidecar does. The message waits there and in no level below.
func waitedIn(level, bits int, key string) func(*liveVhost) {
	return func(s *liveVhost) {
		m := persistent()
		m.Headers = amqp.Table{"x-delay": int64(-1)}
		for bit := range level + 1 {
			m.Headers[delayed.BitKey(bit)] = bits>>bit&1 == 1
		}
		s.Publish(s.T, fmt.Sprint("events.delay.100ms.", level), key, m)
	}
}

// What a consumer publishes to the exchange of its delivery comes at once.
func TestAnsweredDelivery(t *testing.T) {
	t.Parallel()
	s := createVhost(t, events)
	m := persistent()
	m.Headers = amqp.Table{"x-delay": int32(3_600_000)}
	s.Publish(t, "events.deliver", "paid", m)
	s.settles("paid", func() int { return s.count("paid") }, 1)

	expectRules(t, s.audit(audit.User{Name: "app", Write: ".*", Read: "^paid$"}), "delayed-delivery-answered")
	expectRules(t, s.audit(
		audit.User{Name: "app", Write: "^events$", Read: "^paid$"}, audit.User{Name: "sidecar", Write: ".*", Read: `^events\.delay\.inbox$`},
		audit.User{Name: "reader", Read: ".*"}, audit.User{Name: "unreadable", Write: "(", Read: ".*"},
	))
}

// A delayed exchange without faults has no findings, in any vhost.
func TestQuietDelayedExchanges(t *testing.T) {
	t.Parallel()
	limited := args{"x-max-length": number(1), "x-message-ttl": number(1), "x-delivery-limit": number(2), "x-dead-letter-exchange": "orders.dlx"}
	for name, v := range map[string]part{
		"alone":           delaying("events", "topic"),
		"a fanout":        delaying("events", "fanout"),
		"headers":         delaying("events", "headers"),
		"direct":          all(delaying("events", "direct"), bind("events.deliver", "work", "k"), classic("work", nil)),
		"of 3.10":         all(delaying("events", "topic"), version(3, 10)),
		"a work queue":    events,
		"two":             all(delaying("events", "topic"), delaying("events.more", "topic"), delaying("eve", "topic")),
		"of a pipeline":   all(delaying("orders", "topic"), expanded(topology.Quorum)),
		"a retried queue": all(delaying("events", "topic"), expanded(topology.Quorum), bind("events.deliver", "work", "k")),
		"back to itself":  all(delaying("events", "topic"), quorum("work", args{"x-dead-letter-exchange": "events"}), bind("events.deliver", "work", "k")),
		"a target that drops": all(delaying("events", "topic"), classic("paid", limited), bind("events.deliver", "paid", "k"), expanded(topology.Classic),
			bind("orders.return", "paid", "return:paid")),
		"through an exchange": all(delaying("events", "topic"), exchange("more", "fanout", nil), toExchange("events.deliver", "more"),
			classic("paid", args{"x-message-ttl": number(1)}), bind("more", "paid", "")),
		"another policy":                  all(events, policy("org", ".*", 1, args{"message-ttl": number(1), "max-length": number(1), "overflow": "drop-head"})),
		"a topic exchange that takes all": all(events, exchange("more", "topic", nil), toExchangeOf("events.deliver", "more", "shop.#"), bind("more", "paid", "#")),
		"an exchange for one key":         all(events, exchange("more", "direct", nil), toExchangeOf("events.deliver", "more", "shop"), bind("more", "paid", "shop")),
		"an exchange with an alternate exchange": all(events, exchange("more", "direct", args{"alternate-exchange": "events.delay.unrouted"}),
			toExchangeOf("events.deliver", "more", "#"), bind("more", "paid", "shop")),
		"a hint": all(events, policy("again", `^events\.delay\.`, 2000, args{"delivery-limit": number(1_000_002), "dead-letter-strategy": "at-least-once", "overflow": "reject-publish"})),
		"more levels": all(events, func(v *topology.Vhost) { // of an earlier precision
			e, _ := delayed.Recover("events", "/", v.Topology)
			e.Retired = []delayed.Level{{Unit: time.Second}, {Unit: time.Second, Bit: 1}}
			v.Topology = topology.Merge(v.Topology, e.Expand())
		}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expectRules(t, faultsIn(vhost(v)))
		})
	}
}

func TestDelayedExchangesOnABroker(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		vhost part
		rules []string
		do    func(*liveVhost)
		// queue is where the message arrives, or with pending, where it stays as a pending dead letter.
		queue   string
		pending bool
	}{
		"healthy":               {events, nil, waitedIn(2, 0b101, "paid"), "paid", false},
		"healthy, not due":      {events, nil, waitedIn(9, 1<<9, "paid"), highest, false},
		"healthy, unroutable":   {events, nil, waitedIn(0, 1, "unpaid"), "events.delay.unrouted", false},
		"healthy, not decoded":  {events, nil, rejectedFromQueue("events.delay.inbox"), "events.delay.unrouted", false},
		"a queue that bypasses": {all(events, classic("tap", nil), bind("events", "tap", "")), []string{"delayed-exchange-bypassed"}, publishedTo("events"), "tap", false},
		"an exchange that bypasses": {
			all(events, classic("tap", nil), exchange("fan", "fanout", nil), toExchange("events", "fan"), bind("fan", "tap", "")),
			[]string{"delayed-exchange-bypassed"},
			publishedTo("events"), "tap", false,
		},
		"unbound inbox":    {all(events, without(fromTo("events", "events.delay.inbox"))), []string{"delayed-inbox-unbound"}, publishedTo("events"), "events.delay.unrouted", false},
		"unbound unrouted": {all(events, unbound("events.delay.unrouted")), []string{"delayed-unrouted-unbound", "dead-letter-unroutable"}, waitedIn(0, 1, "unpaid"), lowest, true},
		"no alternate exchange": {
			all(events, exchange("events.deliver", "topic", nil)),
			[]string{"delayed-unrouted-unbound"},
			waitedIn(0, 1, "unpaid"), lowest, true,
		},
		"level without the next":   {all(events, without(fromTo("events.delay.100ms.1", lowest))), []string{"delayed-level-unbound"}, waitedIn(2, 0b100, "paid"), "events.delay.100ms.2", true},
		"level without its queue":  {all(events, without(fromTo(lowest, lowest))), []string{"delayed-level-unbound"}, waitedIn(1, 0b11, "paid"), "events.delay.100ms.1", true},
		"level that leads nowhere": {all(events, unbound(lowest)), []string{"delayed-level-unbound", "dead-letter-unroutable"}, waitedIn(1, 0b11, "paid"), "events.delay.100ms.1", true},
		"level with a policy": {
			all(events, policy("org", `^events\.`, 2000, args{"message-ttl": number(1)})),
			[]string{"delayed-queue-altered"},
			waitedIn(9, 1<<9, "paid"), "paid", false,
		},
		"level with an operator policy": {
			all(events, operator("org", `^events\.`, args{"message-ttl": number(1)})),
			[]string{"delayed-queue-altered"},
			waitedIn(9, 1<<9, "paid"), "paid", false,
		},
		"level that leads elsewhere": {
			all(events, policy("org", `^events\.`, 2000, args{"dead-letter-routing-key": "other", "dead-letter-strategy": "at-least-once", "overflow": "reject-publish"})),
			[]string{"delayed-queue-altered"},
			waitedIn(0, 1, "paid"), "events.delay.unrouted", false,
		},
		"damaged definition": {all(events, func(v *topology.Vhost) {
			for i := range v.Bindings {
				if fromTo("events.delay.unrouted", "events.delay.unrouted")(v.Bindings[i]) {
					v.Bindings[i].Arguments = args{delayed.DefinitionArgument: "{"}
				}
			}
		}), []string{"delayed-definition-unreadable"}, waitedIn(0, 1, "paid"), "paid", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := createVhost(t, c.vhost)
			expectRules(t, s.audit(), c.rules...)
			c.do(s)
			if c.pending {
				s.pends(c.queue, 1)
				return
			}
			s.settles(c.queue, func() int { return s.count(c.queue) }, 1)
		})
	}
}

// publishedTo publishes like an application that wants a delay of an hour.
func publishedTo(exchange string) func(*liveVhost) {
	return func(s *liveVhost) {
		m := persistent()
		m.Headers = amqp.Table{"x-delay": int64(3_600_000)}
		s.Publish(s.T, exchange, "paid", m)
	}
}

// pends waits for at least this many pending dead letters.
func (s *liveVhost) pends(queue string, want int) {
	s.Helper()
	brokertest.Eventually(s.T, func() error {
		var q struct {
			Pending int `json:"messages_dlx"`
		}
		_, response := s.Request(s.T, http.MethodGet, s.Path("queues", queue), nil)
		if err := json.Unmarshal(response, &q); err != nil || q.Pending < want {
			return errors.Join(err, fmt.Errorf("%d pending in %s, want %d", q.Pending, queue, want))
		}
		return nil
	})
}

func toExchangeOf(source, destination, key string) part {
	return func(v *topology.Vhost) {
		v.Bindings = append(v.Bindings, topology.Binding{Source: source, Destination: destination, ToExchange: true, RoutingKey: key})
	}
}

// A full queue stops messages to other queues, unless it drops its oldest messages.
func TestFullTargetFreezesLevels(t *testing.T) {
	t.Parallel()
	reject := args{"x-max-length": number(1), "x-overflow": "reject-publish"}
	more := all(classic("other", nil), bind("events.deliver", "other", "other"))
	for name, c := range map[string]struct {
		vhost   part
		rules   []string
		arrives int
	}{
		"rejects":                        {all(classic("paid", reject), bind("events.deliver", "paid", "paid")), []string{"delayed-target-freezes"}, 0},
		"rejects, quorum":                {all(quorum("paid", args{"x-max-length": number(1), "x-overflow": "reject-publish", "x-delivery-limit": number(-1)}), bind("events.deliver", "paid", "paid"), version(4, 3)), []string{"delayed-target-freezes"}, 0},
		"rejects, behind an exchange":    {all(exchange("fan", "fanout", nil), toExchangeOf("events.deliver", "fan", "paid"), classic("paid", reject), bind("fan", "paid", "")), []string{"delayed-target-freezes"}, 0},
		"rejects, by a policy":           {all(classic("paid", nil), bind("events.deliver", "paid", "paid"), policy("limit", "^paid$", 0, args{"max-length": number(1), "overflow": "reject-publish"})), []string{"delayed-target-freezes"}, 0},
		"rejects, by an operator policy": {all(classic("paid", args{"x-overflow": "reject-publish"}), bind("events.deliver", "paid", "paid"), operator("limit", "^paid$", args{"max-length": number(1)})), []string{"delayed-target-freezes"}, 0},
		"rejects and dead-letters":       {all(classic("paid", toParked(args{"x-max-length": number(1), "x-overflow": "reject-publish-dlx"})), parked, bind("events.deliver", "paid", "paid")), []string{"delayed-target-freezes"}, 0},
		"drops":                          {all(classic("paid", args{"x-max-length": number(1)}), bind("events.deliver", "paid", "paid")), nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "rejects, quorum" { // before, a negative delivery limit means another thing
				brokertest.WithoutVhost(t).Needs(t, brokertest.Release(">= 4.0"))
			}
			c.vhost = all(delaying("events", "topic"), more, c.vhost)
			s := createVhost(t, c.vhost)
			expectRules(t, s.audit(), c.rules...)
			s.Publish(t, "", "paid", persistent())
			for range 40 { // more than the 32 that a queue sends at a time
				waitedIn(0, 1, "paid")(s)
			}
			if c.arrives == 0 {
				s.pends(lowest, 33)
			}
			waitedIn(0, 1, "other")(s)
			s.settles("other", func() int { return s.count("other") }, c.arrives)
		})
	}
}

// An exchange without a queue for a message stops messages to other queues. The deliver exchange's alternate exchange
// does not apply.
func TestDeadEndFreezesLevels(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		vhost part
		rules []string
	}{
		"without": {exchange("shop", "topic", nil), []string{"delayed-delivery-dead-end"}},
		"with":    {exchange("shop", "topic", args{"alternate-exchange": "events.delay.unrouted"}), nil},
		"of two": {all(exchange("shop", "topic", args{"alternate-exchange": "events.delay.unrouted"}),
			exchange("more", "headers", nil), toExchangeOf("shop", "more", "#")), []string{"delayed-delivery-dead-end"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := createVhost(t, all(events, c.vhost, classic("order", nil), bind("shop", "order", "shop.order"), toExchangeOf("events.deliver", "shop", "shop.#")))
			expectRules(t, s.audit(), c.rules...)
			for range 40 { // more than the 32 that a queue sends at a time
				waitedIn(0, 1, "shop.refund")(s)
			}
			if c.rules == nil {
				waitedIn(0, 1, "paid")(s)
				s.settles("events.delay.unrouted", func() int { return s.count("events.delay.unrouted") }, 40)
				s.settles("paid", func() int { return s.count("paid") }, 1)
				return
			}
			s.pends(lowest, 33)
			waitedIn(0, 1, "paid")(s)
			s.settles("paid", func() int { return s.count("paid") }, 0)
		})
	}
}

// A due message comes back to the delayed exchange and is delivered again at once.
func TestDeliveryLoops(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]part{
		"directly":            toExchangeOf("events.deliver", "events", "#"),
		"through an exchange": all(exchange("more", "fanout", nil), toExchangeOf("events.deliver", "more", "paid"), toExchangeOf("more", "events", "")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := createVhost(t, all(events, c))
			expectRules(t, s.audit(), "delayed-delivery-loop")
			waitedIn(0, 1, "paid")(s)
			s.settles("events.delay.inbox", func() int { return s.count("events.delay.inbox") }, 1)
		})
	}
}

// If a message is dead-lettered into a level, the sidecar did not send it. It is dropped, or holds the level up for
// others.
func TestEnteredLevels(t *testing.T) {
	t.Parallel()
	entering := all(events, quorum("work", args{"x-dead-letter-exchange": "events.delay.100ms.2"}), bind("events.deliver", "work", "work"))
	s := createVhost(t, entering)
	found := s.audit()
	expectRules(t, found, "delayed-level-entered")
	require.Contains(t, found[0].Message, "Before RabbitMQ 3.13, a message that was rejected after it had waited")
	rejected(1)(s) // never delayed
	s.settles("all queues", s.total, 0)
	waitedIn(2, 0b111, "work")(s)
	s.reject("work")
	if s.VersionAtLeast("3.13") {
		s.settles("work", func() int { return s.count("work") }, 1)
	} else {
		s.pends("events.delay.100ms.2", 1)
	}

	byHand := createVhost(t, all(events, exchange("mine", "fanout", nil), bind("mine", "events.delay.100ms.1", "")))
	expectRules(t, byHand.audit(), "delayed-level-entered")
	byHand.Publish(t, "mine", "paid", persistent())
	byHand.pends("events.delay.100ms.1", 1)
}

// More findings about own queues, by the origin of the setting.
func TestAlteredDelayedQueues(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		vhost  part
		object audit.Object
		text   string
	}{
		"classic":            {classic(lowest, args{"x-message-ttl": number(100), "x-dead-letter-exchange": "events.deliver"}), audit.Object{Kind: "queue", Name: lowest}, "type is classic"},
		"another time":       {quorum(lowest, args{"x-message-ttl": number(99), "x-dead-letter-exchange": "events.deliver"}), audit.Object{Kind: "queue", Name: lowest}, "message-ttl is 99"},
		"no time":            {quorum(lowest, args{"x-dead-letter-exchange": "events.deliver"}), audit.Object{Kind: "queue", Name: lowest}, "message-ttl is not set"},
		"another target":     {quorum(lowest, args{"x-message-ttl": number(100), "x-dead-letter-exchange": "events"}), audit.Object{Kind: "queue", Name: lowest}, "dead-letter-exchange is events"},
		"looked at":          {quorum(lowest, args{"x-message-ttl": number(100), "x-dead-letter-exchange": "events.deliver", "x-delivery-limit": number(5)}), audit.Object{Kind: "queue", Name: lowest}, "delivery-limit is 5"},
		"unrouted, limited":  {operator("org", "unrouted", args{"max-length": number(1000)}), audit.Object{Kind: "operator_policy", Name: "org"}, "max-length is 1000"},
		"unrouted, TTL":      {operator("org", "unrouted", args{"message-ttl": number(1000)}), audit.Object{Kind: "operator_policy", Name: "org"}, "message-ttl is 1000"},
		"unrouted, bytes":    {quorum("events.delay.unrouted", args{"x-dead-letter-exchange": "events.delay.unrouted", "x-max-length-bytes": number(1000)}), audit.Object{Kind: "queue", Name: "events.delay.unrouted"}, "max-length-bytes is 1000"},
		"expires":            {policy("org", "^events", 1001, args{"expires": number(1000)}), audit.Object{Kind: "policy", Name: "org"}, "expires is 1000"},
		"inbox that expires": {operator("org", "inbox", args{"expires": number(1000)}), audit.Object{Kind: "operator_policy", Name: "org"}, "expires is 1000"},
		"overflow":           {policy("delay/events/queues", `^events\.delay\.`, 1000, args{"overflow": "drop-head", "dead-letter-strategy": "at-least-once"}), audit.Object{Kind: "policy", Name: "delay/events/queues"}, "overflow is drop-head"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := audit.DelayedExchange(vhost(events, c.vhost), "events")
			found = slices.DeleteFunc(found, func(f audit.Finding) bool { return f.Rule != "delayed-queue-altered" || f.Object != c.object })
			if len(found) != 1 || found[0].Severity != audit.Error {
				t.Fatalf("found %+v", found)
			}
			require.Contains(t, found[0].Message, c.text)
		})
	}
}

// The findings of a delayed exchange are only about its own messages.
func TestDelayedExchange(t *testing.T) {
	t.Parallel()
	v := vhost(events, delaying("bills", "topic"), without(fromTo("bills", "bills.delay.inbox")),
		classic("elsewhere", args{"x-dead-letter-exchange": "missing"}), bind("events.deliver", "elsewhere", "k"),
		classic("tap", args{"x-max-length": number(1), "x-overflow": "reject-publish"}), bind("events.deliver", "tap", ""))
	expectRules(t, faultsIn(v), "dead-letter-exchange-missing", "delayed-inbox-unbound", "delayed-target-freezes")
	expectRules(t, audit.DelayedExchange(v, "events"), "delayed-target-freezes")
	expectRules(t, audit.DelayedExchange(v, "bills"), "delayed-inbox-unbound")
	expectRules(t, audit.DelayedExchange(v, "eve"))
	expectRules(t, audit.Pipeline(v, "orders", []string{"tap"}), "delayed-target-freezes")
}

// Without a definition, the deliver exchange identifies it. Its existing levels must be complete.
func TestDelayedExchangeWithoutADefinition(t *testing.T) {
	t.Parallel()
	v := vhost(events, unbound("events.delay.unrouted"), bind("events.delay.unrouted", "events.delay.unrouted", ""), unbound("events.delay.100ms.4"))
	expectRules(t, faultsIn(v), "delayed-definition-unreadable", "delayed-level-unbound", "dead-letter-unroutable")
}
