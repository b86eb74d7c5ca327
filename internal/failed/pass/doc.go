// Package pass goes over a queue once: it looks at each message, publishes or drops those that are meant, and
// puts the others back.
//
// A message is acknowledged only after the broker has confirmed its copy, so none is lost. Acknowledgements on
// their way are dropped when the consumer, the channel or the connection ends, so a pass waits after the last
// one, and then counts what is left: if that is not what it ought to be, it reads the queue again, and acknowledges again
// copies of what was published that are still there.
package pass
