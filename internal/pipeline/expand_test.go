package pipeline

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

func TestExpandQuorum(t *testing.T) {
	t.Parallel()
	got := topology.Render(orders().Expand())
	retry := func(ttl string) string {
		return "quorum x-dead-letter-exchange=orders.return x-dead-letter-strategy=at-least-once " +
			"x-delivery-limit=1000000 x-message-ttl=" + ttl + " x-overflow=reject-publish"
	}
	want := topology.View{
		Exchanges: map[string]string{
			"orders.dlx":    "fanout alternate-exchange=orders.failed",
			"orders.failed": "fanout",
			"orders.retry":  "direct",
			"orders.return": "direct alternate-exchange=orders.dlx",

			"orders.failed.route": "direct alternate-exchange=orders.failed",
		},
		Queues: map[string]string{
			"orders.inbox": "quorum x-dead-letter-exchange=orders.failed x-dead-letter-strategy=at-least-once " +
				"x-delivery-limit=1000 x-overflow=reject-publish",
			"orders.failed": "quorum x-dead-letter-exchange=orders.failed x-dead-letter-strategy=at-least-once " +
				"x-delivery-limit=1000000 x-overflow=reject-publish",
			"orders.retry.0.refused": "quorum x-dead-letter-exchange=orders.failed x-dead-letter-strategy=at-least-once " +
				"x-delivery-limit=1000000 x-message-ttl=5000 x-overflow=reject-publish",
			"orders.retry.5s": retry("5000"),
			"orders.retry.1m": retry("60000"),
			"paid":            "quorum retry-declared-by=orders x-single-active-consumer=true",
		},
		Bindings: []string{
			"orders.dlx -> orders.inbox",
			`orders.failed -> orders.failed retry-definition='{"version":1,"delays":["5s","0s","60s","5000ms"],"max_attempts":4,"retry_on":["rejected"]}'`,
			"orders.retry -> orders.retry.0.refused [delay:refused]",
			"orders.retry -> orders.retry.1m [delay:1m]",
			"orders.retry -> orders.retry.5s [delay:5s]",
			"orders.return -> a|b.c [return:a|b.c]",
			"orders.return -> created [return:created]",
			"orders.return -> legacy [return:legacy]",
			"orders.return -> paid [return:paid] retry-declared=orders",
		},
		Policies: map[string]string{
			"retry/orders/queues": `queues ^orders\.(failed$|inbox$|retry\.\d)|^(a\|b\.c|created|paid)$ priority=1000 ` +
				"dead-letter-exchange=orders.dlx dead-letter-strategy=at-least-once overflow=reject-publish",
			"retry/orders/classic-queues": "queues ^(legacy)$ priority=1000 dead-letter-exchange=orders.dlx",
		},
	}
	require.Empty(t, cmp.Diff(want, got))
}

func TestClassicPipelineHasNoQuorumArguments(t *testing.T) {
	t.Parallel()
	p := orders()
	p.QueueType, p.WorkQueues = topology.Classic, nil
	queues := p.Expand().Queues
	if queues[p.Names().RefusedQueue()].Type != topology.Quorum {
		t.Error("the refused queue cannot remember who has a message")
	}
	delete(queues, p.Names().RefusedQueue())
	for name, queue := range queues {
		for _, argument := range []string{"x-dead-letter-strategy", "x-overflow", "x-delivery-limit"} {
			require.NotContains(t, queue.Arguments, argument, "a classic queue refuses or misreads it: "+name)
		}
	}
}

