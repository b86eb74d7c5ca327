// Package command has the sidecar's commands for failed messages, "failed" and "status": flags, questions, and what they
// say. What they do is in failed and failed/pass.
package command
