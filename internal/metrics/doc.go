// Package metrics holds what an operator can see of a running worker: counters that the pipelines'
// sessions count in, what each session reports of itself once a second, and which configuration is at
// work. Prometheus collects all of it, and readiness is judged from the same facts.
//
// Labels come from the configuration alone, never from a message.
package metrics
