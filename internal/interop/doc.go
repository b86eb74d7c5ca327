// Package interop proves with a consumer in another language that the pipeline needs no library: a Python program that
// only nacks (requeue=false). It also runs the consumers of the guide "Which engine" and the commands of the guide
// "Handling failures". Its tests have the build tag "interop" because they need python3 with pika, and one of them npm;
// make test-interop runs them.
package interop
