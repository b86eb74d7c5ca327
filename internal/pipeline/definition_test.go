package pipeline

import (
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
	if text := p.Definition().String(); !strings.HasSuffix(text, `"max_age":"1440m","queue_max_attempts":{"classic":9,"declared":2}}`) {
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
	if _, err := Recover("orders", "/", liveVhost(p)); err == nil || !strings.Contains(err.Error(), `"orders.failed" to "orders.failed" has a wrong max_age: "soon"`) {
		t.Error(err)
	}
}

// A key that this release does not know would be dropped by its next change.
func TestDefinitionOfANewerReleaseIsRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"version":1,"delays":["5s"],"max_attempts":2,"retry_on":["rejected"],"counter":"native"}`: "newer release",
		`{"version":1,"delays":["5s"],"max_attempts":2,"retry_on":["rejected"],"engine":"newer"}`:   "does not know",
		`{"version":2,"delays":["5s"],"engine":"newer"}`:                                            "version 2",
		`{"version":1,"delays":["5s"]}`:                                                             "lacks delays or max_attempts",
		`{"version":1`:                                                                              "cannot be read",
	} {
		if _, err := ParseDefinition(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
