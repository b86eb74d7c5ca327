data "rabbitmq_queue" "this" {
  name = "orders.created"
}
