// Package pass goes over a queue once: it looks at each message, publishes or drops those that are meant, and
// puts the others back.
//
// A message is acknowledged only after the broker has confirmed its copy, so none is lost. Acknowledgements on their way are dropped
// when the channel or the connection ends, so a pass ends its consumers, and waits until the queue counts them no more. If the
// connection is cut before, copies of some messages may be in both queues, and it says of how many at most.
package pass
