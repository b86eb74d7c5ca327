// Package benchplan measures what plan, apply and destroy cost: requests to the management API, counted by a proxy,
// seconds, and the processor time of the provider's processes, next to the bare calls for the same objects. Its test has
// the build tag "bench" because it takes long; make bench-plan runs it, prints one table, and fails if a target is
// missed.
package benchplan
