package pipeline

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

func TestExpandQuorum(t *testing.T) {
	t.Parallel()
	got := topology.Render(Expand(orders()))
	retry := func(ttl string) string {
		return "quorum x-dead-letter-exchange=orders.return x-dead-letter-strategy=at-least-once x-message-ttl=" + ttl + " x-overflow=reject-publish"
	}
	want := topology.View{
		Exchanges: map[string]string{
			"orders.dlx":    "fanout alternate-exchange=orders.failed",
			"orders.failed": "fanout",
			"orders.retry":  "direct",
			"orders.return": "direct alternate-exchange=orders.dlx",
		},
		Queues: map[string]string{
			"orders.inbox": "quorum x-dead-letter-exchange=orders.failed x-dead-letter-strategy=at-least-once " +
				"x-delivery-limit=1000 x-overflow=reject-publish",
			"orders.failed":   "quorum x-delivery-limit=1000000",
			"orders.retry.5s": retry("5000"),
			"orders.retry.1m": retry("60000"),
			"paid":            "quorum x-retry-declared-by=orders x-single-active-consumer=true",
		},
		Bindings: []string{
			`orders.dlx -> orders.inbox retry-definition='{"version":1,"delays":["5s","0s","60s","5000ms"],"max_attempts":4,"retry_on":["rejected"]}'`,
			"orders.failed -> orders.failed",
			"orders.retry -> orders.retry.1m [delay:1m]",
			"orders.retry -> orders.retry.5s [delay:5s]",
			"orders.return -> a|b.c [return:a|b.c]",
			"orders.return -> created [return:created]",
			"orders.return -> legacy [return:legacy]",
			"orders.return -> paid [return:paid]",
		},
		Policies: map[string]string{
			"retry/orders/queues": `queues ^(a\|b\.c|created|paid)$ priority=1000 ` +
				"dead-letter-exchange=orders.dlx dead-letter-strategy=at-least-once overflow=reject-publish",
			"retry/orders/own": `queues ^orders\.(failed|inbox|retry\.([0-9]+(\.[0-9]+)?(h|m|s|ms))+)$ priority=1000 ` +
				"max-length=1000000000 overflow=reject-publish",
			"retry/orders/fallback":     `queues ^(a\|b\.c|created|paid)$ priority=999 dead-letter-exchange=orders.dlx`,
			"retry/orders/queue/legacy": "queues ^(legacy)$ priority=1000 dead-letter-exchange=orders.dlx",
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
	for name, queue := range Expand(p).Queues {
		for _, argument := range []string{"x-dead-letter-strategy", "x-overflow", "x-delivery-limit"} {
			if _, has := queue.Arguments[argument]; has {
				t.Errorf("%s has %s, which a classic queue refuses or misreads", name, argument)
			}
		}
	}
}

func TestTheLargestGroupSharesAPolicy(t *testing.T) {
	t.Parallel()
	p := orders()
	p.WorkQueues = map[string]WorkQueue{"a": {Type: topology.Classic}, "b": {Type: topology.Classic}, "c": {Type: topology.Quorum}}
	policies := Expand(p).Policies
	if got := policies["retry/orders/queues"].Pattern; got != "^(a|b)$" {
		t.Errorf("shared policy has the pattern %q", got)
	}
	if got := policies["retry/orders/queue/c"].Pattern; got != "^(c)$" {
		t.Errorf("the odd queue's policy has the pattern %q", got)
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

func TestWorkerPermissions(t *testing.T) {
	t.Parallel()
	want := Permissions{Configure: "^$", Write: `^(amq\.default|orders\.failed|orders\.retry|orders\.return)$`, Read: `^(orders\.inbox)$`}
	if diff := cmp.Diff(want, WorkerPermissions("orders")); diff != "" {
		t.Error(diff)
	}
}
