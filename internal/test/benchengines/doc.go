// Package benchengines measures what retries cost with each engine: how late a message that failed comes back, and how much
// processor time the broker and the sidecar take for it. All engines get the same load in turn, next to one without
// failures. Its test has the build tag "bench"; make bench-engines runs it and prints a table. It reads /proc, so it needs
// Linux, and a broker on this machine.
package benchengines
