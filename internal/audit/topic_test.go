package audit

import (
	"strings"
	"testing"
)

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
		if got := topicMatches(c.pattern, c.key); got != c.want {
			t.Errorf("%q takes %q: %t", c.pattern, c.key, got)
		}
	}
}

func TestMeantBy(t *testing.T) {
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
		"x-retry-declared-by":        "",
	} {
		if got := meantBy(argument); got != want {
			t.Errorf("%q is taken for %q, want %q", argument, got, want)
		}
	}
}

func TestDistance(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "ab", 2}, {"ab", "", 2}, {"ab", "ab", 0}, {"kitten", "sitting", 3}, {"exhange", "exchange", 1}} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("%q and %q: %d", c.a, c.b, got)
		}
	}
}
