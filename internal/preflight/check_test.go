package preflight

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/stored"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/workerconfig"
)

// Delays that only one work queue gets to are used.
func TestCheckSchedule(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		attempts, delays, ofQueue int
		wrong                     bool
	}{
		"enough":                   {4, 3, 0, false},
		"too few":                  {3, 3, 0, true},
		"enough for a work queue":  {2, 3, 4, false},
		"too few for a work queue": {2, 3, 3, true},
		"fewer for a work queue":   {4, 3, 2, false},
		"too few for anything":     {1, 1, 0, false}, // which has an error of its own
	} {
		problems := CheckSchedule(c.attempts, c.delays, map[string]pipeline.WorkQueue{"a": {}, "b": {MaxAttempts: c.ofQueue}})
		if len(problems) > 0 != c.wrong {
			t.Errorf("%s: %v", name, problems)
		}
	}
}

func TestCheckScheduleCountsInWords(t *testing.T) {
	t.Parallel()
	for attempts, want := range map[int]string{2: "a message waits once, but", 3: "a message waits 2 times, but"} {
		if problems := CheckSchedule(attempts, 3, nil); len(problems) != 1 || !strings.Contains(problems[0].Detail, want) {
			t.Errorf("%d: %v", attempts, problems)
		}
	}
}

// Plugins may know more keys than RabbitMQ does, so an unknown one is no error of the plan.
func TestWarnOfPipelineKeys(t *testing.T) {
	t.Parallel()
	p := orders()
	p.PolicyDefinition = topology.Arguments{"max-size": int64(5), "max-length": int64(5), "given up": nil}
	p.WorkQueues = map[string]pipeline.WorkQueue{"a": {PolicyDefinition: topology.Arguments{"delivery-limits": int64(5)}}}
	problems := WarnOfPipelineKeys(p)
	if len(problems) != 2 || !strings.Contains(problems[0].Detail, `"max-size"`) || !strings.Contains(problems[1].Detail, `"delivery-limits"`) ||
		!reflect.DeepEqual(problems[1].Path, Path{"work_queues", MapKey("a"), "policy_definition_json"}) {
		t.Errorf("%v", problems)
	}
}

// A queue that expires is deleted with its messages, whoever attaches it.
func TestPoliciesDeleteNoQueues(t *testing.T) {
	t.Parallel()
	expires := topology.Arguments{"expires": int64(60_000)}
	p := orders()
	p.PolicyDefinition = expires
	p.WorkQueues = map[string]pipeline.WorkQueue{"a": {Type: topology.Quorum}}
	ofQueue := orders()
	ofQueue.WorkQueues = map[string]pipeline.WorkQueue{"a": {Type: topology.Classic, PolicyDefinition: expires}}
	dropped := orders()
	dropped.PolicyDefinition = topology.Arguments{"expires": nil}
	dropped.WorkQueues = p.WorkQueues
	for _, c := range []struct {
		p    pipeline.Pipeline
		want []Path
	}{
		{p, []Path{{"policy_definition_json"}}},
		{ofQueue, []Path{{"work_queues", MapKey("a"), "policy_definition_json"}}},
		{dropped, nil},
	} {
		var at []Path
		for _, problem := range CheckPolicies(c.p) {
			at = append(at, problem.Path)
			if !strings.Contains(problem.Detail, `"expires" cannot be set here: it deletes the queue with its messages`) {
				t.Errorf("%+v", problem)
			}
		}
		if !reflect.DeepEqual(at, c.want) {
			t.Errorf("got %v instead of %v", at, c.want)
		}
	}
}

func TestCheckQueueAttempts(t *testing.T) {
	t.Parallel()
	for attempts, wrong := range map[int64]bool{-1: true, 0: true, 1: true, 2: false, 1<<31 - 1: false, 1 << 31: true} {
		problems := workerconfig.CheckQueueAttempts("a.b", attempts)
		if len(problems) > 0 != wrong {
			t.Errorf("%d: %v", attempts, problems)
		}
		if wrong && !reflect.DeepEqual(problems[0].Path, Path{"work_queues", MapKey("a.b"), "max_attempts"}) {
			t.Errorf("%d: at %v", attempts, problems[0].Path)
		}
	}
}

func TestWarnOfMaxAge(t *testing.T) {
	t.Parallel()
	for age, wrong := range map[time.Duration]bool{0: false, 4 * time.Second: true, 5 * time.Second: false, time.Hour: false} {
		p := orders()
		p.MaxAge = pipeline.Delay{Wait: age, Spelling: age.String()}
		if problems := WarnOfMaxAge(p); len(problems) > 0 != wrong {
			t.Errorf("%s: %v", age, problems)
		}
	}
}

// Quotes take two bytes in the request that keeps the definition.
func TestDefinitionFitsTheRequest(t *testing.T) {
	t.Parallel()
	for delays, fits := range map[int]bool{500: true, 655: false} {
		p := orders()
		p.Delays = slices.Repeat([]pipeline.Delay{{Wait: 30 * time.Second, Spelling: "30s"}}, delays)
		if size := len(p.Definition().String()); size > stored.MaxDefinition {
			t.Fatalf("%d delays: %d bytes, which says nothing of quotes", delays, size)
		}
		if got := len(CheckDefinition(p)) == 0; got != fits {
			t.Errorf("%d delays fit: %t, want %t", delays, got, fits)
		}
	}
}

// The definition grows with the work queues that have a number of attempts of their own.
func TestDefinitionThatIsTooLong(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		delays, workQueues, policy int
		at, remedy                 string
	}{
		"neither":               {20, 100, 100, "", ""},
		"delays":                {700, 0, 0, "delays", "List fewer delays"},
		"work queues":           {20, 200, 0, "work_queues", "only where it differs"},
		"policy":                {1, 0, 4100, "policy_definition_json", "Shorten it"},
		"policy and the others": {200, 50, 3000, "policy_definition_json", "into their policy_definition_json"},
		"delays and the others": {400, 20, 1000, "delays", "List fewer delays"},
		"queues and the others": {20, 90, 1800, "work_queues", "only where it differs"},
	} {
		p := orders()
		p.Delays, p.PolicyDefinition = nil, topology.Arguments{"key": strings.Repeat("v", c.policy)}
		for i := range c.delays {
			p.Delays = append(p.Delays, pipeline.Delay{Wait: time.Second, Spelling: fmt.Sprintf("%ds", i+1)})
		}
		for i := range c.workQueues {
			p.WorkQueues[fmt.Sprintf("a.queue.of.mine.%d", i)] = pipeline.WorkQueue{Type: topology.Quorum, MaxAttempts: 3}
		}
		problems := CheckDefinition(p)
		if c.at == "" && len(problems) == 0 {
			continue
		}
		if len(problems) != 1 || problems[0].Path[0] != c.at || !strings.Contains(problems[0].Detail, c.remedy) {
			t.Errorf("%s: %v", name, problems)
		}
	}
}
