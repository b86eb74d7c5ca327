package audit

import (
	"math"
	"slices"
	"strings"
)

// key is a routing key, or the set of all keys that one or two topic patterns match. The zero value stands for any key,
// and nothing is claimed about it.
type key struct {
	text  string
	known bool
	// also is the second pattern.
	also string
	// past is an exchange whose bindings match none of the keys.
	past string
}

var (
	unknown    key
	everything = key{text: "#"}
)

func known(text string) key { return key{text: text, known: true} }

// bindingKeys returns the keys that a topic exchange's binding key matches.
func bindingKeys(text string) key {
	return key{text: text, known: !slices.ContainsFunc(pattern(text), wild)}
}

func (k key) String() string {
	switch {
	case k == unknown:
		return "any key"
	case k.also != "":
		return k.text + " and " + k.also
	}
	return k.text
}

// The wildcards of a parsed pattern, and a word that no binding has. No word of a key contains a dot.
const (
	anyWord   = ".*"
	anyWords  = ".#"
	otherWord = "\x00"
)

func wild(word string) bool { return word == anyWord || word == anyWords }

// words splits a routing key. As in the broker, the empty key has no words, and words can be empty.
func words(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ".")
}

// pattern splits a topic exchange's binding key: "*" matches one word, "#" any number of words. Two "#" in a row match the
// same as one.
func pattern(text string) []string {
	split := words(text)
	for i, word := range split {
		if word == "*" || word == "#" {
			split[i] = "." + word
		}
	}
	return slices.CompactFunc(split, func(a, b string) bool { return a == anyWords && b == anyWords })
}

func (k key) patterns() [][]string {
	switch {
	case k.known:
		return [][]string{words(k.text)}
	case k.also != "":
		return [][]string{pattern(k.text), pattern(k.also)}
	}
	return [][]string{pattern(k.text)}
}

// compare reports whether another set contains all of the keys, some or none.
func (k key) compare(other key) answer {
	switch {
	case other == everything || k == other && k.known:
		return yes
	case k == unknown || other == unknown:
		return maybe
	}
	answers := yes
	for _, p := range other.patterns() {
		switch {
		case !overlap(append(k.patterns(), p)):
			return no
		case !k.within(p):
			answers = maybe
		}
	}
	return answers
}

// within reports whether a pattern matches all of the keys. It is exact for the two "#" of a pattern that RabbitMQ 4.3
// allows. If there are more, it does not see that: the time for it would double with each.
func (k key) within(p []string) bool {
	for _, words := range append(k.patterns(), p) {
		if len(slices.DeleteFunc(slices.Clone(words), func(word string) bool { return word != anyWords })) > 2 {
			return false
		}
	}
	all := true
	complete := k.samples(len(p)+1, 10_000, func(sample string) bool {
		all = overlap([][]string{words(sample), p})
		return all
	})
	return all && complete
}

// narrow returns the keys that a binding lets through, if they match.
func (k key) narrow(binding key) key {
	switch {
	case k == unknown || binding == unknown:
		return unknown
	case k.compare(binding) == yes:
		return k
	case binding.compare(key{text: k.text, known: k.known, also: k.also}) == yes:
		binding.past = k.past
		return binding
	case k.also == "" && binding.also == "":
		k.also = binding.text
		return k
	}
	return unknown
}

// samples visits keys of the set, shortest first, with otherWord wherever the patterns allow any word, and up to longest words
// for each "#". If longest is the length of a pattern and one, and the pattern misses a key of the set, it misses a sample.
// The result reports whether all were visited, and not more than most.
func (k key) samples(longest, most int, visit func(sample string) bool) (complete bool) {
	limit := 0
	for _, word := range slices.Concat(k.patterns()...) {
		limit++
		if word == anyWords {
			limit += longest
		}
	}
	return walkAll(k.patterns(), limit, most, func(w walk) walk { return w }, visit)
}

// overlap reports whether a key matches all patterns. It takes a step for each combination of positions.
func overlap(patterns [][]string) bool {
	return !walkAll(patterns, math.MaxInt, math.MaxInt, walk.position, func(string) bool { return false })
}

// walk is a way through up to three patterns: the words so far, each after a dot, and the position in each pattern.
type walk struct {
	words string
	at    [3]int
}

// position is the same for walks that go on alike. What can follow depends on the first letter, too: the key of one empty
// word does not exist, because brokers read it as the key of none.
func (w walk) position() walk {
	w.words = w.words[:min(len(w.words), 2)]
	return w
}

// walkAll visits the keys that match all patterns, shortest first. Of walks with the same id, it follows the first one.
func walkAll(patterns [][]string, longest, most int, id func(walk) walk, visit func(key string) bool) (complete bool) {
	seen := map[walk]bool{}
	for next := []walk{{}}; len(next) > 0 && strings.Count(next[0].words, ".") <= longest; {
		level := next
		next = nil
		for _, w := range level {
			if seen[id(w)] {
				continue
			}
			seen[id(w)] = true
			if len(seen) > most || w.words != "." && w.ends(patterns) && !visit(strings.TrimPrefix(w.words, ".")) {
				return false
			}
			next = append(next, w.steps(patterns)...)
		}
	}
	return true
}

func (w walk) ends(patterns [][]string) bool {
	for i, p := range patterns {
		if slices.ContainsFunc(p[w.at[i]:], func(word string) bool { return word != anyWords }) {
			return false
		}
	}
	return true
}

// steps returns the walks with one more word.
func (w walk) steps(patterns [][]string) []walk {
	steps := []walk{{anyWord, w.at}}
	for i, p := range patterns {
		var fitting []walk
		for at := w.at[i]; at < len(p) && (at == w.at[i] || p[at-1] == anyWords); at++ {
			for _, step := range steps {
				if step.take(p[at]) {
					step.at[i] = at
					if p[at] != anyWords {
						step.at[i]++
					}
					fitting = append(fitting, step)
				}
			}
		}
		steps = fitting
	}
	for i, step := range steps {
		if step.words == anyWord {
			step.words = otherWord
		}
		steps[i].words = w.words + "." + step.words
	}
	return steps
}

// take reports whether a step can go over a word of a pattern.
func (w *walk) take(word string) bool {
	if w.words == anyWord && !wild(word) {
		w.words = word
	}
	return wild(word) || w.words == word
}
