// Package benchfailed measures how fast the commands for failed messages list, export, import and replay a failed queue,
// next to what the client library and the broker allow: a bare pipe in Go that moves the same messages, and a bare
// look that takes them all and puts them back. Its tests have the build tag "bench" because they take long; make
// bench-failed runs them, prints a table, and fails if a target is missed.
package benchfailed
