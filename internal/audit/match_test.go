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
		"x-messages-ttl":             "x-message-ttl",
		"x-deadletter-exchange":      "x-dead-letter-exchange",
		"x-single-active-consumers":  "", // concerns no dead letters
		"x-max-age":                  "",
		"x-max-priority":             "",
		"expires":                    "x-expires",
		"retry-declared-by":          "",
	} {
		require.Equal(t, want, intendedArgument(argument), argument)
	}
}
