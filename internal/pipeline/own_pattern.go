//go:build !workqueuesonly

package pipeline

import "regexp"

// ownPattern matches the names that the pipeline gives to its own queues. It covers retry queues of every
// delay, so that no change of the schedule leaves one uncovered for a moment, or costs a write.
func (n Names) ownPattern() []string {
	return []string{regexp.QuoteMeta(string(n)) + `\.(failed|inbox|retry\.([0-9]+(\.[0-9]+)?(h|m|s|ms))+)`}
}
