// Package benchdelay measures a delayed exchange: how fast messages come through the sidecar into the levels, and how late they
// are when they have waited. Next to it are a bare pipe, publishing straight to the levels, and two other ways to delay
// messages without a plugin: NServiceBus' topic levels, where the routing key leads through the levels, and a queue per delay.
// Its tests have the build tag "bench"; make bench-delay runs them, prints tables, and fails if a target is missed.
package benchdelay
