package audit

import "strings"

// topicMatches reports whether the binding key of a topic exchange accepts a routing key: "*" is one word,
// "#" any number of words.
func topicMatches(pattern, routingKey string) bool {
	return wordsMatch(words(pattern), words(routingKey))
}

// words splits a key. The empty key has none, as in the broker.
func words(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ".")
}

func wordsMatch(pattern, text []string) bool {
	// reached[i] means that the pattern so far accepts the first i words. One pass per word of the
	// pattern: trying all ways would take exponential time for patterns with many "#".
	reached := make([]bool, len(text)+1)
	reached[0] = true
	for _, word := range pattern {
		next := make([]bool, len(text)+1)
		for i := range next {
			switch {
			case word == "#":
				next[i] = reached[i] || i > 0 && next[i-1]
			case i > 0 && (word == "*" || word == text[i-1]):
				next[i] = reached[i-1]
			}
		}
		reached = next
	}
	return reached[len(text)]
}
