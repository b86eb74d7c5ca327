package audit

import (
	"strings"
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

func TestTopicMatches(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, key string
		want         bool
	}{
		{"#", "", true},
		{"#", "a.b", true},
		{"*", "", false},
		{"*", "a", true},
		{"*", "a.b", false},
		{"a.*", "a.b", true},
		{"a.*", "a", false},
		{"a.#", "a", true},
		{"a.#", "a.b.c", true},
		{"#.c", "c", true},
		{"#.c", "a.b.c", true},
		{"#.c", "a.b", false},
		{"a.#.c", "a.c", true},
		{"a.#.c", "a.b.b.c", true},
		{"a.#.*", "a", false},
		{"a.#.*", "a.b", true},
		{"", "", true},
		{"a", "", false},
		{"a.", "a.", true},
		{strings.Repeat("#.", 30) + "x", strings.Repeat("a.", 60) + "b", false},
	} {
		require.Equalf(t, c.want, topicMatches(c.pattern, c.key), "%q matches %q", c.pattern, c.key)
	}
}
