package pipeline

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

func TestExpandQuorum(t *testing.T) {
	t.Parallel()
	got := topology.Render(Expand(orders()))
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
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestClassicPipelineHasNoQuorumArguments(t *testing.T) {
	t.Parallel()
	p := orders()
	p.QueueType, p.WorkQueues = topology.Classic, nil
	queues := Expand(p).Queues
	if queues[p.Names().RefusedQueue()].Type != topology.Quorum {
		t.Error("the refused queue cannot remember who has a message")
	}
	delete(queues, p.Names().RefusedQueue())
	for name, queue := range queues {
		for _, argument := range []string{"x-dead-letter-strategy", "x-overflow", "x-delivery-limit"} {
			if _, has := queue.Arguments[argument]; has {
				t.Errorf("%s has %s, which a classic queue refuses or misreads", name, argument)
			}
		}
	}
}

// Brokers match every policy against every queue at each change, so there is one for all that need the same.
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
		for policy, content := range Expand(p).Policies {
			got[strings.TrimPrefix(policy, "retry/orders/")] = content.Pattern
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// A policy's strategy and overflow take precedence over a queue's arguments, and its other keys mix in.
func TestOwnQueuesHaveNoWeakerPolicy(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]Pipeline{"orders": orders(), "every": every()} {
		for queue := range p.OwnQueues() {
			policies, _ := topology.NewMatcher(Expand(p).Policies).Queue(queue, topology.Quorum)
			for _, policy := range policies {
				want := topology.Arguments{"dead-letter-exchange": "orders.dlx", "dead-letter-strategy": "at-least-once", "overflow": "reject-publish"}
				if diff := cmp.Diff(want, policy.Definition); diff != "" {
					t.Errorf("%s: %s over %s: %s", name, policy.Name, queue, diff)
				}
			}
		}
	}
}

// Two pipelines never meet in one policy, whatever they and their work queues are called.
func TestPolicyNamesDoNotCollide(t *testing.T) {
	t.Parallel()
	one, other := orders(), orders()
	one.Name, one.WorkQueues = "a", map[string]WorkQueue{"b.dlx.c": {Type: topology.Quorum}, "x": {Type: topology.Classic}, "queue/x": {Type: topology.Classic}}
	other.Name, other.WorkQueues = "a.dlx.b", map[string]WorkQueue{"c": {Type: topology.Quorum}, "x": {Type: topology.Classic}, "queue/x": {Type: topology.Classic}}
	for name := range Expand(one).Policies {
		if _, both := Expand(other).Policies[name]; both {
			t.Errorf("both pipelines have the policy %s", name)
		}
	}
}

func TestRetiredDelaysStayInTheTopology(t *testing.T) {
	t.Parallel()
	p := orders()
	p.Retired = []time.Duration{30 * time.Second}
	expanded := Expand(p)
	if _, stays := expanded.Queues["orders.retry.30s"]; !stays {
		t.Error("the retired queue is missing")
	}
	bound := slices.ContainsFunc(expanded.Bindings, func(b topology.Binding) bool { return b.RoutingKey == "delay:30s" })
	if !bound {
		t.Error("the retired queue is not bound")
	}
}

func TestGivesUpAfter(t *testing.T) {
	t.Parallel()
	for attempts, want := range map[int]time.Duration{2: 5 * time.Second, 4: 65 * time.Second, 5: 70 * time.Second, 7: 80 * time.Second} {
		p := orders()
		p.MaxAttempts = attempts
		if got := p.GivesUpAfter(); got != want {
			t.Errorf("%d attempts: %s, want %s", attempts, got, want)
		}
	}
	for age, want := range map[time.Duration]time.Duration{
		time.Second: 0, 5 * time.Second: 5 * time.Second, time.Minute: 5 * time.Second, 65 * time.Second: 65 * time.Second,
		79 * time.Second: 75 * time.Second, 80 * time.Second: 80 * time.Second, time.Hour: 80 * time.Second,
	} {
		p := orders()
		p.MaxAttempts, p.MaxAge.Wait = 7, age
		if got := p.GivesUpAfter(); got != want {
			t.Errorf("up to %s: %s, want %s", age, got, want)
		}
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
	if diff := cmp.Diff(want, OperatorPermissions(Pipeline{Name: "orders"})); diff != "" {
		t.Error(diff)
	}
	p := Pipeline{Name: "orders", Engine: EngineNative, WorkQueues: map[string]WorkQueue{"a": {FailedQueue: "f"}, "b": {FailedQueue: "f"}}}
	if got := OperatorPermissions(p)["status"].Read; got != `^(f|orders\.dlx|orders\.failed|orders\.inbox)$|^orders\.retry\.` {
		t.Error(got)
	}
}

func TestWorkerPermissions(t *testing.T) {
	t.Parallel()
	want := Permissions{Configure: "^$", Write: `^(amq\.default|orders\.failed|orders\.failed\.route|orders\.retry|orders\.return)$`, Read: `^(orders\.inbox)$`}
	if diff := cmp.Diff(want, WorkerPermissions("orders")); diff != "" {
		t.Error(diff)
	}
}
