package topology

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// A pipeline of an earlier release must not change on the broker because the provider is upgraded.
func TestDefinitionOfAnEarlierReleaseStays(t *testing.T) {
	t.Parallel()
	const before = `{"version":1,"delays":["5s","0s","60s","5000ms"],"max_attempts":4,"retry_on":["rejected"]}`
	if got := orders().Definition().String(); got != before {
		t.Errorf("%s\nwas\n%s", got, before)
	}
	definition, err := ParseDefinition(before)
	if err != nil || definition.MaxAge != "" || definition.QueueMaxAttempts != nil {
		t.Errorf("%+v, %v", definition, err)
	}
}

func TestDefinitionHoldsAgeAndAttempts(t *testing.T) {
	t.Parallel()
	p := every()
	if text := p.Definition().String(); !strings.HasSuffix(text, `"no_shield":true,"max_age":"1440m","queue_max_attempts":{"classic":9,"declared":2}}`) {
		t.Error(text)
	}
	if w := p.Worker(); w.MaxAge != "24h" || w.WorkQueues["classic"].MaxAttempts != 9 || w.WorkQueues["plain"] != (WorkerQueue{}) {
		t.Errorf("%+v", w)
	}
}

func TestRecoverRefusesAnAgeThatIsNone(t *testing.T) {
	t.Parallel()
	p := orders()
	p.MaxAge = Delay{time.Hour, "soon"}
	if _, err := Recover("orders", "/", liveVhost(p)); err == nil || !strings.Contains(err.Error(), `max_age of the argument retry-definition: "soon"`) {
		t.Error(err)
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
		"policy":                {1, 0, 4100, "policy_definition", "Shorten it"},
		"policy and the others": {200, 50, 3000, "policy_definition", "the policy_definition of those"},
		"delays and the others": {400, 20, 1000, "delays", "List fewer delays"},
		"queues and the others": {20, 90, 1800, "work_queues", "only where it differs"},
	} {
		p := orders()
		p.Delays, p.PolicyDefinition = nil, Arguments{"key": strings.Repeat("v", c.policy)}
		for i := range c.delays {
			p.Delays = append(p.Delays, Delay{time.Second, fmt.Sprintf("%ds", i+1)})
		}
		for i := range c.workQueues {
			p.WorkQueues[fmt.Sprintf("a.queue.of.mine.%d", i)] = WorkQueue{Type: Quorum, MaxAttempts: 3}
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
