// Package cli has what the sidecar's commands have in common: where broker, credentials and configuration come from,
// and what an error means for the exit code.
package cli
