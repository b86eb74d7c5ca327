package pipeline

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A pipeline of an earlier release must not change on the broker when the provider is upgraded.
func TestDefinitionOfAnEarlierReleaseStays(t *testing.T) {
	t.Parallel()
	const before = `{"version":1,"delays":["5s","0s","60s","5000ms"],"max_attempts":4,"retry_on":["rejected"]}`
	if got := orders().Definition().String(); got != before {
		t.Errorf("%s\nwas\n%s", got, before)
	}
	definition, err := Names("").DefinitionPlace().Parse(before)
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
	_, err := Recover("orders", "/", liveVhost(p))
	require.ErrorContains(t, err, `"orders.failed" to "orders.failed" has a wrong max_age: "soon"`)
}

// This release's next change would drop a key that it does not know.
func TestDefinitionOfANewerReleaseIsRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"version":1,"delays":["5s"],"max_attempts":2,"retry_on":["rejected"],"counter":"native"}`: "changed by hand",
		`{"version":1,"min_reader":"0.7","delays":[5]}`:                                             "needs release 0.7 or later",
		`{"version":1.5,"min_reader":"0.1","delays":[5]}`:                                           "newer",
		`{"version":1,"delays":["5s"],"max_attempts":2,"retry_on":["rejected"],"engine":"newer"}`:   "does not know",
		`{"version":2,"delays":["5s"],"engine":"newer"}`:                                            "version 2",
		`{"version":1,"delays":["5s"]}`:                                                             "lacks delays or max_attempts",
		`{"version":1`:                                                                              "cannot be read",
	} {
		_, err := Names("").DefinitionPlace().Parse(text)
		require.ErrorContains(t, err, want, text)
	}
}

func TestFormatDelayIsCanonical(t *testing.T) {
	t.Parallel()
	for spelling, want := range map[string]string{
		"0s": "0s", "0": "0s", "1ms": "1ms", "250ms": "250ms", "1500ms": "1.5s", "60s": "1m", "90s": "1m30s",
		"60m": "1h", "90m": "1h30m", "3601s": "1h0m1s", "24h": "24h", "10m": "10m", "600s": "10m", "20s": "20s",
	} {
		delay, err := ParseDelay(spelling)
		require.NoError(t, err)
		require.Equal(t, want, FormatDelay(delay), spelling)
		again, is := Names("orders").DelayOf(Names("orders").retryQueuePrefix() + FormatDelay(delay))
		if !is || again != delay {
			t.Errorf("%s: the canonical spelling reads back as %v, %t", spelling, again, is)
		}
	}
}

func TestParseDelayRefuses(t *testing.T) {
	t.Parallel()
	for _, spelling := range []string{"", "5", "5 s", "-1s", "1us", "1500us", "87601h", "9999999h", "1d"} {
		if delay, err := ParseDelay(spelling); err == nil {
			t.Errorf("%q was read as %s", spelling, delay)
		}
	}
	_, err := ParseDelay("87600h")
	require.NoError(t, err, "ten years are allowed")
}

func TestParseMaxAge(t *testing.T) {
	t.Parallel()
	for _, spelling := range []string{"", "24", "-1h", "0s", "1500us", "1d", "2562048h"} {
		if age, err := ParseMaxAge(spelling); err == nil {
			t.Errorf("%q was read as %s", spelling, age)
		}
	}
	if age, err := ParseMaxAge("200000h"); err != nil || age != 200_000*time.Hour {
		t.Errorf("%s, %v: an age may be longer than a TTL", age, err)
	}
}

func TestDelayOfReadsCanonicalNamesOnly(t *testing.T) {
	t.Parallel()
	n := Names("orders")
	if delay, ok := n.DelayOf("orders.retry.1m30s"); !ok || delay != 90*time.Second {
		t.Errorf("got %s, %v", delay, ok)
	}
	for _, queue := range []string{"orders.retry.90s", "orders.retry.", "orders.retry.fast", "bills.retry.5s", "orders.retry"} {
		_, ok := n.DelayOf(queue)
		require.False(t, ok, queue)
	}
}
