package audit

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestIntendedArgument(t *testing.T) {
	t.Parallel()
	for argument, want := range map[string]string{
		"x-dead-letter-exchange":     "",
		"dead-letter-exchange":       "x-dead-letter-exchange",
		"deadLetterExchange":         "x-dead-letter-exchange",
		"x_dead_letter_exchange":     "x-dead-letter-exchange",
		"x-dead-letter-exhange":      "x-dead-letter-exchange",
		"x-dead-letter-routingkey":   "x-dead-letter-routing-key",
		"x-dead-letter-rounting-key": "x-dead-letter-routing-key",
		"x-dead-letter-team":         "",
		"message-ttl":                "x-message-ttl",
		"x-messages-ttl":             "",
		"x-max-age":                  "",
		"x-max-priority":             "",
		"expires":                    "x-expires",
		"retry-declared-by":          "",
	} {
		require.Equal(t, want, intendedArgument(argument), argument)
	}
}

func TestEditDistance(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "ab", 2}, {"ab", "", 2}, {"ab", "ab", 0}, {"kitten", "sitting", 3}, {"exhange", "exchange", 1}} {
		require.Equalf(t, c.want, editDistance(c.a, c.b), "%q and %q", c.a, c.b)
	}
}
