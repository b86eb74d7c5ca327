package session

import (
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

func TestOnlyTraceContextIsLogged(t *testing.T) {
	t.Parallel()
	const good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	for name, test := range map[string]struct {
		header any
		want   string
	}{
		"valid":       {good, good},
		"absent":      {nil, ""},
		"number":      {int64(1), ""},
		"bytes":       {[]byte(good), ""},
		"upper case":  {strings.ToUpper(good), ""},
		"long":        {good + "-" + strings.Repeat("x", 1<<16), ""},
		"line break":  {good + "\n", ""},
		"other words": {"msg=\"message parked\" password=secret", ""},
	} {
		if got := traceparent(amqp.Table{"traceparent": test.header}); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
