// Package chaos makes a cluster, the network and the sidecar fail at random, with messages running
// through a pipeline all the time, and then accounts for every message. Its tests have the build tag
// "chaos" because they take minutes; make chaos runs them below scripts/with-cluster, make chaos-short
// with fewer messages and faults. The seed that they print repeats the faults, though not their timing.
package chaos
