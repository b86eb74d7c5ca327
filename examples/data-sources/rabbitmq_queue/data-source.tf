# The queue must exist: a missing one is an error.
data "rabbitmq_queue" "created" {
  name = "orders.created"
}
