// Package workerconfig is the sidecar's configuration: how it is read, what is wrong with it, and its
// JSON Schema.
//
// One element is what the sidecar has to know of a pipeline or a delayed exchange, a [pipeline.Worker] or a
// [delayed.Worker], which is also the attribute `worker` of the provider's resource. The checks are those of a plan, too.
package workerconfig
