// Package interop proves with a consumer in another language that the pipeline needs no library: a
// Python program that only nacks (requeue=false). Its test has the build tag "interop" because it
// needs python3 with pika; make test-interop runs it.
package interop
