//go:build workqueuesonly

package pipeline

// ownPattern matches nothing in a build for `make bench-plan`, which measures what it costs that policies
// cover the pipeline's own queues. No other build has this file.
func (n Names) ownPattern() []string { return nil }
