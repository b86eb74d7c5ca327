package pipeline

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

const ownPolicy = `queues ^orders\.(failed$|inbox$|retry\.\d) priority=1000 ` +
	"dead-letter-exchange=orders.failed dead-letter-strategy=at-least-once overflow=reject-publish"

// natively is a pipeline whose work queues delay and count by themselves.
func natively() Pipeline {
	p := orders()
	p.Engine, p.MaxAttempts = EngineNative, 5
	p.Delays = delays(5*time.Second, 10*time.Second, 15*time.Second)
	p.WorkQueues = map[string]WorkQueue{
		"created": {Type: topology.Quorum, Attach: AttachPolicy},
		"paid": {
			Type: topology.Quorum, Attach: AttachPolicy, Declare: true, Arguments: topology.Arguments{"x-single-active-consumer": true},
			FailedQueue: "given-up",
		},
		"tight": {Type: topology.Quorum, Attach: AttachPolicy, DeadLetterStrategy: topology.AtMostOnce},
	}
	return p
}

// byConsumers is a pipeline whose consumers count.
func byConsumers() Pipeline {
	p := orders()
	p.Engine, p.Delays = EngineConsumer, delays(5*time.Second)
	return p
}

func delays(waits ...time.Duration) []Delay {
	var all []Delay
	for _, wait := range waits {
		all = append(all, Delay{Wait: wait, Spelling: FormatDelay(wait)})
	}
	return all
}

// The own queues have a policy without the keys that delay: a failed queue would delay what is rejected there.
func TestExpandNative(t *testing.T) {
	t.Parallel()
	const retried = " delayed-retry-max=15000 delayed-retry-min=5000 delayed-retry-type=all delivery-limit=4"
	want := topology.View{
		Exchanges: map[string]string{
			"orders.failed":       "fanout",
			"orders.failed.route": "direct alternate-exchange=orders.failed",
			"orders.return":       "direct alternate-exchange=orders.failed",
		},
		Queues: map[string]string{
			"given-up": "quorum retry-declared-by=orders x-dead-letter-exchange='' x-dead-letter-routing-key=given-up x-dead-letter-strategy=at-least-once " +
				"x-delivery-limit=1000000 x-overflow=reject-publish",
			"orders.failed": "quorum x-dead-letter-exchange=orders.failed x-dead-letter-strategy=at-least-once " +
				"x-delivery-limit=1000000 x-overflow=reject-publish",
			"paid": "quorum retry-declared-by=orders x-single-active-consumer=true",
		},
		Bindings: []string{
			`orders.failed -> orders.failed retry-definition='{"version":1,"engine":"native","delays":["5s","10s","15s"],"max_attempts":5,"retry_on":["rejected"]}'`,
			"orders.failed.route -> given-up [failed:paid] retry-declared=orders",
			"orders.return -> created [return:created]",
			"orders.return -> paid [return:paid] retry-declared=orders",
			"orders.return -> tight [return:tight]",
		},
		Policies: map[string]string{
			"retry/orders/queues": ownPolicy,
			"retry/orders/failed-queues": "queues ^(given-up)$ priority=1000 " +
				"dead-letter-exchange=orders.failed dead-letter-strategy=at-least-once overflow=reject-publish",
			"retry/orders/quorum-queues": "queues ^(created)$ priority=1000 dead-letter-exchange=orders.failed dead-letter-strategy=at-least-once" +
				retried + " overflow=reject-publish",
			"retry/orders/queue/paid": "queues ^(paid)$ priority=1000 dead-letter-exchange=orders.failed.route " +
				"dead-letter-routing-key=failed:paid dead-letter-strategy=at-least-once" + retried + " overflow=reject-publish",
			"retry/orders/queue/tight": "queues ^(tight)$ priority=1000 dead-letter-exchange=orders.failed" + retried,
		},
	}
	if diff := cmp.Diff(want, topology.Render(Expand(natively()))); diff != "" {
		t.Error(diff)
	}
}

