//go:build !workqueuesonly

package pipeline

import "regexp"

// ownPattern matches the names of the pipeline's own queues. It covers retry queues of every delay, so that a schedule
// change leaves no queue uncovered and needs no write. The pattern is short on purpose, because brokers compile every
// pattern of a vhost again for each queue. A pattern that spells out delays took half as long again.
func (n Names) ownPattern() []string {
	return []string{"^" + regexp.QuoteMeta(string(n)) + `\.(failed$|inbox$|retry\.\d)`}
}
