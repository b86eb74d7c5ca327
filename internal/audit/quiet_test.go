package audit_test

import (
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/audit"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// What works says nothing, and neither does what cannot be known.
func TestQuiet(t *testing.T) {
	t.Parallel()
	deadFanout := all(exchange("dead", "fanout", nil), bind("dead", "parked", ""), parked)
	for name, v := range map[string]part{
		"nothing":                   all(),
		"no dead-lettering":         all(exchange("shop", "topic", nil), classic("work", nil), bind("shop", "work", "#")),
		"limits of a work queue":    classic("work", args{"x-max-length": number(1), "x-message-ttl": number(1), "x-expires": number(1)}),
		"quorum before 4.0":         all(quorum("work", nil), version(3, 13)),
		"no delivery limit":         quorum("work", args{"x-delivery-limit": number(-1)}),
		"a retry loop":              all(classic("work", toQueue("retry", nil)), classic("retry", toQueue("work", args{"x-message-ttl": number(1)}))),
		"a retry loop of exchanges": all(classic("work", args{"x-dead-letter-exchange": "retry"}), exchange("retry", "direct", nil), exchange("shop", "direct", nil), bind("shop", "work", "k"), bind("retry", "retry", "k"), classic("retry", args{"x-dead-letter-exchange": "shop", "x-message-ttl": number(1)})),
		"keys of headers":           all(exchange("dead", "headers", nil), bind("dead", "parked", ""), parked, classic("work", args{"x-dead-letter-exchange": "dead"})),
		"keys of a hash":            all(exchange("dead", "x-consistent-hash", nil), bind("dead", "parked", "1"), parked, classic("work", args{"x-dead-letter-exchange": "dead", "x-dead-letter-routing-key": "k"})),
		"topic for any key":         all(exchange("shop", "topic", nil), bind("shop", "work", "order.*"), exchange("dead", "topic", nil), bind("dead", "parked", "order.created"), parked, classic("work", args{"x-dead-letter-exchange": "dead"})),
		"alternate exchange":        all(exchange("dead", "direct", args{"alternate-exchange": "all"}), exchange("all", "fanout", nil), bind("all", "parked", ""), parked, classic("work", args{"x-dead-letter-exchange": "dead"})),
		"alternate by policy":       all(exchange("dead", "direct", nil), exchange("all", "fanout", nil), bind("all", "parked", ""), parked, classic("work", args{"x-dead-letter-exchange": "dead"}), policy("alternate", "^dead$", 0, args{"alternate-exchange": "all"})),
		"delayed delivery":          all(classic("delay", toQueue("work", args{"x-message-ttl": number(1)})), classic("work", args{"x-message-ttl": number(9), "x-max-length": number(9)})),
		"no dead letters of dead":   all(classic("work", nil), deadFanout, policy("dead", ".*", 0, args{"dead-letter-exchange": "dead"}), policy("except", "^parked$", 1, args{"max-length": number(1_000_000_000)})),
		"argument over policy":      all(classic("work", args{"x-dead-letter-exchange": "dead"}), deadFanout, policy("limit", "^work$", 1, args{"max-length": number(5)}), policy("dead", "^work$", 0, args{"dead-letter-exchange": "missing"})),
		"equal policies":            all(classic("work", nil), deadFanout, policy("a", "^work$", 1, args{"dead-letter-exchange": "dead"}), policy("b", "^work$", 1, args{"dead-letter-exchange": "dead", "queue-version": number(2)})),
		"a fallback policy":         all(classic("work", nil), deadFanout, policy("a", "^work$", 1, args{"dead-letter-exchange": "dead", "dead-letter-strategy": "at-least-once"}), policy("b", "^work$", 0, args{"dead-letter-exchange": "dead"})),
		"a quorum target":           all(classic("work", toParked(nil)), quorum("parked", args{"x-max-length": number(1), "x-overflow": "reject-publish", "x-delivery-limit": number(-1)})),
		"a full target goes on":     all(classic("work", toQueue("next", nil)), classic("next", toParked(args{"x-max-length": number(1), "x-overflow": "reject-publish-dlx"})), parked),
		"other arguments":           classic("work", args{"x-max-age": "1D", "x-owner": "me", "x-dead-letter-team": "us", "length": number(1), "version": number(1)}),
		"ignored but set":           all(classic("work", args{"dead-letter-exchange": "x"}), deadFanout, policy("dead", "^work$", 0, args{"dead-letter-exchange": "dead"})),
		"delayed retries":           quorum("work", args{"x-delayed-retry-type": "failed", "x-delayed-retry-min": number(1), "x-delivery-limit": number(-1)}),
		"a stream":                  func(v *topology.Vhost) { v.Queues["log"] = topology.Queue{Type: "stream"} },
		"passing queues":            all(passing("amq.gen"), policy("dead", ".*", 0, args{"dead-letter-exchange": "", "dead-letter-strategy": "at-least-once"})),
		"keys of passing queues":    all(passing("amq.gen"), exchange("dead", "direct", nil), bind("dead", "parked", "dead"), parked, policy("dead", "^amq", 0, args{"dead-letter-exchange": "dead"})),
		"a quorum pipeline":         expanded(topology.Quorum),
		"a classic pipeline":        expanded(topology.Classic),
		"a native pipeline":         expandedWith(pipeline.EngineNative, topology.Quorum, nil),
		"a counting pipeline":       expandedWith(pipeline.EngineConsumer, topology.Quorum, nil),
		"a classic counting one":    expandedWith(pipeline.EngineConsumer, topology.Classic, nil),
		"parking in a native one":   all(expandedWith(pipeline.EngineNative, topology.Quorum, nil), classic("other", args{"x-dead-letter-exchange": "orders.failed"})),
		"a pipeline of 3.10":        all(expanded(topology.Quorum), version(3, 10)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expectRules(t, audit.Vhost(vhost(v)))
		})
	}
}

// passing is a queue that goes with its connection.
func passing(name string) part {
	return func(v *topology.Vhost) {
		v.Queues[name] = topology.Queue{Type: topology.Classic, Exclusive: true}
	}
}
