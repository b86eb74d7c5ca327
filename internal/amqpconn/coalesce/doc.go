// Package coalesce turns many small writes to a connection into few larger ones.
//
// An AMQP client makes a system call per publish and per acknowledgement, and the broker wakes up for
// each; together they cost more than what is done with the message. Here a write only adds to what one
// goroutine sends at once, and again as soon as there is more: nothing waits for a timer or for a buffer
// to fill.
package coalesce