// Each work queue has the key with which its messages return; the queue of a delay that left the schedule gets nothing more.
func TestExpandConsumer(t *testing.T) {
	t.Parallel()
	p := byConsumers()
	p.Retired = []time.Duration{time.Minute}
	retry := func(ttl string) string {
		return "quorum x-dead-letter-exchange=orders.return x-dead-letter-strategy=at-least-once " +
			"x-delivery-limit=1000000 x-message-ttl=" + ttl + " x-overflow=reject-publish"
	}
	policy := func(pattern, queue, more string) string {
		return "queues ^(" + pattern + ")$ priority=1000 dead-letter-exchange=orders.retry dead-letter-routing-key=return:" + queue + more
	}
	const atLeastOnce = " dead-letter-strategy=at-least-once overflow=reject-publish"
	want := topology.View{
		Exchanges: map[string]string{
			"orders.failed":       "fanout",
			"orders.failed.route": "direct alternate-exchange=orders.failed",
			"orders.retry":        "headers alternate-exchange=orders.failed",
			"orders.return":       "direct alternate-exchange=orders.failed",
		},
		Queues: map[string]string{
			"orders.failed": "quorum x-dead-letter-exchange=orders.failed x-dead-letter-strategy=at-least-once " +
				"x-delivery-limit=1000000 x-overflow=reject-publish",
			"orders.retry.5s": retry("5000"),
			"orders.retry.1m": retry("60000"),
			"paid":            "quorum retry-declared-by=orders x-single-active-consumer=true",
		},
		Bindings: []string{
			`orders.failed -> orders.failed retry-definition='{"version":1,"engine":"consumer","delays":["5s"],"max_attempts":4,"retry_on":["rejected"]}'`,
			"orders.retry -> orders.retry.5s x-last-death-reason=rejected x-match=all-with-x",
			"orders.return -> a|b.c [return:a|b.c]",
			"orders.return -> created [return:created]",
			"orders.return -> legacy [return:legacy]",
			"orders.return -> paid [return:paid] retry-declared=orders",
		},
		Policies: map[string]string{
			"retry/orders/queues":        ownPolicy,
			"retry/orders/queue/a|b.c":   policy(`a\|b\.c`, "a|b.c", atLeastOnce),
			"retry/orders/queue/created": policy("created", "created", atLeastOnce),
			"retry/orders/queue/legacy":  policy("legacy", "legacy", ""),
			"retry/orders/queue/paid":    policy("paid", "paid", atLeastOnce),
		},
	}
	if diff := cmp.Diff(want, topology.Render(Expand(p))); diff != "" {
		t.Error(diff)
	}
}

// What a pipeline expands to is its own, is read back as it was, and nothing that only another engine makes is among it.
func TestEveryEngineIsReadBack(t *testing.T) {
	t.Parallel()
	worker := orders()
	worker.Engine = EngineWorker
	for _, p := range []Pipeline{worker, natively(), byConsumers()} {
		p.WorkQueues["parks"] = WorkQueue{Type: topology.Quorum, Attach: AttachPolicy, FailedQueue: "own failures"}
		p.WorkQueues["taken"] = WorkQueue{Type: topology.Quorum, Attach: AttachPolicy, TakeOverFrom: "bills"}
		p.WorkQueues["keys"] = WorkQueue{Type: topology.Quorum, Attach: AttachPolicy, PolicyDefinition: topology.Arguments{"consumer-timeout": int64(9)}}
		p.WorkQueues["arguments"] = WorkQueue{Type: topology.Quorum, Attach: AttachArguments, Declare: true}
		vhost := liveVhost(p)
		recovered, err := Recover(p.Name, p.Vhost, vhost)
		require.NoError(t, err)
		if diff := cmp.Diff(topology.Render(Expand(p)), topology.Render(Expand(recovered))); diff != "" || recovered.EngineName() != p.Engine {
			t.Errorf("%s: %s", p.Engine, diff)
		}
		for _, other := range Engines() {
			foreign := p
			if foreign.Engine = other; other == p.Engine {
				continue
			}
			for name, exchange := range ExpandExchanges(foreign) {
				if _, exists := vhost.Exchanges[name]; !exists {
					vhost.Exchanges[name] = exchange
					vhost.Bindings = append(vhost.Bindings, topology.Binding{Source: name, Destination: p.Names().FailedQueue(), RoutingKey: "x"})
				}
			}
		}
		if diff := cmp.Diff(topology.Render(Expand(p)), topology.Render(Owned(p, vhost))); diff != "" {
			t.Errorf("%s: %s", p.Engine, diff)
		}
	}
}

// A definition where no release writes one is nobody's.
func TestDefinitionsElsewhereSayNothing(t *testing.T) {
	t.Parallel()
	p := natively()
	vhost := liveVhost(p)
	for _, b := range []topology.Binding{
		{Source: "bills.dlx", Destination: "bills.inbox"},
		{Source: "bills.failed", Destination: "orders.failed"},
		{Source: "bills.failed", Destination: "bills.failed", ToExchange: true},
		{Source: "amq.fanout", Destination: "orders.failed"},
	} {
		b.Arguments = topology.Arguments{DefinitionArgument: p.Definition().String()}
		vhost.Bindings = append(vhost.Bindings, b)
	}
	if diff := cmp.Diff([]string{"orders"}, Pipelines(vhost)); diff != "" {
		t.Error(diff)
	}
	if _, err := FindDefinition(p.Names(), vhost); err != nil {
		t.Error(err)
	}
}

func TestLinearSchedules(t *testing.T) {
	t.Parallel()
	const s = time.Second
	for _, test := range []struct {
		waits  []time.Duration
		linear bool
	}{
		{[]time.Duration{5 * s}, true},
		{[]time.Duration{5 * s, 5 * s}, true},
		{[]time.Duration{5 * s, 10 * s, 15 * s, 15 * s}, true},
		{[]time.Duration{5 * s, 30 * s, 300 * s}, false},
		{[]time.Duration{10 * s, 5 * s}, false},
		{[]time.Duration{5 * s, 10 * s, 20 * s}, false},
		{[]time.Duration{0, time.Millisecond}, false},
		{[]time.Duration{0, 0}, true},
		{[]time.Duration{MaxDelay, MaxDelay}, true},
	} {
		if got := IsLinear(test.waits); got != test.linear {
			t.Errorf("%v: %t", test.waits, got)
		}
	}
}
