// Package worker runs the retry pipelines and the delayed exchanges of a configuration: a session of package session for each, again
// after it ended, and its changes while it lives.
//
// It loses no message: what was not confirmed, or was returned, is not acknowledged. It may duplicate
// one, when a session ends between a confirm and the acknowledgement.
package worker
