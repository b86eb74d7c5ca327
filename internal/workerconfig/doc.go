// Package workerconfig is the sidecar's configuration: how it is read, what is wrong with it, and its
// JSON Schema.
//
// One element is what the sidecar has to know of a pipeline, a [pipeline.Worker], which is also the
// provider's attribute `worker`. The checks are those of a plan, too.
package workerconfig
