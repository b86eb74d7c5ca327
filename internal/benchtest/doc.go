// Package benchtest is what the benches share: vhosts that are filled and emptied, processes that are measured, rounds and tables,
// and the bare pipe that they measure the sidecar against. It is for benches only, and has their build tag "bench".
package benchtest
