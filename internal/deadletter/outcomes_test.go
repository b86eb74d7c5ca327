package deadletter

import (
	"os"
	"regexp"
	"slices"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
)

// Metrics count by these: a reason that is missing would be counted as another one.
func TestFailReasonsAreAllThatThereAre(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("headers.go")
	require.NoError(t, err)
	constants := regexp.MustCompile(`(?m)^\tReason\w+ = "(\w+)"$`).FindAllSubmatch(source, -1)
	if len(constants) < 5 {
		t.Fatalf("%d reasons in headers.go", len(constants))
	}
	for _, c := range constants {
		if !slices.Contains(FailReasons(), string(c[1])) {
			t.Errorf("%s is missing", c[1])
		}
	}
}

func TestDiedAt(t *testing.T) {
	t.Parallel()
	at := time.Unix(1_700_000_000, 0)
	for name, test := range map[string]struct {
		deaths any
		want   time.Time
	}{
		"newest first": {[]any{amqp.Table{"time": at}, amqp.Table{"time": at.Add(-time.Hour)}}, at},
		"absent":       {nil, time.Time{}},
		"no list":      {"x", time.Time{}},
		"empty":        {[]any{}, time.Time{}},
		"no table":     {[]any{int64(1)}, time.Time{}},
		"no time":      {[]any{amqp.Table{"queue": "q"}}, time.Time{}},
		"wrong type":   {[]any{amqp.Table{"time": int64(1)}}, time.Time{}},
	} {
		if got := DiedAt(amqp.Table{"x-death": test.deaths}); !got.Equal(test.want) {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}
