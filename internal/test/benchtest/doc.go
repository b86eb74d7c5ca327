// Package benchtest has the common parts of the benches: vhosts, measured processes, rounds, tables, and the bare pipe that
// the sidecar is compared with. It is only for benches, and has their build tag "bench".
package benchtest
