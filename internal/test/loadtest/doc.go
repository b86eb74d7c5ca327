// Package loadtest changes a pipeline with the real Terraform while messages run through it and the
// real sidecar serves it, and then accounts for every message. Its test has the build tag "load"
// because it takes minutes; make test-load runs it, make test-load-short a part of it.
package loadtest
