// Package barepipe is what the benches measure the sidecar against: a process that moves messages from a queue to an exchange,
// as fast as the client library and the broker allow. It is for benches only, and has their build tag "bench".
package barepipe
