// Package deadletter decides what becomes of a message that a pipeline's inbox holds.
//
// It is pure: a delivery goes in, a verdict and the message to publish come out. It believes the
// broker (the exchange that a delivery came through, the newest entry of x-death) before it believes
// the message's own headers, which any client can copy or forge. Clock, ids and limits are passed in.
package deadletter