// Brokers match every policy against every queue at each change, so queues with the same content share one.
func TestQueuesThatNeedTheSameShareAPolicy(t *testing.T) {
	t.Parallel()
	own := `^orders\.(failed$|inbox$|retry\.\d)`
	quorum, classic := WorkQueue{Type: topology.Quorum}, WorkQueue{Type: topology.Classic}
	bounded := WorkQueue{Type: topology.Quorum, DeadLetterStrategy: topology.AtMostOnce}
	keys := topology.Arguments{"consumer-timeout": int64(1)}
	for name, test := range map[string]struct {
		queueType  string
		keys       topology.Arguments
		workQueues map[string]WorkQueue
		want       map[string]string
	}{
		"none": {topology.Quorum, nil, nil, map[string]string{"queues": own}},
		"attached by arguments": {
			topology.Quorum, nil,
			map[string]WorkQueue{"a": {Type: topology.Quorum, Attach: AttachArguments}},
			map[string]string{"queues": own},
		},
		"the pipeline's type": {topology.Quorum, nil, map[string]WorkQueue{"a": quorum, "b": quorum}, map[string]string{"queues": own + "|^(a|b)$"}},
		"a classic pipeline":  {topology.Classic, nil, map[string]WorkQueue{"a": classic}, map[string]string{"queues": own + "|^(a)$"}},
		"another type": {
			topology.Quorum, nil,
			map[string]WorkQueue{"a": quorum, "b": classic, "c": classic},
			map[string]string{"queues": own + "|^(a)$", "classic-queues": "^(b|c)$"},
		},
		"keys for all": {
			topology.Quorum, keys,
			map[string]WorkQueue{"a": quorum, "b": quorum},
			map[string]string{"queues": own, "quorum-queues": "^(a|b)$"},
		},
		"keys that are given up": {
			topology.Quorum, topology.Arguments{"expires": nil}, map[string]WorkQueue{"a": quorum}, map[string]string{"queues": own + "|^(a)$"},
		},
		"a queue of its own": {
			topology.Quorum, nil,
			map[string]WorkQueue{"a": quorum, "b": bounded},
			map[string]string{"queues": own + "|^(a)$", "queue/b": "^(b)$"},
		},
	} {
		p := orders()
		p.QueueType, p.PolicyDefinition, p.WorkQueues = test.queueType, test.keys, test.workQueues
		got := map[string]string{}
		for policy, content := range p.Expand().Policies {
			got[strings.TrimPrefix(policy, "retry/orders/")] = content.Pattern
		}
		require.Empty(t, cmp.Diff(test.want, got), name)
	}
}

// A policy's strategy and overflow take precedence over a queue's arguments, and its other keys are added.
func TestOwnQueuesHaveNoWeakerPolicy(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]Pipeline{"orders": orders(), "every": every()} {
		for queue := range p.OwnQueues() {
			policies, _ := topology.NewMatcher(p.Expand().Policies).Queue(queue, topology.Quorum, topology.Version{})
			for _, policy := range policies {
				want := topology.Arguments{"dead-letter-exchange": "orders.dlx", "dead-letter-strategy": "at-least-once", "overflow": "reject-publish"}
				require.Emptyf(t, cmp.Diff(want, policy.Definition), "%s: %s over %s", name, policy.Name, queue)
			}
		}
	}
}

// Two pipelines never share a policy, with any names of their own and of their work queues.
func TestPolicyNamesDoNotCollide(t *testing.T) {
	t.Parallel()
	one, other := orders(), orders()
	one.Name, one.WorkQueues = "a", map[string]WorkQueue{"b.dlx.c": {Type: topology.Quorum}, "x": {Type: topology.Classic}, "queue/x": {Type: topology.Classic}}
	other.Name, other.WorkQueues = "a.dlx.b", map[string]WorkQueue{"c": {Type: topology.Quorum}, "x": {Type: topology.Classic}, "queue/x": {Type: topology.Classic}}
	for name := range one.Expand().Policies {
		require.NotContains(t, other.Expand().Policies, name)
	}
}

func TestRetiredDelaysStayInTheTopology(t *testing.T) {
	t.Parallel()
	p := orders()
	p.Retired = []time.Duration{30 * time.Second}
	expanded := p.Expand()
	require.Contains(t, expanded.Queues, "orders.retry.30s", "the retired queue is missing")
	bound := slices.ContainsFunc(expanded.Bindings, func(b topology.Binding) bool { return b.RoutingKey == "delay:30s" })
	require.True(t, bound, "the retired queue is not bound")
}

func TestGivesUpAfter(t *testing.T) {
	t.Parallel()
	for attempts, want := range map[int]time.Duration{2: 5 * time.Second, 4: 65 * time.Second, 5: 70 * time.Second, 7: 80 * time.Second} {
		p := orders()
		p.MaxAttempts = attempts
		require.Equal(t, want, p.GivesUpAfter(), attempts)
	}
	for age, want := range map[time.Duration]time.Duration{
		time.Second: 0, 5 * time.Second: 5 * time.Second, time.Minute: 5 * time.Second, 65 * time.Second: 65 * time.Second,
		79 * time.Second: 75 * time.Second, 80 * time.Second: 80 * time.Second, time.Hour: 80 * time.Second,
	} {
		p := orders()
		p.MaxAttempts, p.MaxAge.Wait = 7, age
		require.Equal(t, want, p.GivesUpAfter(), age)
	}
	p := orders()
	p.Delays, p.MaxAttempts = []Delay{{MaxDelay, "87600h"}}, 1<<31-1
	if p.GivesUpAfter() <= 0 {
		t.Error("the sum overflowed")
	}
}

