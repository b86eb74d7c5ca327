// Package probe serves what orchestrators and Prometheus ask a worker.
package probe
