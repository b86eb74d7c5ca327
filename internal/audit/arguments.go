package audit

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// queueArguments are those that decide what becomes of messages.
var queueArguments = []string{
	"x-dead-letter-exchange", "x-dead-letter-routing-key", "x-dead-letter-strategy", "x-message-ttl", "x-expires",
	"x-max-length", "x-max-length-bytes", "x-overflow", "x-delivery-limit",
}

// ignoredArguments finds arguments that are stored and ignored, since brokers take any name.
func ignoredArguments(g graph) []Finding {
	var found []Finding
	for _, name := range g.mortal() {
		for _, argument := range slices.Sorted(maps.Keys(g.settings[name].Arguments)) {
			// What is set in another way is no loss.
			if meant := meantBy(argument); meant != "" && !g.settings[name].Has(strings.TrimPrefix(meant, "x-")) {
				found = append(found, onQueue(name,
					fmt.Sprintf("Queue %q was declared with the argument %q, which brokers store and ignore. It looks like %q.", name, argument, meant),
					fmt.Sprintf("Declare the queue with %q, which needs a new queue, or set %q by a policy, which does not.", meant, strings.TrimPrefix(meant, "x-"))))
			}
		}
	}
	return found
}

// meantBy tells which argument a misspelt one was meant to be, "" if it is none of them.
func meantBy(argument string) string {
	if slices.Contains(queueArguments, argument) {
		return ""
	}
	for _, known := range queueArguments {
		if letters(argument) == letters(known) {
			return known
		}
	}
	for _, known := range queueArguments {
		// Short names are too close to each other for mistakes in them to be told.
		if strings.HasPrefix(known, "x-dead-letter-") && distance(letters(argument), letters(known)) <= 2 {
			return known
		}
	}
	return ""
}

// letters are what is left of a name without its prefix, its case and its punctuation.
func letters(name string) string {
	name = strings.TrimPrefix(strings.ToLower(name), "x-")
	return strings.Map(func(r rune) rune {
		if r < 'a' || r > 'z' {
			return -1
		}
		return r
	}, name)
}

// distance is how many letters have to be changed, left out or put in to make one name of the other.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			changed := diagonal
			if a[i] != b[j] {
				changed++
			}
			diagonal = row[j+1]
			row[j+1] = min(changed, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
