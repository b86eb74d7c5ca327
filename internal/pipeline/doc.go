// Package pipeline knows what a retry pipeline, and an attachment to one, is made of on a broker.
//
// It is pure: a specification goes in, and the exchanges, queues, bindings and policies that it expands
// to come out; a vhost goes in, and what belongs to a pipeline, or its specification, comes out.
package pipeline
