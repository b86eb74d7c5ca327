// Package command has the sidecar's commands for failed messages, "failed" and "status": flags, questions, what they say, and the
// record of what they did. What they do is in failed and failed/pass.
package command