func TestOperatorPermissions(t *testing.T) {
	t.Parallel()
	const failed, inbox = `^(orders\.failed)$`, `^(orders\.failed|orders\.inbox)$|^orders\.retry\.`
	read := Permissions{Configure: "^$", Write: "^$", Read: failed}
	imports := Permissions{Configure: "^$", Write: failed, Read: failed}
	want := map[string]Permissions{
		"list": read, "show": read, "export": read, "delete": read, "import": imports, "repair": imports,
		"replay": {Configure: "^$", Write: `^(orders\.return)$`, Read: failed},
		"status": {Configure: "^$", Write: "^$", Read: inbox},
	}
	require.Empty(t, cmp.Diff(want, OperatorPermissions(Pipeline{Name: "orders"})))
	p := Pipeline{Name: "orders", Engine: EngineNative, WorkQueues: map[string]WorkQueue{"a": {FailedQueue: "f"}, "b": {FailedQueue: "f"}}}
	require.Equal(t, `^(f|orders\.dlx|orders\.failed|orders\.inbox)$|^orders\.retry\.`, OperatorPermissions(p)["status"].Read)
}

func TestWorkerPermissions(t *testing.T) {
	t.Parallel()
	want := Permissions{Configure: "^$", Write: `^(amq\.default|orders\.failed|orders\.failed\.route|orders\.retry|orders\.return)$`, Read: `^(orders\.inbox)$`}
	require.Empty(t, cmp.Diff(want, WorkerPermissions("orders")))
}

const ownPolicy = `queues ^orders\.(failed$|inbox$|retry\.\d) priority=1000 ` +
	"dead-letter-exchange=orders.failed dead-letter-strategy=at-least-once overflow=reject-publish"

// natively returns a pipeline whose work queues delay and count messages.
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

// byConsumers returns a pipeline whose consumers count.
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

// The policy of the own queues has no keys that delay. A failed queue would otherwise delay rejected messages.
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
	require.Empty(t, cmp.Diff(want, topology.Render(natively().Expand())))
}

// Each work queue has a routing key that returns its messages. The queue of a delay that left the schedule gets no new
// messages.
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
	require.Empty(t, cmp.Diff(want, topology.Render(p.Expand())))
}

// Owned finds all objects of a pipeline, and no objects that only another engine makes. The pipeline is read back
// unchanged.
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
		if diff := cmp.Diff(topology.Render(p.Expand()), topology.Render(recovered.Expand())); diff != "" || recovered.EngineName() != p.Engine {
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
		require.Empty(t, cmp.Diff(topology.Render(p.Expand()), topology.Render(p.Owned(vhost))), p.Engine)
	}
}

// A definition in a place where no release writes one belongs to no pipeline.
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
	require.Empty(t, cmp.Diff([]string{"orders"}, Pipelines(vhost)))
	_, err := p.Names().DefinitionPlace().Find(vhost)
	require.NoError(t, err)
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
		require.Equal(t, test.linear, isLinear(test.waits), test.waits)
	}
}

// The pipeline's policy covers the refused queue, and no delay has its name. Other engines have no such queue, but find
// one that remains.
func TestRefusedQueueIsOwnUnderEveryEngine(t *testing.T) {
	t.Parallel()
	p := orders()
	n := p.Names()
	queue := n.RefusedQueue()
	if !n.CoversQueue(queue) || !n.OwnsQueue(queue) {
		t.Errorf("%s is not covered", queue)
	}
	_, isRetry := n.DelayOf(queue)
	require.False(t, isRetry, queue)
	expanded := p.Expand()
	require.True(t, regexp.MustCompile(expanded.Policies["retry/orders/queues"].Pattern).MatchString(queue), "the policy does not match")
	p.Engine = EngineNative
	require.NotContains(t, p.Expand().Queues, queue, "a pipeline without a worker has a refused queue")
	require.Contains(t, p.Owned(expanded).Queues, queue, "a pipeline without a worker does not find the refused queue of the one before")
	require.False(t, n.IsOwnQueue(queue, topology.Queue{Type: topology.Quorum}), "a queue of somebody else is taken for it")
}
