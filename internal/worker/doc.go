// Package worker runs retry pipelines: it consumes their inboxes, publishes every message to where
// package deadletter decides, and acknowledges it only after the broker has confirmed that.
//
// It loses no message: what was not confirmed, or was returned, is not acknowledged. It may
// duplicate one, when a session ends between a confirm and the acknowledgement.
package worker
