// Package session is one life of a pipeline's connections: it consumes the inbox, publishes every message
// to where package deadletter decides, and acknowledges it only after the broker has confirmed that.
//
// One goroutine runs the loop and owns the whole state, which is divided into parts: the intake of
// messages, a publisher per exchange, detours around queues that accept nothing, the unacknowledged
// backlog, and rejections. A part knows only itself and is told the time; what concerns several of them
// is the session's.
package session
