package audit_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/audit"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// fault is a vhost that loses or multiplies messages, and the same vhost without the fault.
type fault struct {
	rules         []string
	faulty, fixed part
	// die lets messages die. In the end, left messages remain, or kept messages if the fault is fixed.
	die        func(*liveVhost)
	left, kept int
	// since and before limit the broker's versions with the fault. Others behave like the fixed vhost.
	since, before topology.Version
}

// parked adds a queue that keeps dead letters.
var parked = classic("parked", nil)

func toParked(more args) args { return toQueue("parked", more) }

func toQueue(name string, more args) args {
	arguments := args{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": name}
	maps.Copy(arguments, more)
	return arguments
}

func number(n int) any { return int64(n) }

// faults can be shown by counting the remaining messages.
var faults = map[string]fault{
	"missing exchange": {
		rules:  []string{"dead-letter-exchange-missing"},
		faulty: all(classic("work", args{"x-dead-letter-exchange": "dead"}), parked),
		fixed:  all(classic("work", args{"x-dead-letter-exchange": "dead"}), parked, exchange("dead", "fanout", nil), bind("dead", "parked", "")),
		die:    rejected(1), left: 0, kept: 1,
	},
	"exchange without a queue": {
		rules:  []string{"dead-letter-unroutable"},
		faulty: all(quorum("work", args{"x-dead-letter-exchange": "dead"}), parked, exchange("dead", "topic", nil)),
		fixed:  all(quorum("work", args{"x-dead-letter-exchange": "dead"}), parked, exchange("dead", "topic", nil), bind("dead", "parked", "#")),
		die:    rejected(1), left: 0, kept: 1,
	},
	"key that is not bound": {
		rules:  []string{"dead-letter-unroutable"},
		faulty: all(classic("work", args{"x-dead-letter-exchange": "dead", "x-dead-letter-routing-key": "lost"}), parked, exchange("dead", "direct", nil), bind("dead", "parked", "dead")),
		fixed:  all(classic("work", args{"x-dead-letter-exchange": "dead", "x-dead-letter-routing-key": "dead"}), parked, exchange("dead", "direct", nil), bind("dead", "parked", "dead")),
		die:    rejected(1), left: 0, kept: 1,
	},
	"original key that is not bound": {
		rules:  []string{"dead-letter-key-unbound"},
		faulty: all(shop, parked, exchange("dead", "direct", nil), bind("dead", "parked", "dead")),
		fixed:  all(shop, parked, exchange("dead", "direct", nil), bind("dead", "parked", "created")),
		die:    rejectedFrom("created"), left: 0, kept: 1,
	},
	"keys of a pattern that are not bound": {
		rules:  []string{"dead-letter-key-unbound"},
		faulty: ordersTo("order.#", "direct", "work"),
		fixed:  ordersTo("order.#", "topic", "order.#"),
		die:    rejectedFrom("order.created"), left: 0, kept: 1,
	},
	"some keys of a pattern that are not bound": {
		rules:  []string{"dead-letter-key-unbound"},
		faulty: ordersTo("order.#", "topic", "*.created"),
		fixed:  all(ordersTo("order.#", "topic", "*.created"), exchange("dead", "topic", args{"alternate-exchange": "amq.fanout"}), exchange("amq.fanout", "fanout", nil), bind("amq.fanout", "parked", "")),
		die:    rejectedFrom("order.created.twice"), left: 0, kept: 1,
	},
	"headers that are ignored": {
		rules: []string{"dead-letter-headers-ignored", "dead-letter-unroutable"},
		faulty: all(classic("work", args{"x-dead-letter-exchange": "dead"}), parked, exchange("dead", "headers", nil),
			bindWith("dead", "parked", args{"x-match": "any", "x-first-death-reason": "rejected"})),
		fixed: all(classic("work", args{"x-dead-letter-exchange": "dead"}), parked, exchange("dead", "headers", nil),
			bindWith("dead", "parked", args{"x-match": "any-with-x", "x-first-death-reason": "rejected"})),
		die: rejected(1), left: 0, kept: 1,
	},
	"headers that match everything": {
		rules: []string{"dead-letter-headers-ignored"},
		faulty: all(classic("work", args{"x-dead-letter-exchange": "dead"}), parked, exchange("dead", "headers", nil),
			bindWith("dead", "parked", args{"x-match": "all", "x-first-death-reason": "expired"}), bindWith("dead", "other", args{"x-match": "all-with-x", "x-first-death-reason": "rejected"}), classic("other", nil)),
		fixed: all(classic("work", args{"x-dead-letter-exchange": "dead"}), parked, exchange("dead", "headers", nil),
			bindWith("dead", "parked", args{"x-match": "all-with-x", "x-first-death-reason": "expired"}), bindWith("dead", "other", args{"x-match": "all-with-x", "x-first-death-reason": "rejected"}), classic("other", nil)),
		die: rejected(1), left: 2, kept: 1,
	},
	"target that goes with its consumer": {
		rules:  []string{"dead-letter-route-temporary"},
		faulty: all(classic("work", toParked(nil)), func(v *topology.Vhost) { v.Queues["parked"] = topology.Queue{Type: topology.Classic, AutoDelete: true} }),
		fixed:  all(classic("work", toParked(nil)), parked),
		die:    rejectedAfterALook, left: 0, kept: 1,
	},
	"exchange that is not set": {
		rules:  []string{"dead-letter-exchange-unset"},
		faulty: all(classic("work", nil), parked, policy("dead", "^work$", 0, args{"dead-letter-routing-key": "parked"})),
		fixed:  all(classic("work", nil), parked, policy("dead", "^work$", 0, args{"dead-letter-routing-key": "parked", "dead-letter-exchange": ""})),
		die:    rejected(1), left: 0, kept: 1,
	},
	"cycle of expiries": {
		rules:  []string{"dead-letter-cycle"},
		faulty: all(classic("work", toQueue("retry", args{"x-message-ttl": number(200)})), classic("retry", toQueue("work", args{"x-message-ttl": number(200)}))),
		fixed:  all(classic("work", toParked(args{"x-message-ttl": number(200)})), parked),
		die:    published(1), left: 0, kept: 1,
	},
	"cycle of displacements": {
		rules:  []string{"dead-letter-cycle"},
		faulty: all(classic("work", toQueue("retry", args{"x-max-length": number(1)})), classic("retry", toQueue("work", args{"x-message-ttl": number(200)}))),
		fixed:  all(classic("work", toParked(args{"x-max-length": number(1)})), parked),
		die:    published(2), left: 1, kept: 2,
	},
	"cycle at the delivery limit": {
		rules:  []string{"delivery-limit-cycle"},
		faulty: all(quorum("work", toQueue("retry", args{"x-delivery-limit": number(1)})), classic("retry", toQueue("work", args{"x-message-ttl": number(200)}))),
		fixed:  all(quorum("work", toParked(args{"x-delivery-limit": number(1)})), parked),
		die:    returned(2), left: 0, kept: 1,
	},
	"several ways back": {
		rules: []string{"dead-letter-fan-out"},
		faulty: all(classic("work", toQueue("retry", nil)), classic("other", toQueue("retry", nil)), classic("retry", args{"x-dead-letter-exchange": "back", "x-message-ttl": number(200)}),
			exchange("back", "fanout", nil), bind("back", "work", ""), bind("back", "other", "")),
		fixed: all(classic("work", toQueue("retry", nil)), classic("other", nil), classic("retry", toQueue("work", args{"x-message-ttl": number(200)}))),
		die:   rejected(1), left: 2, kept: 1,
	},
	"ways back to everybody": {
		rules: []string{"dead-letter-fan-out"},
		faulty: all(exchange("events", "fanout", nil), bind("events", "work", ""), bind("events", "other", ""), classic("work", toQueue("retry", nil)), classic("other", toQueue("retry.other", nil)),
			classic("retry", args{"x-dead-letter-exchange": "events", "x-message-ttl": number(200)}), classic("retry.other", args{"x-dead-letter-exchange": "events", "x-message-ttl": number(200)})),
		fixed: all(exchange("events", "fanout", nil), bind("events", "work", ""), bind("events", "other", ""), classic("work", toQueue("retry", nil)), classic("other", toQueue("retry.other", nil)),
			classic("retry", toQueue("work", args{"x-message-ttl": number(200)})), classic("retry.other", toQueue("other", args{"x-message-ttl": number(200)}))),
		die: rejected(1), left: 2, kept: 1,
	},
	"delivery limit": {
		rules:  []string{"delivery-limit-drops"},
		faulty: quorum("work", args{"x-delivery-limit": number(1)}),
		fixed:  all(quorum("work", toParked(args{"x-delivery-limit": number(1)})), parked),
		die:    returned(2), left: 0, kept: 1,
	},
	"default delivery limit": {
		rules:  []string{"delivery-limit-default"},
		faulty: quorum("work", nil),
		fixed:  all(quorum("work", toParked(nil)), parked),
		die:    returned(21), left: 0, kept: 1,
		since: topology.Version{Major: 4},
	},
	"negative delivery limit": {
		rules:  []string{"delivery-limit-negative"},
		faulty: quorum("work", args{"x-delivery-limit": number(-1)}),
		fixed:  quorum("work", args{"x-delivery-limit": number(1_000_000)}),
		die:    returned(1), left: 0, kept: 1,
		before: topology.Version{Major: 4},
	},
	"TTL of a parking queue": {
		rules:  []string{"parking-queue-ttl"},
		faulty: all(classic("work", toParked(nil)), classic("parked", args{"x-message-ttl": number(300)})),
		fixed:  all(classic("work", toParked(nil)), parked),
		die:    rejected(1), left: 0, kept: 1,
	},
	"length of a parking queue": {
		rules:  []string{"parking-queue-length"},
		faulty: all(classic("work", toParked(nil)), quorum("parked", args{"x-max-length": number(1), "x-delivery-limit": number(1_000_000)})),
		fixed:  all(classic("work", toParked(nil)), quorum("parked", args{"x-delivery-limit": number(1_000_000)})),
		die:    rejected(2), left: 1, kept: 2,
	},
	"delivery limit of a parking queue": {
		rules:  []string{"parking-queue-delivery-limit"},
		faulty: all(classic("work", toParked(nil)), quorum("parked", args{"x-delivery-limit": number(1)})),
		fixed:  all(classic("work", toParked(nil)), quorum("parked", args{"x-delivery-limit": number(1_000_000)})),
		die:    rejectedAndLookedAt, left: 0, kept: 1,
	},
	"full classic queue": {
		rules:  []string{"full-target-loses"},
		faulty: all(quorum("work", toParked(nil)), classic("parked", args{"x-max-length": number(1), "x-overflow": "reject-publish"})),
		fixed:  all(quorum("work", toParked(nil)), parked),
		die:    rejected(2), left: 1, kept: 2,
	},
	"at least once in name only": {
		rules:  []string{"at-least-once-ineffective"},
		faulty: all(quorum("work", args{"x-dead-letter-exchange": "dead", "x-dead-letter-strategy": "at-least-once"}), parked, exchange("dead", "fanout", nil), bind("dead", "parked", "")),
		fixed:  all(quorum("work", args{"x-dead-letter-exchange": "dead", "x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish"}), parked, exchange("dead", "fanout", nil), bind("dead", "parked", "")),
		die:    rejectedWhileUnbound, left: 0, kept: 1,
	},
	"policy in the way": {
		rules: []string{"policy-shadows-dead-letter"},
		faulty: all(classic("work", nil), parked, policy("dead", "^work$", 0, args{"dead-letter-exchange": "", "dead-letter-routing-key": "parked"}),
			policy("limit", "^work$", 1, args{"max-length": number(1000)})),
		fixed: all(classic("work", nil), parked, policy("dead", "^work$", 2, args{"dead-letter-exchange": "", "dead-letter-routing-key": "parked"}),
			policy("limit", "^work$", 1, args{"max-length": number(1000)})),
		die: rejected(1), left: 0, kept: 1,
	},
	"policy for another type": {
		rules:  []string{"policy-not-applicable"},
		faulty: all(classic("work", nil), parked, policy("dead", "^work$", 0, args{"dead-letter-exchange": "", "dead-letter-routing-key": "parked", "dead-letter-strategy": "at-least-once"})),
		fixed:  all(classic("work", nil), parked, policy("dead", "^work$", 0, args{"dead-letter-exchange": "", "dead-letter-routing-key": "parked"})),
		die:    rejected(1), left: 0, kept: 1,
	},
	"policy with a key that newer releases do not support": {
		rules:  []string{"policy-not-applicable"},
		faulty: all(classic("work", nil), parked, policy("dead", "^work$", 0, args{"dead-letter-exchange": "", "dead-letter-routing-key": "parked", "max-in-memory-length": number(9)})),
		fixed:  all(classic("work", nil), parked, policy("dead", "^work$", 0, toPolicy())),
		die:    rejected(1), left: 0, kept: 1,
		since: topology.Version{Major: 4},
	},
	"policy with a key that older releases do not support": {
		rules:  []string{"policy-not-applicable"},
		faulty: all(classic("work", nil), parked, policy("dead", "^work$", 0, args{"dead-letter-exchange": "", "dead-letter-routing-key": "parked", "queue-leader-locator": "balanced"})),
		fixed:  all(classic("work", nil), parked, policy("dead", "^work$", 0, toPolicy())),
		die:    rejected(1), left: 0, kept: 1,
		before: topology.Version{Major: 4},
	},
	"missing exchange behind a policy that does not apply": {
		rules: []string{"dead-letter-exchange-missing"},
		faulty: all(classic("work", nil), parked, policy("weak", "^work$", 0, args{"dead-letter-exchange": "missing"}),
			policy("strong", "^work$", 1, args{"dead-letter-exchange": "", "dead-letter-routing-key": "parked", "max-in-memory-length": number(9)})),
		fixed: all(classic("work", nil), parked, policy("weak", "^work$", 0, toPolicy()),
			policy("strong", "^work$", 1, args{"dead-letter-exchange": "", "dead-letter-routing-key": "parked", "max-in-memory-length": number(9)})),
		die: rejected(1), left: 0, kept: 1,
		since: topology.Version{Major: 4},
	},
	"policy for exchanges": {
		rules: []string{"policy-not-applicable"},
		faulty: all(classic("work", nil), parked, policy("dead", "^work$", 0, toPolicy()), func(v *topology.Vhost) {
			p := v.Policies["dead"]
			p.ApplyTo = "exchanges"
			v.Policies["dead"] = p
		}),
		fixed: all(classic("work", nil), parked, policy("dead", "^work$", 0, toPolicy())),
		die:   rejected(1), left: 0, kept: 1,
	},
	"argument without x": {
		rules:  []string{"ignored-argument"},
		faulty: all(classic("work", args{"dead-letter-exchange": "", "dead-letter-routing-key": "parked"}), parked),
		fixed:  all(classic("work", toParked(nil)), parked),
		die:    rejected(1), left: 0, kept: 1,
	},
	"misspelt argument": {
		rules:  []string{"ignored-argument"},
		faulty: all(quorum("work", args{"x-dead-leter-exchange": "", "x-delivery-limit": number(1_000_000)}), parked),
		fixed:  all(quorum("work", toParked(nil)), parked),
		die:    rejected(1), left: 0, kept: 1,
	},
	"pipeline without a failed queue": {
		rules:  []string{"work-queue-failed-unbound", "dead-letter-unroutable"},
		faulty: all(expanded(topology.Classic), unbound("orders.failed")),
		fixed:  expanded(topology.Classic),
		die:    rejectedFromQueue("orders.inbox"), left: 0, kept: 1,
	},
	"pipeline without a way back": {
		rules:  []string{"pipeline-return-nowhere", "dead-letter-unroutable"},
		faulty: all(expanded(topology.Classic), unbound("orders.return"), exchange("orders.return", "direct", nil)),
		fixed:  expanded(topology.Classic),
		die:    waited, left: 0, kept: 1,
	},
}

// shop publishes to the queue "work", whose dead letters keep their routing key.
var shop = all(exchange("shop", "direct", nil), classic("work", args{"x-dead-letter-exchange": "dead"}), bind("shop", "work", "created"))

// On a real broker, each fault loses or multiplies messages, and the audit of its vhost reports it. The fixed vhost
// does neither.
func TestFaultsOnABroker(t *testing.T) {
	t.Parallel()
	for name, f := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, c := range []struct {
				name  string
				vhost part
				left  int
				rules []string
			}{
				{"faulty", f.faulty, f.left, f.rules},
				{"fixed", f.fixed, f.kept, nil},
			} {
				t.Run(c.name, func(t *testing.T) {
					t.Parallel()
					s := createVhost(t, c.vhost)
					if !f.concerns(s) {
						c.left, c.rules = f.kept, nil
					}
					expectRules(t, s.audit(), c.rules...)
					f.die(s)
					s.settles("all queues", s.total, c.left)
				})
			}
		})
	}
}

