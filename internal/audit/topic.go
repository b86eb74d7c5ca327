package audit

import "strings"

// topicMatches tells whether a topic exchange's binding key takes a routing key: "*" is one word,
// "#" any number of words.
func topicMatches(pattern, routingKey string) bool {
	return wordsMatch(words(pattern), words(routingKey))
}

// words of the empty key are none, as the broker has it.
func words(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ".")
}

func wordsMatch(pattern, text []string) bool {
	// reached[i] tells that the pattern so far takes the first i words: one pass per word of the
	// pattern, since patterns with many "#" would take for ever otherwise.
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
