// Package delaying decides how long a message waits that the inbox of a delayed exchange holds, and builds what is published
// for it.
//
// It is pure: a delivery goes in, a verdict and the message to publish come out. Headers are a publisher's, who can write
// anything there. None of them may get a message delivered early, or stop one on its way.
package delaying
