// Package deadletter decides what becomes of a message that a pipeline's inbox holds.
//
// It is pure: a delivery goes in, a verdict and the message to publish come out. The exchange that a
// delivery came through is the broker's word. The newest entry of x-death is, too, unless the message
// was published to the dead-letter exchange by a client, which can copy or forge any header; hence no
// header may send a message round indefinitely. Clock, ids and limits are passed in.
package deadletter
