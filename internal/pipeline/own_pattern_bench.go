//go:build workqueuesonly

package pipeline

// ownPattern matches nothing in the build for `make bench-plan`, which measures the cost of policies on the pipeline's
// own queues. No other build has this file.
func (n Names) ownPattern() []string { return nil }
