//go:build !workqueuesonly

package pipeline

import "regexp"

// ownPattern matches the names that the pipeline gives to its own queues. It covers retry queues of every
// delay, so that no change of the schedule leaves one uncovered for a moment, or costs a write. It is no more
// exact and no longer than that: brokers compile every pattern of a vhost again for every queue, and spelling
// out what a delay is took half as long again.
func (n Names) ownPattern() []string {
	return []string{"^" + regexp.QuoteMeta(string(n)) + `\.(failed$|inbox$|retry\.\d)`}
}
