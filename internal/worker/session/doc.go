// Package session is one life of the connections of a pipeline or a delayed exchange: it consumes the inbox, publishes
// every message to where package deadletter or delaying decides, and acknowledges it only after the broker has confirmed that.
//
// One goroutine runs the loop and owns the whole state, which is divided into parts: the intake of
// messages, a publisher per exchange, the unacknowledged backlog, and rejections. What differs between the two is a [Flow]. A part knows only itself and is told the time; what concerns several of them
// is the session's.
package session
