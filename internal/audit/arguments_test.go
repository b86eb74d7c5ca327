package audit

import "testing"

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
		if got := intendedArgument(argument); got != want {
			t.Errorf("%q is taken for %q, want %q", argument, got, want)
		}
	}
}

func TestEditDistance(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "ab", 2}, {"ab", "", 2}, {"ab", "ab", 0}, {"kitten", "sitting", 3}, {"exhange", "exchange", 1}} {
		if got := editDistance(c.a, c.b); got != c.want {
			t.Errorf("%q and %q: %d", c.a, c.b, got)
		}
	}
}
