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
			t.Errorf("%q matches %q: %t", c.pattern, c.key, got)
		}
	}
}
