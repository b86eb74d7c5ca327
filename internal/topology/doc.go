// Package topology knows what a retry pipeline is made of on a RabbitMQ broker.
//
// It is pure: a pipeline's specification goes in, the exchanges, queues, bindings and policies it
// expands to come out, together with their order, their differences from what a broker has, and
// every reason why a specification cannot work. It talks to no broker and knows nothing of Terraform.
package topology
