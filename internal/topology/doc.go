// Package topology is a model of RabbitMQ objects: exchanges, queues, bindings and policies of a
// vhost, how they differ from one another, how a plan shows them, and which policies apply to them.
//
// It is pure: it talks to no broker, knows nothing of Terraform, and nothing of retries.
package topology
