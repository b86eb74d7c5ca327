// Package benchworker measures how fast the sidecar moves dead letters from the inbox to a retry queue,
// next to two others that move the same messages: a bare pipe in Go, which is what the client library
// and the broker allow, and RabbitMQ's dynamic shovel. Its tests have the build tag "bench" because they
// take long; make bench-worker runs them, prints a table, and fails if a target is missed. They read
// /proc, so they need Linux.
package benchworker