// concerns reports whether the broker's version has the fault.
func (f fault) concerns(s *liveVhost) bool {
	if s.VersionAtLeast("4.0") {
		return f.before == topology.Version{}
	}
	return f.since == topology.Version{}
}

func TestFaultsAsValues(t *testing.T) {
	t.Parallel()
	for name, f := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			newer, older := f.rules, f.rules
			if f.since != (topology.Version{}) {
				older = nil
			}
			if f.before != (topology.Version{}) {
				newer = nil
			}
			expectRules(t, faultsIn(vhost(f.faulty)), newer...)
			expectRules(t, faultsIn(vhost(f.faulty, version(3, 10))), older...)
			expectRules(t, faultsIn(vhost(f.fixed)))
			expectRules(t, faultsIn(vhost(f.fixed, version(3, 10))))
		})
	}
}

// The messages' templates use exactly the values that they get.
func TestMessagesAreComplete(t *testing.T) {
	t.Parallel()
	for name, f := range faults {
		for _, found := range slices.Concat(faultsIn(vhost(f.faulty)), faultsIn(vhost(f.faulty, version(3, 10)))) {
			if text := found.Message + found.Remedy; strings.Contains(text, "%!") {
				t.Errorf("%s: %s", name, text)
			}
		}
	}
}

func TestUnroutableMessages(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]part{
		`The dead-letter exchange "orders.failed" of queue "orders.inbox" leads to no queue, ` +
			`not even through an alternate exchange. Messages that die there are dropped silently.`: all(expanded(topology.Classic), unbound("orders.failed")),
		`The dead-letter exchange "dead" of queue "work" leads to no queue for the dead-letter routing key "lost", ` +
			`not even through an alternate exchange. Messages that die there are dropped silently.`: all(
			classic("work", args{"x-dead-letter-exchange": "dead", "x-dead-letter-routing-key": "lost"}), parked, exchange("dead", "direct", nil), bind("dead", "parked", "dead")),
	} {
		found := faultsIn(vhost(c))
		require.Truef(t, slices.ContainsFunc(found, func(f audit.Finding) bool { return f.Message == want }), "found %+v, want %s", found, want)
	}
}
