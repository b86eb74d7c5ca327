package audit

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
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
		{"*.", ".", true},
		{"*", ".", false},
		{".#", "", false},
		{".#", ".", true},
		{"#", "*", true},
		{"a*", "ab", false},
		{strings.Repeat("#.", 30) + "x", strings.Repeat("a.", 60) + "b", false},
	} {
		require.Equalf(t, c.want, known(c.key).compare(bindingKeys(c.pattern)) == yes, "%q matches %q", c.pattern, c.key)
	}
}

// texts lists all texts of up to n words.
func texts(n int, from ...string) []string {
	all, last := []string{""}, []string{""}
	for range n {
		var next []string
		for _, text := range last {
			for _, word := range from {
				next = append(next, text+"."+word)
			}
		}
		last = next
		for _, text := range next {
			all = append(all, text[1:])
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// matchesSimply defines what a pattern matches: "*" takes one word, and "#" takes any number of words.
func matchesSimply(p, k []string) bool {
	switch {
	case len(p) == 0:
		return len(k) == 0
	case p[0] == "#":
		return matchesSimply(p[1:], k) || len(k) > 0 && matchesSimply(p, k[1:])
	}
	return len(k) > 0 && (p[0] == "*" || p[0] == k[0]) && matchesSimply(p[1:], k[1:])
}

// An answer about a set of keys equals the answers about its keys. No pattern has "x". Six words are enough: a pattern of
// three words that misses a key of a set misses one of these.
func TestSetsOfKeys(t *testing.T) {
	t.Parallel()
	patterns, keys := texts(3, "a", "", "*", "#"), texts(6, "a", "", "x")
	matching := make([][]bool, len(patterns))
	for i, p := range patterns {
		for _, k := range keys {
			matching[i] = append(matching[i], matchesSimply(words(p), words(k)))
		}
	}
	answers := [3]int{}
	for i, a := range patterns {
		for j, b := range patterns {
			some, every := false, true
			for n := range keys {
				some = some || matching[i][n] && matching[j][n]
				every = every && (!matching[i][n] || matching[j][n])
			}
			want := maybe
			if !some {
				want = no
			} else if every {
				want = yes
			}
			got := bindingKeys(a).compare(bindingKeys(b))
			require.Equalf(t, want, got, "%q in %q", a, b)
			answers[got]++
			if narrowed := bindingKeys(a).narrow(bindingKeys(b)); some && (i+j)%200 == 0 {
				require.NotEqual(t, unknown, narrowed)
				for n, k := range keys {
					in := known(k).compare(narrowed) == yes
					require.Equalf(t, matching[i][n] && matching[j][n], in, "%q of %q and %q", k, a, b)
				}
			}
		}
	}
	t.Log(answers)
}
