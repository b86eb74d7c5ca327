// Package bench measures what the product does, next to others that do the same. Its tests have the build tag "bench", since they
// take long. Each subject has a target of make that runs the tests whose names begin with it, prints tables, and fails if a target
// is missed:
//
//   - bench-plan: what plan, apply and destroy cost: requests to the management API, counted by a proxy, seconds, and the processor
//     time of the provider's processes, next to the bare calls for the same objects.
//   - bench-worker: how fast the sidecar moves dead letters from the inbox to a retry queue, next to a bare pipe in Go, which is
//     what the client library and the broker allow, and RabbitMQ's dynamic shovel.
//   - bench-failed: how fast the commands for failed messages list, export, import and replay a failed queue, next to a bare pipe
//     that moves the same messages, and a bare look that takes them all and puts them back.
//   - bench-engines: what retries cost with each engine: how late a message that failed comes back, and how much processor time
//     the broker and the sidecar take for it, next to the same load without failures.
//   - bench-delay: how fast messages come through the sidecar into the levels of a delayed exchange, and how late they are when
//     they have waited, next to a bare pipe, to publishing straight to the levels, and to two other ways to delay messages without
//     a plugin: NServiceBus' topic levels, where the routing key leads through the levels, and a queue per delay.
//
// They read /proc, so they need Linux. The engines' needs the broker on the same machine.
package bench
